"""What an experiment or a comparison found, as one plain record: tables, verdicts, curves, bars, maps, pictures.

Figures and the web page are made from this record alone, and nothing in it depends on when or how fast it was measured: the
same cells give the same bytes.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, get_args, get_origin

from d2dfl.errors import UserError
from d2dfl.storage import read_json, write_whole
from d2dfl.terminal import plain
from d2dfl.words import counted, plural

FORMAT = 1
FILE = "findings.json"
# What a verdict may be, the best first; without a claim there is a number to show, and nothing to judge.
REPRODUCED, DIRECTION, NOT = "reproduced", "direction only", "not reproduced"
FEW, NO_CLAIM = "too few seeds", "no claim"
UNSAID = (
    "not said"  # in place of the paper's number: a quantity that belongs beside its own, and of which it says nothing
)
AHEAD, BEHIND, UNDECIDED = "ahead", "behind", "nobody can tell"  # where two of the same terms meet
LARGEST = 1e100  # a larger number was never measured, and its square would not be finite
Texts = tuple[str, ...]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """Cells as they are to be read; the first column is left, the others right aligned."""

    title: str
    columns: Texts
    rows: tuple[Texts, ...]
    note: str = ""
    meanings: Texts = ()  # [column] what its head stands for; "" where that says it all

    def __post_init__(self) -> None:
        _same(self.title, len(self.columns), *map(len, self.rows), len(self.meanings or self.columns))

    @property
    def explained(self) -> tuple[tuple[str, str], ...]:
        """Heads of columns and what they stand for."""
        pairs = zip(self.columns, self.meanings, strict=True) if self.meanings else ()
        return tuple((column, meaning) for column, meaning in pairs if meaning)

    @property
    def words(self) -> str:
        """All that is said below a table, where there is room for one text only."""
        return "; ".join([*(f"{column}: {meaning}" for column, meaning in self.explained), *filter(None, [self.note])])


@dataclass(frozen=True)
class Verdict:
    """One number of the paper beside ours."""

    quantity: str
    system: str  # who was measured, and on which terms
    paper: str  # as the paper says it
    ours: str  # mean and confidence interval over seeds
    verdict: str  # one of the words above
    seeds: int = 0  # that the interval is over; 0: not told


@dataclass(frozen=True)
class Line:
    """One method's curve: mean over seeds and a confidence band."""

    name: str  # a method's name, or another series
    title: str
    x: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers

    def __post_init__(self) -> None:
        _same(self.title, *map(len, (self.x, self.mean, self.low, self.high)))


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Bars:
    """Stacked bars: values[part][bar]."""

    title: str
    unit: str
    bars: Texts
    parts: Texts
    values: tuple[Numbers, ...]

    def __post_init__(self) -> None:
        _same(self.title, len(self.parts), len(self.values))
        _same(self.title, len(self.bars), *map(len, self.values))
        if any(value < 0 for part in self.values for value in part):
            raise ValueError(f"a bar of {self.title!r:.80} is negative")


@dataclass(frozen=True)
class Link:
    """What moves over one link."""

    transmitter: int
    receiver: int
    loss: float  # probability
    trusted: int  # partitions
    amounts: Numbers  # [partition] datapoints sent, as discovery expects it
    went: Numbers = ()  # datapoints sent and arrived in the exchange itself; empty: nothing moved

    def __post_init__(self) -> None:
        if not 0 <= self.loss <= 1 or any(amount < 0 for amount in (*self.amounts, *self.went)):
            raise ValueError(f"the link from {self.transmitter} to {self.receiver} loses or sends an impossible amount")


@dataclass(frozen=True)
class Layer:
    """The graph of one method on a map."""

    name: str
    title: str
    after: tuple[Numbers, ...]  # [device][partition] expected datapoints after the exchange
    satisfied: tuple[int, ...]  # [device] partitions that meet their threshold, as expected
    links: tuple[Link, ...]
    distance: Numbers = ()  # [device] total variation to the data of all devices together, as expected
    went: tuple[Numbers, ...] = ()  # [device][partition] datapoints after the exchange itself; empty: nothing moved
    went_distance: Numbers = ()  # [device] the same distance then
    scores: Numbers = ()  # [device] of its model on labels as the device held them at first; empty: nobody trained


