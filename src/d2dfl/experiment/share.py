"""A user's own data on own devices, in one call: `d2dfl.share`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config, config_from
from d2dfl.config.presets import preset as preset_named
from d2dfl.config.sections.learning import SUPERVISED
from d2dfl.config.seeds import checked_seed
from d2dfl.data.dataset import Kind
from d2dfl.data.own import OwnData, TargetKind, own_data
from d2dfl.data.own.devices import names_of
from d2dfl.discovery.methods import method_named
from d2dfl.errors import UserError
from d2dfl.experiment.per_device import Name, PerDevice
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.experiment.share_result import ShareResult as ShareResult
from d2dfl.experiment.share_result import as_said_in_python
from d2dfl.network import Network
from d2dfl.network.frames import by_class, by_device, is_frame, named
from d2dfl.network.links import Links, checked_table, checked_trust, links_file
from d2dfl.network.values import LINEAR
from d2dfl.partition.paradigms import OF_NUMBERS, PARADIGMS
from d2dfl.registry import entry_named


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
    config: Config | Mapping[str, Any] | None = None,
    preset: str | None = None,
    method: str | None = None,
    edges: int | None = None,
    seed: int = 0,
) -> ShareResult:
    """Find who should send which rows to whom, and send them: your data, your devices.

    X        rows of features, images (height x width, with channels last or first) or signals, as an array, a list, a
             tensor, a frame, a PyTorch dataset of pairs (input, label) or one of Hugging Face
    y        a label or a number for each row, or the name of a column of X; floating-point numbers are a regression.
             None with paradigm="unsupervised": there are none, and `compare`, which scores by labels, is refused
    device   who holds each row: numbers or names, or the name of a column; None: rows are dealt out by data.allocation
             to as many devices as `devices` or `links` say, or 25, which the summary then says first
    links    links[receiver, transmitter], the probability that a packet is lost (1: it is not heard); or a Network, or
             a network file; None: devices at random places, as `Network.generate` draws them. A frame (also of rss and
             trust) is read by the names of its rows, the receivers, and columns
    rss      instead of `links`: mean received power[receiver, transmitter] in a linear unit, not dBm: in mW it is
             10 ** (dBm / 10), with channel.noise_power in the same unit (0.02 unless the configuration says otherwise)
    trust    trust[receiver, transmitter, partition], 1 where the transmitter lets the receiver have its rows of that
             class (or range of the number), without the last axis for all classes alike; or {class: table}; or a rule
             such as "full" or "random:0.5"; None: the configuration's rule, or what the network says. With
             paradigm="semi" a row without a label is of the class that its device guesses; rows with one
             (partition.labelled) keep it
    devices  names of all devices in the order of `links`, or how many there are; some may hold nothing. None: sorted
    test     (inputs, targets) that no device holds, for `compare`; None: it keeps a fifth of the rows
    paradigm supervised, semi, unsupervised, regression; None: supervised, or regression where y has a point
    kind     table, image or signal, where the shape of X does not tell
    config   all settings; or some by name, {"discovery.edges": 2}, over a `preset`, "best" or "paper". `method`, `edges` and `seed` as in `discover`
    """
    seed = checked_seed(seed)
    known = _links(links, rss)
    if devices is None and device is None:
        devices = named(links if rss is None else rss)
    settings = _config(config, preset, paradigm)
    number = devices if devices is not None else known.devices
    asked = paradigm or settings.partition.paradigm
    source = known.source if devices is None and number is not None else ""
    learning = _learning(paradigm, asked)
    with as_said_in_python():
        own = own_data(X, y, device, devices=number, counted_by=source, learning=learning, kind=kind, test=test)
    _check_all_hold(own, source)
    if paradigm is None and asked == SUPERVISED and not own.class_names:
        asked, own = OF_NUMBERS, _told_of_numbers(own)
    changes = _of_data(own, asked, number, settings, config) | _of_arguments(settings, method, edges, trust)
    settings = settings.with_(**changes)
    names = own.devices or _names(devices, settings.network.devices)
    classes = own.class_names if PARADIGMS[asked].by_class else ()
    known = _trusted(_by_name(known, links if rss is None else rss, names), trust, names, classes)
    return _shared(own, known, settings, seed, names)


def _of_data(
    own: OwnData,
    asked: str,
    number: int | Sequence[Any] | None,
    settings: Config,
    given: Config | Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What the data says of the settings: `asked` is the paradigm, `number` the devices, `given` what stays as it is."""
    changes: dict[str, Any] = {"partition.paradigm": asked, "network.devices": _how_many(own, number, settings)}
    changes["data.dataset"] = own.name
    changes |= {"network.partitions": len(own.class_names)} if own.class_names and own.labelled else {}
    if not isinstance(given, Config):
        changes |= {path: value for path, value in _fitting(own, settings).items() if path not in (given or {})}
    return changes


def _of_arguments(settings: Config, method: str | None, edges: int | None, trust: Any) -> dict[str, Any]:
    """Settings that have an argument of their own."""
    changes: dict[str, Any] = {"discovery.method": method_named(method or settings.discovery.method).name}
    changes |= {"discovery.edges": edges} if edges is not None else {}
    return changes | ({"network.trust": trust} if isinstance(trust, str) else {})


