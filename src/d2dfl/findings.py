"""What an experiment or a comparison found, as one plain record: tables, verdicts, curves, bars, maps, pictures.

Everything that is shown (terminal, figures, the web page) is made from this record, and nothing in it depends on when or
how fast it was measured: the same cells give the same bytes.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from d2dfl.errors import UserError
from d2dfl.network.files import write_whole

FORMAT = 1
FILE = "findings.json"
Texts = tuple[str, ...]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """Cells as they are to be read; the first column is left, the others right aligned."""

    title: str
    columns: Texts
    rows: tuple[Texts, ...]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """One number of the paper beside ours."""

    quantity: str
    system: str  # who was measured: "paper's learner" or "ours"
    paper: str  # as the paper says it
    ours: str  # mean and confidence interval over seeds
    verdict: str  # reproduced, direction only, not reproduced


@dataclass(frozen=True)
class Line:
    """One method's curve: mean over seeds and a confidence band."""

    name: str  # a method's name, or another series
    title: str
    x: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Bars:
    """Stacked bars: parts[part][bar]."""

    title: str
    unit: str
    bars: Texts
    parts: Texts
    values: tuple[Numbers, ...]


@dataclass(frozen=True)
class Link:
    """What moves over one link."""

    transmitter: int
    receiver: int
    loss: float  # probability
    trusted: int  # partitions
    amounts: Numbers  # [partition] datapoints sent


@dataclass(frozen=True)
class Layer:
    """The graph of one method on a map."""

    name: str
    title: str
    after: tuple[Numbers, ...]  # [device][partition] expected datapoints after the exchange
    satisfied: tuple[int, ...]  # [device] partitions that meet their threshold
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Map:
    """Devices in the plane, and the graph of each method over them."""

    title: str
    partitions: Texts
    positions: tuple[Numbers, ...]  # [device] metres
    cluster: tuple[int, ...]  # [device] reliable cluster
    threshold: tuple[Numbers, ...]  # [device][partition]
    before: tuple[Numbers, ...]  # [device][partition] datapoints
    layers: tuple[Layer, ...]


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
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    bars: tuple[Bars, ...] = ()
    maps: tuple[Map, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: Texts = field(default=())

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, allow_nan=False, ensure_ascii=False)

    def save(self, folder: Path) -> None:
        write_whole(folder / FILE, self.to_json().encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a record back; whatever is wrong with the file is one sentence."""
        path = folder / FILE if folder.is_dir() else folder
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{folder} holds no {FILE}: give a folder that run, compare or reproduce made") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is not readable as JSON: {error}") from None
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise UserError(f"{path} was written by another version of d2dfl")
        try:
            found: Self = _read(cls, content)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise UserError(f"{path} is not a record of findings: {error}") from None
        return found


_PARTS: dict[str, type] = {
    "verdicts": Verdict,
    "tables": Table,
    "charts": Chart,
    "lines": Line,
    "bars": Bars,
    "maps": Map,
    "layers": Layer,
    "links": Link,
    "pictures": Picture,
}


def _read(kind: Any, content: dict[str, Any]) -> Any:
    """A record of this kind from plain values, every field checked against its declared kind."""
    known = {item.name: item for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise ValueError(f"there is no field {name!r} in {kind.__name__}")
        values[name] = _value(kind, name, value, known[name].type)
    return kind(**values)


def _value(kind: type, name: str, value: Any, hint: Any) -> Any:
    part = _PARTS.get(name)
    if part is not None and kind is not Bars:
        return tuple(_read(part, item) for item in value)
    if hint is str or hint is int or hint is float:
        wanted = (int, float) if hint is float else hint
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ValueError(f"{kind.__name__}.{name} cannot be {value!r}")
        return value
    if not isinstance(value, list):
        raise ValueError(f"{kind.__name__}.{name} is not a list")
    return _frozen(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, str | int | float):
        return value
    raise ValueError(f"a list holds {value!r}")
