"""Sections of a configuration: frozen dataclasses, one field and one help line each, checked when built."""

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from d2dfl.errors import UserError

LONGEST = 4096  # characters of a text: no name or path is longer


def option(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    names: Mapping[str, object] | None = None,
) -> Any:
    """A configuration field with its help line and, for numbers, its lowest and highest sensible value.

    `names` is a registry, whose names the field may hold: also those that a plug-in adds.
    """
    if isinstance(default, int | float) and not isinstance(default, bool) and (low is None or high is None):
        raise TypeError(f"a number needs its lowest and its highest value: {help}")
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high, "names": names})


def allowed(field: "dataclasses.Field[Any]", hint: Any) -> str:
    """What a field may hold, in a few characters, for lists of settings."""
    choices = _choices(hint, field.metadata)
    if choices:
        return ", ".join(choices)
    if field.metadata["low"] is not None:
        return f"{_number(field.metadata['low'])} to {_number(field.metadata['high'])}"
    return {bool: "true, false"}.get(hint, "text")


@dataclass(frozen=True)
class Section:
    """Base of all sections: checks every field against its type, its choices and its range."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(
                self._label(field.name),
                getattr(self, field.name),
                _hint(type(self), field.name),
                field.metadata,
            )
            if (
                _hint(type(self), field.name) is float
            ):  # 1 and 1.0 are two types to compiled code, which is made for one
                object.__setattr__(self, field.name, float(getattr(self, field.name)))

    @classmethod
    def _label(cls, name: str) -> str:
        return f"{cls.__name__.removesuffix('Config').lower()}.{name}"

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """The value that `text` stands for in the field `name`."""
        hint = _hint(cls, name)
        try:
            if hint is bool:
                return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
            return hint(text) if hint in (int, float) else text
        except (KeyError, ValueError):
            raise UserError(f"{cls._label(name)} cannot be {_shown(text)}: give {_wanted(hint)}") from None


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _hint(cls: type, name: str) -> Any:
    return _hints(cls)[name]


def _choices(hint: Any, limits: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that a field may hold, of a closed set or of a registry; none where it may hold any text or number."""
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else tuple(limits["names"] or ())


def words_of(section: type[Section], name: str) -> tuple[str, ...]:
    """What a shell may offer for a field: the words that it may hold; none where it may be any text or number."""
    field = next(field for field in dataclasses.fields(section) if field.name == name)
    hint = _hint(section, name)
    return ("true", "false") if hint is bool else _choices(hint, field.metadata)


def _wanted(hint: Any, choices: tuple[str, ...] = ()) -> str:
    if choices:
        return "one of " + ", ".join(choices)
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(hint, "a text")


def _check(label: str, value: Any, hint: Any, limits: Mapping[str, Any]) -> None:
    choices = _choices(hint, limits)
    if choices:
        good = isinstance(value, str) and value in choices
    elif hint is float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    elif hint is int:
        good = isinstance(value, int) and not isinstance(value, bool)
    else:
        good = isinstance(value, hint)
    low, high = limits["low"], limits["high"]
    between = "" if low is None else f" from {_number(low)} to {_number(high)}"
    if not good or (low is not None and not low <= value <= high):
        raise UserError(f"{label} cannot be {_shown(value)}: give {_wanted(hint, choices)}{between}")
    if isinstance(value, str) and (len(value) > LONGEST or not value.isprintable()):
        raise UserError(f"{label} cannot be {_shown(value)}: give a text of at most {LONGEST:,} printable characters")


def _number(value: float) -> str:
    """A bound as people write it."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _shown(value: Any) -> str:
    """A value in a sentence; a long one is cut."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."