@dataclass(frozen=True)
class Map:
    """Devices in the plane, and the graph of each method over them."""

    title: str
    partitions: Texts
    positions: tuple[Numbers, ...]  # [device] in the unit
    cluster: tuple[int, ...]  # [device] reliable cluster
    threshold: tuple[Numbers, ...]  # [device][partition]
    before: tuple[Numbers, ...]  # [device][partition] datapoints
    layers: tuple[Layer, ...]
    devices: Texts = ()  # their names, where they have some
    unit: str = "m"  # "": nobody knows where devices stand, and those that lose little to each other are near
    distance: Numbers = ()  # [device] total variation to the data of all devices together, before the exchange

    def __post_init__(self) -> None:
        devices, partitions = len(self.positions), len(self.partitions)
        if not devices:
            raise ValueError(f"there is no device on {self.title!r:.80}")
        _same(self.title, 2, *map(len, self.positions))
        for each in (
            self.cluster,
            self.threshold,
            self.before,
            self.devices or self.cluster,
            self.distance or self.cluster,
        ):
            _same(self.title, devices, len(each))
        for layer in self.layers:
            _same(self.title, devices, len(layer.after), len(layer.satisfied))
            more = (layer.distance, layer.went, layer.went_distance, layer.scores)  # each may be missing
            _same(self.title, devices, *(len(values) for values in more if values))
            rows = (*layer.after, *layer.went, *(link.amounts for link in layer.links))
            _same(self.title, partitions, *map(len, rows))
            _same(self.title, 2, *(len(link.went) for link in layer.links if link.went))
            ends = [(link.transmitter, link.receiver) for link in layer.links]
            if not all(0 <= end < devices for pair in ends for end in pair) or any(a == b for a, b in ends):
                raise ValueError(f"a link of {layer.title!r:.80} joins no two devices")
            counted = (*layer.satisfied, *(link.trusted for link in layer.links))
            if not all(0 <= number <= partitions for number in counted):
                raise ValueError(f"{layer.title!r:.80} counts more partitions than there are")
        _same(self.title, partitions, *map(len, self.threshold), *map(len, self.before))


@dataclass(frozen=True)
class Picture:
    """A file beside the record."""

    title: str
    file: str


@dataclass(frozen=True)
class Findings:
    """Everything about one experiment or comparison that is worth showing."""

    name: str
    title: str
    setting: str = ""  # one sentence: data, devices, rounds, seeds
    figure: str = ""  # of the paper, where there is one
    claim: str = ""  # of the paper
    scale: str = ""
    config: str = ""  # TOML
    verdicts: tuple[Verdict, ...] = ()
    rule: int = 0  # by which the verdicts were given; 0: from before rules had numbers
    learner: int = 0  # which of our learners was measured; 0: from before they had numbers
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    bars: tuple[Bars, ...] = ()
    maps: tuple[Map, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: Texts = field(default=())
    takeaway: str = ""  # what came out, in one sentence
    command: str = ""  # which makes it again

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, allow_nan=False, ensure_ascii=False)

    def save(self, folder: Path) -> None:
        write_whole(folder / FILE, self.to_json().encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a record back; whatever is wrong with the file is one sentence."""
        path = folder / FILE if os.path.isdir(folder) else folder
        if not os.path.lexists(path):
            raise UserError(f"{plain(folder)} holds no {FILE}: give a folder that run, compare or reproduce made")
        content = read_json(path, "the record of a run, a comparison or a reproduction")
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise UserError(
                f"{plain(path)} is damaged, or was written by another version of d2dfl: run its command anew"
            )
        try:
            found: Self = read_record(cls, content)
        except (TypeError, ValueError) as error:
            raise UserError(f"{plain(path)} is not a record of findings: {plain(error)}") from None
        return found


def span(values: Iterable[int]) -> str:
    """Whole numbers in a sentence: the one they all are, or the least and the largest."""
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def spanned(values: Iterable[int], noun: str) -> str:
    """1 device, 25 devices, 5 to 25 devices."""
    found = list(values)
    return counted(found[0], noun) if len(set(found)) == 1 else f"{span(found)} {plural(noun)}"


def read_record(kind: Any, content: Any) -> Any:
    """A record of this kind from plain values, every field checked against its declared kind."""
    if not isinstance(content, dict):
        raise ValueError(f"{kind.__name__} cannot be {content!r:.40}")
    known = {item.name: item.type for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise ValueError(f"there is no field {name!r:.40} in {kind.__name__}")
        values[name] = _value(known[name], value, f"{kind.__name__}.{name}")
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return read_record(hint, value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        return tuple(_value(get_args(hint)[0], item, where) for item in value)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise ValueError(f"{where} cannot be {value!r:.40}")
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise ValueError(f"{where} holds {value!r:.40}")
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text, and could not be written again
    return value


def _same(what: str, *lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(f"the parts of {what!r:.80} differ in length")
