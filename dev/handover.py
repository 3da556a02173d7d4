"""Draw the hand-over: what each state makes of each event, read from the tables that peers obey.

    python dev/handover.py            (writes docs/images/handover.svg)
    python dev/handover.py --check    (fails where the picture is not of these tables)

A row is a state, a column an event. A cell says what is done and, where it is another one, the next state; empty cells change nothing.
"""

import sys
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from d2dfl.peer.handover.table import OPEN, RECEIVER, SENDER, Table
from pictures import svg_of, write_or_check

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "handover.svg"
SENDER_EVENTS = (
    "begin",
    "unknown",
    "receiving",
    "wake",
    "complete",
    "committed",
    "refused",
    "timeout",
    "revoked",
    "expelled",
)
RECEIVER_EVENTS = ("good", "bad", "next", "other", "partial", "whole", "broken", "ask", "cancel")
RECEIVER_STATES = ("unknown", "receiving", "committed", "refused")
HEARD = {  # the message in which a receiver's event comes
    "good": "Offer", "bad": "Offer", "next": "Piece", "other": "Piece", "partial": "Commit", "whole": "Commit",
    "broken": "Piece, Commit", "ask": "Ask", "cancel": "Cancel",
}  # fmt: skip
COLOURS = {
    "done": "#cfe6cf",
    "committed": "#cfe6cf",
    "returned": "#f1dccf",
    "refused": "#f1dccf",
    "cancelling": "#f6eecb",
}
WIDE, HIGH = 1.0, 0.5


def draw_table(
    axes: Axes, table: Table, states: tuple[str, ...], events: tuple[str, ...], top: float, title: str
) -> None:
    """States down, events across."""
    used = {event for _, event in table}
    if used != set(events) or {state for state, _ in table} != set(states):
        raise SystemExit("the table has states or events that this picture does not know")
    axes.text(0, top + 0.62, title, fontsize=9, weight="bold", color="#123")
    for column, event in enumerate(events):
        x = WIDE * (column + 1.5)
        axes.text(x, top + 0.2, event, ha="center", fontsize=7, weight="bold", color="#245")
        if table is RECEIVER:
            axes.text(x, top + 0.38, HEARD[event], ha="center", fontsize=5.5, color="#678")
    for row, state in enumerate(states):
        y = top - HIGH * (row + 0.5)
        colour = COLOURS.get(state, "#e4edf3")
        axes.add_patch(
            FancyBboxPatch((0.04, y - 0.19), WIDE - 0.08, 0.38, boxstyle="round,pad=0.01", fc=colour, ec="#356", lw=0.7)
        )
        axes.text(WIDE / 2, y, state, ha="center", va="center", fontsize=7, color="#123")
        for column, event in enumerate(events):
            draw_cell(axes, table, state, event, WIDE * (column + 1), y)


def draw_cell(axes: Axes, table: Table, state: str, event: str, x: float, y: float) -> None:
    target, actions = table.get((state, event), (state, ()))
    moves = target != state
    colour = COLOURS.get(target, "#e4edf3") if moves else "#f8fafb"
    axes.add_patch(
        FancyBboxPatch((x + 0.04, y - 0.21), WIDE - 0.08, 0.42, boxstyle="square,pad=0", fc=colour, ec="white", lw=0.5)
    )
    doing = ", ".join(action.replace("_", " ") for action in actions)
    if moves:
        axes.text(x + WIDE / 2, y + 0.08, f"→ {target}", ha="center", va="center", fontsize=6.3, color="#123")
    if doing:
        place = y - 0.09 if moves else y
        axes.text(x + WIDE / 2, place, doing, ha="center", va="center", fontsize=5.6, style="italic", color="#345")


def picture() -> bytes:
    with matplotlib.rc_context({"svg.hashsalt": "d2dfl", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(9.6, 5.9))
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        axes.set_axis_off()
        axes.set_xlim(0, WIDE * (len(SENDER_EVENTS) + 1))
        axes.set_ylim(-0.3, 6.7)
        draw_table(
            axes,
            SENDER,
            OPEN,
            SENDER_EVENTS,
            5.8,
            "The sender of a transfer: what it makes of the receiver's Status, of time and of its owner",
        )
        draw_table(
            axes,
            RECEIVER,
            RECEIVER_STATES,
            RECEIVER_EVENTS,
            1.8,
            "The receiver: what it makes of the sender's messages",
        )
        return svg_of(figure)


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, picture, __doc__))
