"""What a terminal shows of a run where there is no browser: what is done, how far, how long yet, and the table so far."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from d2dfl.cli.output import numbers_table
from d2dfl.live.views import DiscoveryView

EVERY = 2  # times a second
MOMENTS = 40  # of the objective that are drawn as one line
BLOCKS = "▁▂▃▄▅▆▇█"


@contextmanager
def terminal_display(console: Console, view: DiscoveryView) -> Iterator[None]:
    """The same records as the page's, for as long as the run takes."""
    with Live(
        get_renderable=lambda: rendered(view), console=console, refresh_per_second=EVERY, transient=True, screen=False
    ):
        yield


def rendered(view: DiscoveryView) -> RenderableType:
    """Everything as it is now."""
    view.look()
    head = view.progress.shown()
    parts: list[RenderableType] = [
        Text(head["what"] or "the run begins", style="bold"),
        ProgressBar(total=1.0, completed=head["share"], width=60),
        Text(f"{100 * head['share']:.0f} %{', ' + head['left'] if head['left'] else ''}"),
    ]
    if view.traces:
        parts.append(_negotiation(view))
    table = view.table()
    if table is not None and table.rows:
        shown = numbers_table(*table.columns, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        parts.append(shown)
    return Group(*parts)


def _negotiation(view: DiscoveryView) -> Text:
    """The newest discovery: its objective as a line of blocks, links, messages and temperature."""
    newest = list(view.traces.values())[-1]
    moments = list(newest.trace.moments)
    values = [newest.objective(one) for one in moments[:: max(1, len(moments) // MOMENTS)]]
    low, high = min(values), max(values)
    line = "".join(BLOCKS[round((value - low) / (high - low or 1.0) * (len(BLOCKS) - 1))] for value in values)
    last = moments[-1]
    heat = "" if last.temperature is None else f", temperature {last.temperature:.4f}"
    links = sum(int((slots >= 0).sum()) for slots in last.stages)
    return Text(
        f"{newest.name}: {links} links chosen, objective {newest.objective(last):.4f} {line}{heat}, "
        f"{last.messages / newest.network.devices:,.0f} messages a device"
    )
