"""A user's own data on own devices, in one call: `d2dfl.share`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.config.presets import PARADIGMS
from d2dfl.config.presets import preset as preset_named
from d2dfl.config.seeds import checked_seed, checked_seeds
from d2dfl.data.catalogue import Kind
from d2dfl.data.own import OwnData, TargetKind, own_data
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.methods import method_named, methods_named
from d2dfl.errors import UserError
from d2dfl.experiment.compare import Comparison, compare
from d2dfl.experiment.inputs import Inputs
from d2dfl.experiment.per_device import Name, PerDevice
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import paradigm_of, setting_of
from d2dfl.experiment.training import Model, factory_from
from d2dfl.federation.models import outputs_for
from d2dfl.network import Network
from d2dfl.network.graph import Graph
from d2dfl.network.links import Links, checked_table, checked_trust, links_file
from d2dfl.notebook import counted, line, table_html
from d2dfl.progress import Step, silent
from d2dfl.registry import entry_named
from d2dfl.transfer import Transfer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = NDArray[np.int64]  # row numbers of X
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
        return [(str(name), *(f"{n:,}" for n in row)) for name, row in zip(self.names, numbers, strict=True)]

    def _headline(self) -> str:
        sent = sum(len(one.sent) for one in self.transfers)
        lost = sent - sum(len(one.arrived) for one in self.transfers)
        links = counted(len(self.graph.edges), "link")
        return f"{self.discovery.method} found {links}: {counted(sent, 'row')} sent, {lost:,} of them lost"

    def summary(self) -> str:
        """What every device held, sent, received, lost and holds now."""
        lines = [COLUMNS, *self._lines()]
        widths = [max(len(row[place]) for row in lines) for place in range(len(COLUMNS))]
        table = [
            "  ".join(text.rjust(width) if place else text.ljust(width) for place, (text, width) in enumerate(cells))
            for cells in (zip(row, widths, strict=True) for row in lines)
        ]
        return "\n".join([self._headline(), *table])

    def __repr__(self) -> str:
        return line("ShareResult", counted(len(self.names), "device"), self._headline().replace(":", ","))

    def _repr_html_(self) -> str:
        return table_html(self._headline(), COLUMNS, self._lines())

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
        config = self.discovery.config.with_(**{"federation.rounds": rounds})
        dataset = self.own.dataset()
        if isinstance(model, str):
            config = config.with_(**{"federation.model": model})
        outputs = outputs_for(dataset.classes, paradigm_of(config).encodes)
        factory = None if model is None or isinstance(model, str) else factory_from(model, dataset.shape, outputs)
        names = [self.discovery.method] if methods is None else _methods(methods)
        chosen = checked_seeds(seeds, self.discovery.seed)
        return compare(config, names, chosen, progress=progress, inputs=Inputs(dataset, self.links, factory))


def _methods(given: str | Sequence[str]) -> list[str]:
    return methods_named(given) if isinstance(given, str) else [method_named(name).name for name in given]


def share(
    X: Any,
    y: Any = None,
    device: Any = None,
    *,
    links: Any = None,
    rss: Any = None,
    trust: Any = None,
    devices: int | Sequence[Any] | None = None,
    test: Any = None,
    paradigm: str | None = None,
    kind: Kind | None = None,
    config: Config | None = None,
    preset: str | None = None,
    method: str | None = None,
    edges: int | None = None,
    seed: int = 0,
) -> ShareResult:
    """Find who should send which rows to whom, and send them: your data, your devices.

    X        rows of features, images (height x width, with channels last or first) or signals, as an array, a list, a
             tensor, a frame, a PyTorch dataset of pairs (input, label) or one of Hugging Face
    y        a label or a number for each row, or the name of a column of X; floating-point numbers are a regression
    device   who holds each row: numbers or names, or the name of a column; None: rows are dealt out by data.allocation
    links    links[receiver, transmitter], the probability that a packet is lost (1: it is not heard); or a Network, or
             a network file; None: devices at random places, as `Network.generate` draws them
    rss      instead of `links`: mean received power[receiver, transmitter]
    trust    trust[receiver, transmitter, partition], 1 where the transmitter lets the receiver have its rows of that
             class (or range of the number), without the last axis for all classes alike; or a rule such as "full" or
             "random:0.5"; None: the configuration's rule, or what the network says
    devices  names of all devices in the order of `links`, or how many there are; some may hold nothing. None: sorted
    test     (inputs, targets) that no device holds, for `compare`; None: it keeps a fifth of the rows
    paradigm supervised, semi, unsupervised, regression; None: supervised, or regression where y has a point
    kind     table, image or signal, where the shape of X does not tell
    config   all settings; or a `preset`, "best" or "paper". `method`, `edges` and `seed` as in `discover`
    """
    seed = checked_seed(seed)
    known = _links(links, rss, trust)
    settings = _config(config, preset, paradigm)
    number = devices if devices is not None else known.devices
    asked = paradigm or settings.partition.paradigm
    own = own_data(X, y, device, devices=number, learning=_learning(paradigm, asked), kind=kind, test=test)
    if paradigm is None and asked == "supervised" and not own.class_names:
        asked = "regression"
    changes: dict[str, Any] = {"partition.paradigm": asked, "network.devices": _how_many(own, number, settings)}
    changes |= {"data.dataset": own.name, "discovery.method": method_named(method or settings.discovery.method).name}
    changes |= {"network.partitions": len(own.class_names)} if own.class_names else {}
    changes |= _fitting(own, settings) if config is None else {}
    changes |= {"discovery.edges": edges} if edges is not None else {}
    changes |= {"network.trust": trust} if isinstance(trust, str) else {}
    settings = settings.with_(**changes)
    setting = setting_of(settings, seed, own.dataset(tested=False), known)
    item = prepare(settings, setting, settings.discovery.method)
    assert item.discovery is not None  # the yardstick alone has none
    assert item.exchanged is not None
    moved = item.exchanged
    names = own.devices or _names(devices, settings.network.devices)
    before, now = PerDevice(names, setting.holdings), PerDevice(names, moved.holdings)
    return ShareResult(names, before, now, moved.transfers, moved.lost, item.discovery, own, known)


def _learning(given: str | None, asked: str) -> TargetKind | None:
    """What targets are; None: as they look."""
    if given is None and asked == "supervised":
        return None
    return "numbers" if asked == "regression" else "classes"


def _fitting(own: OwnData, config: Config) -> dict[str, int]:
    """Where settings are ours: no more components than features, no more ranges than different numbers."""
    features = int(np.prod(own.inputs.shape[1:]))
    fitting = {"partition.components": min(config.partition.components, features, len(own.inputs))}
    if not own.class_names:
        fitting["partition.ranges"] = min(config.partition.ranges, len(np.unique(own.targets)))
    return fitting


def _how_many(own: OwnData, number: int | Sequence[Any] | None, config: Config) -> int:
    if own.devices:
        return len(own.devices)
    if number is None:
        return config.network.devices
    return number if isinstance(number, int) else len(number)


def _names(given: int | Sequence[Any] | None, number: int) -> tuple[Name, ...]:
    """Of devices to which rows are dealt out."""
    return tuple(range(number)) if given is None or isinstance(given, int) else tuple(map(str, given))


def _config(config: Config | None, preset: str | None, paradigm: str | None) -> Config:
    if config is not None and preset is not None:
        raise UserError(f"config and preset {preset!r:.40} are both given: give only one of them")
    if paradigm is not None:
        entry_named("paradigm", paradigm, dict.fromkeys(PARADIGMS))
    return config or preset_named(preset or "best", paradigm or "supervised")


def _links(links: Any, rss: Any, trust: Any) -> Links:
    """What is known about the links, checked."""
    if links is not None and rss is not None:
        raise UserError("links and rss are both given: give loss probabilities or received power")
    table: Mapping[str, Any] = {}
    if isinstance(links, Network):
        found = Links(network=links)
    elif isinstance(links, str | Path):
        found = links_file(Path(links))
    else:
        if links is not None:
            advice = "give loss probabilities from 0 to 1; received power goes into rss"
            table = {"drop": checked_table("links", links, 1.0, advice)}
        elif rss is not None:
            table = {"rss": checked_table("rss", rss, np.inf, "give received power, at least 0")}
        found = Links(table, source="rss" if rss is not None else "links")
    if trust is None:
        return found
    if isinstance(trust, str):
        return replace(found, rule=True)
    return replace(found, trust=checked_trust(trust))
