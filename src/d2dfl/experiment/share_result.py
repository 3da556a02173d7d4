"""What an exchange of a user's own rows gives back: who holds which rows, how they got there, and what it buys."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from d2dfl.config.seeds import checked_seeds
from d2dfl.data.own import OwnData
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.methods import methods_named
from d2dfl.errors import UserError
from d2dfl.experiment.compare import compare
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.findings.summary import unlinked_sentences
from d2dfl.experiment.inputs import Inputs
from d2dfl.experiment.measures import FEW_TESTS
from d2dfl.experiment.per_device import Name, PerDevice
from d2dfl.experiment.setting import paradigm_of
from d2dfl.experiment.training import Model, factory_from
from d2dfl.federation.models import outputs_for
from d2dfl.network.graph import Graph
from d2dfl.network.links import Links
from d2dfl.network.trust import FULL
from d2dfl.notebook import line, table_html
from d2dfl.progress import Step, silent
from d2dfl.terminal import plain, shortened
from d2dfl.transfer import Transfer
from d2dfl.words import counted, verb

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = NDArray[np.int64]  # row numbers of X
LONGEST = 40  # characters of a name in the table
COLUMNS = ("device", "before", "sent", "received", "lost", "after")


@dataclass(frozen=True, repr=False)
class ShareResult:
    """Who holds which rows after the exchange, and how they got there."""

    names: tuple[Name, ...]  # of the devices, as they were given; graph and transfers say a device by its place here
    before: PerDevice[Rows]  # rows that each device held, by its name
    rows: PerDevice[Rows]  # rows that each device holds now
    transfers: tuple[Transfer, ...]  # one for each link: transmitter, receiver, rows sent, rows that arrived
    gone: Rows  # rows that nobody holds any more
    discovery: Discovery
    own: OwnData = field(compare=False)
    links: Links = field(compare=False)

    @property
    def graph(self) -> Graph:
        """Who sends to whom."""
        return self.discovery.graph

    @property
    def sent(self) -> PerDevice[PerDevice[Rows]]:
        """Per device: the rows that it sent, by receiver."""
        return self._by_link(lambda one: (one.transmitter, one.receiver, one.sent))

    @property
    def received(self) -> PerDevice[PerDevice[Rows]]:
        """Per device: the rows that it got, by transmitter."""
        return self._by_link(lambda one: (one.receiver, one.transmitter, one.arrived))

    @property
    def lost(self) -> PerDevice[PerDevice[Rows]]:
        """Per device: the rows that it sent and that never arrived, by receiver."""
        return self._by_link(lambda one: (one.transmitter, one.receiver, np.setdiff1d(one.sent, one.arrived)))

    def _by_link(self, taken: Any) -> PerDevice[PerDevice[Rows]]:
        found: tuple[dict[Name, Rows], ...] = tuple({} for _ in self.names)
        for transfer in self.transfers:
            device, other, rows = taken(transfer)
            name = self.names[other]
            found[device][name] = np.concatenate([found[device].get(name, rows[:0]), rows])
        return PerDevice(self.names, [PerDevice(part, part.values()) for part in found])

    def _lines(self) -> list[tuple[str, ...]]:
        """A line for each device, in the order of COLUMNS."""
        moved = [
            [sum(map(len, part.values())) for part in side.values()] for side in (self.sent, self.received, self.lost)
        ]
        held = [[len(rows) for rows in side.values()] for side in (self.before, self.rows)]
        numbers = zip(held[0], *moved, held[1], strict=True)
        return [
            (shortened(plain(name), LONGEST), *(f"{n:,}" for n in row))
            for name, row in zip(self.names, numbers, strict=True)
        ]

    def _headline(self) -> str:
        sent = sum(len(one.sent) for one in self.transfers)
        lost = sent - sum(len(one.arrived) for one in self.transfers)
        links, empty = counted(len(self.transfers), "link"), self._empty
        used = len(self.transfers) - empty
        carry = f", {used:,} of which {verb(used, 'carry')} rows" if empty else ""
        return f"{self.discovery.method} found {links}{carry}: {counted(sent, 'row')} sent, {lost:,} of them lost"

    @property
    def _empty(self) -> int:
        """Links over which nothing moved."""
        return sum(not len(one.sent) for one in self.transfers)

    def _dealt(self) -> list[str]:
        """How the data was read; where the user did not say who holds what, that somebody else did."""
        noted = [self.own.note] if self.own.note else []
        if self.own.owners is not None:
            return noted
        rule = self.discovery.config.data.allocation
        number = sum(map(len, self.before.values()))
        return [
            *noted,
            f"no device was given: {number:,} of the {counted(len(self.own.inputs), 'row')} were dealt out to "
            f"{counted(len(self.names), 'device')} by {rule}",
        ]

    def _made_up(self) -> list[str]:
        """What of the network nobody gave, and what was taken instead."""
        config, given = self.discovery.config, self.links
        made = []
        if given.network is None and not given.table:
            made.append("links= was not given, so places and losses are drawn by chance")
        if not given.trusted and not given.rule and config.network.trust != FULL:
            made.append(f"trust= was not given, so {config.network.trust} says who may have what")
        return ["; ".join(made)] if made else []

    def _why_empty(self) -> list[str]:
        """Why links carry nothing, where some do."""
        if not self._empty:
            return []
        network = self.discovery.network
        few = int(((network.threshold < 1) & (network.counts.sum(axis=1) > 0)[:, None]).all(axis=1).sum())
        less = "less than one row of each class (network.threshold)"
        wants = f"; {counted(few, 'device')} {verb(few, 'want')} {less}" if few else ""
        links = f"{counted(self._empty, 'link')} {verb(self._empty, 'carry')} nothing"
        return [f"{links}: rows move whole, and less than one was left to move{wants}"]

    def _why_unlinked(self) -> list[str]:
        """Why devices get nothing, where some do."""
        return unlinked_sentences(self.discovery.network, self.graph, self.discovery.config.channel)

    def summary(self) -> str:
        """What every device held, sent, received, lost and holds now."""
        lines = [COLUMNS, *self._lines()]
        widths = [max(cell_len(row[place]) for row in lines) for place in range(len(COLUMNS))]
        table = [
            "  ".join(
                " " * (width - cell_len(text)) + text if place else set_cell_size(text, width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in lines
        ]
        why = self._why_unlinked()
        first, last = ([], why) if self.transfers else (why, [])
        return "\n".join(
            [*self._dealt(), self._headline(), *first, *table, *self._why_empty(), *last, *self._made_up()]
        )

    def __repr__(self) -> str:
        return line("ShareResult", counted(len(self.names), "device"), self._headline().replace(":", ","))

    def _repr_html_(self) -> str:
        title = "; ".join([*self._dealt(), self._headline()])
        return table_html(
            title, COLUMNS, self._lines(), ". ".join([*self._why_empty(), *self._why_unlinked(), *self._made_up()])
        )

    def plot(self, path: str | Path | None = None) -> "Figure":
        """The graph as a figure; with a path (.png, .svg, .pdf, .html) it is drawn there, too."""
        return self.discovery.plot(path)

    def compare(
        self,
        model: Model | None = None,
        rounds: int = 20,
        methods: str | Sequence[str] | None = None,
        seeds: int | Sequence[int] = 1,
        progress: Step = silent,
    ) -> Comparison:
        """Train with and without the exchange, and on the same rows shuffled over the devices.

        Where `share` got no test part, a fifth of the rows is kept for tests, and graph and exchange are found anew for
        the others. `model`: as in `train`. `methods`: names, or "all"; without it the method of this exchange. `seeds`:
        how many, or which; each draws its own network where links are generated.
        """
        if not self.own.labelled:
            raise UserError("compare scores encoders by how well labels are told from them, and there are none: give y")
        config = self.discovery.config.with_(**{"federation.rounds": rounds})
        dataset = self.own.dataset()
        if len(dataset.test_inputs) < FEW_TESTS:
            few = f"scores come from {counted(len(dataset.test_inputs), 'test row')}, too few to tell methods apart"
            warnings.warn(f"{few}: give test=(inputs, targets) of {FEW_TESTS} or more to share", stacklevel=2)
        if isinstance(model, str):
            config = config.with_(**{"federation.model": model})
        outputs = outputs_for(dataset.classes, paradigm_of(config).encodes)
        factory = None if model is None or isinstance(model, str) else factory_from(model, dataset.shape, outputs)
        names = [self.discovery.method] if methods is None else methods_named(methods)
        chosen = checked_seeds(seeds, self.discovery.seed)
        with as_said_in_python():
            return compare(config, names, chosen, progress=progress, inputs=Inputs(dataset, self.links, factory))


@contextmanager
def as_said_in_python() -> Iterator[None]:
    """Advice that is made for the command line, as one writes it here."""
    try:
        yield
    except UserError as error:
        text = re.sub(r"--(devices) (\d+)", r"\1=\2", str(error))
        text = re.sub(r"--(paradigm) (\w+)", r'\1="\2"', text)
        text = re.sub(r"--set ([\w.]+)=(\S*[^\s,])", r'config=preset("best").with_(**{"\1": "\2"})', text)
        raise (error if text == str(error) else UserError(text)) from None
