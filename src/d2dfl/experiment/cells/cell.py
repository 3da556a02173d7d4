"""What is measured: points, contenders and seeds make cells.

A cell is one contender at one point with one seed. Its configuration says all about it, so that plain values can travel
to a worker, and name it in a run folder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.config.sections.learning import SUPERVISED

Values = dict[str, Any]  # what was measured of a cell, as JSON takes it


@dataclass(frozen=True, eq=False)
class Contender:
    """A method with the settings it runs under."""

    name: str
    title: str
    method: str
    preset: str = "paper"
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Point:
    """One place of a sweep, or the only one where nothing is swept."""

    name: str
    settings: Mapping[str, Any]  # on top of the preset; "section.field" -> value
    paradigm: str = SUPERVISED
    contenders: tuple[Contender, ...] = ()
    value: float = 0.0  # where it stands on the axis of a sweep

    def config(self, contender: Contender) -> Config:
        """What this contender runs with here."""
        return preset(contender.preset, self.paradigm).with_(**{**self.settings, **contender.changes})


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    point: str
    contender: str
    method: str
    seed: int
    config: Config
    trains: bool = True  # False: it ends with the exchange

    def to_plain(self, placed: bool) -> dict[str, Any]:
        """Plain values; `placed`: also where it belongs, for a measure that asks for it."""
        where: dict[str, Any] = {"point": self.point, "contender": self.contender} if placed else {}
        ends = {} if self.trains else {"trains": False}
        return {**where, **ends, "method": self.method, "seed": self.seed, "config": self.config.to_dict()}

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Cell":
        changes = {
            f"{section}.{name}": value for section, fields in values["config"].items() for name, value in fields.items()
        }
        names = (values.get("point", ""), values.get("contender", ""), values["method"], values["seed"])
        return cls(*names, Config().with_(**changes), values.get("trains", True))


Measure = Callable[[Sequence[Cell]], list[Values]]