def _shared(own: OwnData, known: Links, settings: Config, seed: int, names: tuple[Name, ...]) -> ShareResult:
    """Discover and exchange with data, links and settings that fit each other."""
    with as_said_in_python():
        setting = setting_of(settings, seed, own.dataset(tested=False), known)
        item = prepare(settings, setting, settings.discovery.method)
    assert item.discovery is not None  # the yardstick alone has none
    assert item.exchanged is not None
    return ShareResult(
        names=names,
        before=PerDevice(names, setting.holdings),
        rows=PerDevice(names, item.exchanged.holdings),
        transfers=item.exchanged.transfers,
        gone=item.exchanged.lost,
        discovery=item.discovery,
        own=own,
        links=known,
    )


def _learning(given: str | None, asked: str) -> TargetKind | None:
    """What targets are; None: as they look."""
    return None if given is None and asked == SUPERVISED else PARADIGMS[asked].targets


def _told_of_numbers(own: OwnData) -> OwnData:
    """The same with a note, where what was taken for numbers to predict may be meant as classes."""
    if not np.array_equal(own.targets, np.round(own.targets)):
        return own
    way = 'for classes give y.astype(int), or paradigm="supervised"'
    return replace(own, note=f"y holds whole numbers with a point, which are taken as numbers to predict: {way}")


def _check_all_hold(own: OwnData, source: str) -> None:
    """Refuse a table with more devices than hold rows, unless the user said that there are so many."""
    if not source or own.owners is None:
        return
    empty = np.flatnonzero(np.bincount(own.owners, minlength=len(own.devices)) == 0)
    if len(empty):
        raise UserError(
            f"{source} has {len(own.devices)} devices and device names {len(own.devices) - len(empty)} of them: "
            f"device {own.devices[empty[0]]} holds no row; say devices={len(own.devices)} if that is meant"
        )


def _fitting(own: OwnData, config: Config) -> dict[str, Any]:
    """Settings that fit the data where nobody says otherwise: no more components than features, no more ranges than different numbers.

    Rows without labels are not dealt out by them.
    """
    features = int(np.prod(own.inputs.shape[1:]))
    fitting: dict[str, Any] = {"partition.components": min(config.partition.components, features, len(own.inputs))}
    if not own.class_names:
        fitting["partition.ranges"] = min(config.partition.ranges, len(np.unique(own.targets)))
    if not own.labelled:
        fitting["data.allocation"] = "iid"
    return fitting


def _how_many(own: OwnData, number: int | Sequence[Any] | None, config: Config) -> int:
    if own.devices:
        return len(own.devices)
    if number is None:
        return config.network.devices
    return int(number) if isinstance(number, int | np.integer) else len(names_of(number))


def _names(given: int | Sequence[Any] | None, number: int) -> tuple[Name, ...]:
    """Names for devices to which rows are dealt out."""
    return tuple(range(number)) if given is None or isinstance(given, int | np.integer) else tuple(names_of(given))


def _config(config: Config | Mapping[str, Any] | None, preset: str | None, paradigm: str | None) -> Config:
    if isinstance(config, Config) and preset is not None:
        raise UserError(f"config and preset {preset!r:.40} are both given: give only one of them")
    if paradigm is not None:
        entry_named("paradigm", paradigm, PARADIGMS)
    return config_from(config, preset_named(preset or "best", paradigm or SUPERVISED))


def _links(links: Any, rss: Any) -> Links:
    """What is known about the links, checked; rows and columns as they stand."""
    if links is not None and rss is not None:
        raise UserError("links and rss are both given: give loss probabilities or received power")
    if isinstance(links, Network):
        return Links(network=links)
    if isinstance(links, str | Path):
        return links_file(Path(links))
    kind, given = ("drop", links) if rss is None else ("rss", rss)
    if given is None:
        return Links()
    # A frame is looked at when its devices are known: until then it only says how many there are.
    values = np.zeros(np.shape(np.asarray(given))) if is_frame(given) else given
    return Links({kind: _checked(kind, values)}, source="links" if rss is None else "rss")


def _checked(kind: str, values: Any) -> NDArray[np.float64]:
    if kind == "rss":
        return checked_table("rss", values, np.inf, LINEAR)
    return checked_table("links", values, 1.0, "give loss probabilities from 0 to 1; received power goes into rss")


def _by_name(known: Links, given: Any, devices: Sequence[Name]) -> Links:
    """The same; a frame in the order of the devices."""
    if not is_frame(given):
        return known
    return replace(known, table={kind: _checked(kind, by_device(known.source, given, devices)) for kind in known.table})


def _trusted(known: Links, trust: Any, devices: Sequence[Name], classes: Sequence[str]) -> Links:
    """The same with what is known about trust; frames in the order of the devices, dictionaries in that of the classes."""
    if trust is None:
        return known
    if isinstance(trust, str):
        return replace(known, rule=True)
    if isinstance(trust, list | tuple) and any(map(is_frame, trust)):
        raise UserError("trust is a list of frames: give a dictionary {class: frame}")
    if isinstance(trust, Mapping):
        return replace(known, trust=checked_trust(by_class("trust", trust, devices, classes)))
    return replace(known, trust=checked_trust(by_device("trust", trust, devices)))
