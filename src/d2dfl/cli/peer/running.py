"""What a device does: it runs a round with the others, and forgets what its owner wants back."""

from pathlib import Path

from d2dfl.cli.output import say
from d2dfl.errors import UserError
from d2dfl.peer import service
from d2dfl.peer.home import Home


def run_and_print(folder: Path, graph: Path | None, stay: bool, seconds: float, moves: Path | None = None) -> None:
    home = Home(folder)
    try:
        result = service.run(home, graph, stay=stay, seconds=seconds, moves=moves, say=say)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("everything that was agreed is kept: the next start goes on") from None
    if not result.found and (graph or home.settings.graph):  # then nobody had to look for one
        raise UserError(
            "the graph has more devices than the roster here: nothing has moved; "
            "take the newer roster with d2dfl peer join, or run with another device that brings it"
        )
    if not result.found:
        raise UserError(
            f"found no graph with the others in {seconds:g} s: nothing has moved; `d2dfl peer check` says who answers"
        )
    for (receiver, label), why in sorted(result.short.items()):
        say(f"not all of {label} went to {receiver}: {why}")
    left = f"{result.open_transfers} transfers are open, and go on" if result.open_transfers else "the round goes on"
    say(f"holds {result.holds:,} datapoints" + ("" if result.done else f"; {left} with the next start"))


def forget_and_print(folder: Path, points: list[int]) -> None:
    waiting, used = service.forget(Home(folder), points)
    if waiting is None:
        say("the peer runs: it will tell the receivers within a second; `d2dfl peer status` says who has confirmed")
    else:
        say(f"forgotten here; {waiting} receivers are told when this peer runs")
    for name in used:
        say(f"was used in the training {name}: that is not undone")
