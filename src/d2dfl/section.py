"""Sections of a configuration: frozen dataclasses, one field and one help line each, checked when built."""

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from d2dfl.errors import UserError


def option(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A configuration field with its help line and its inclusive range."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


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
            raise UserError(f"{cls._label(name)} cannot be {text!r}: give {_wanted(hint)}") from None


def _hint(cls: type, name: str) -> Any:
    return typing.get_type_hints(cls)[name]


def _wanted(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(typing.get_args(hint))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(hint, "a text")


def _check(label: str, value: Any, hint: Any, limits: Mapping[str, Any]) -> None:
    if typing.get_origin(hint) is Literal:
        good = value in typing.get_args(hint)
    elif hint is float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    elif hint is int:
        good = isinstance(value, int) and not isinstance(value, bool)
    else:
        good = isinstance(value, hint)
    if not good:
        raise UserError(f"{label} cannot be {value!r}: give {_wanted(hint)}")
    low, high = limits["low"], limits["high"]
    if (low is not None and value < low) or (high is not None and value > high):
        between = f"at least {low}" if high is None else f"at most {high}" if low is None else f"from {low} to {high}"
        raise UserError(f"{label} cannot be {value!r}: give {_wanted(hint)} {between}")
