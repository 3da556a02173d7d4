"""How a function becomes a command: its records of options become options, and every command takes --plugin."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer
from click import get_current_context

from d2dfl.errors import UserError

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", help="Python file that registers datasets, models, schemes, methods or metrics.", show_default=False
    ),
]
PLUGINS = Parameter("plugin", Parameter.KEYWORD_ONLY, default=None, annotation=Plugins)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as Typer wants it: a parameter whose type is a record stands for the options that are its fields."""
    given = list(inspect.signature(function).parameters.values())
    records: dict[str, Any] = {item.name: item.annotation for item in given if is_dataclass(item.annotation)}

    @functools.wraps(function)
    def run(**values: Any) -> None:
        _check_values(values)
        _refuse_nan(values)
        load_plugins(values.pop("plugin") or [])
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        function(**values)

    parameters = [one for item in given for one in _spread(item)] + [PLUGINS]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it; types know no such field
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def _check_values(values: Mapping[str, Any]) -> None:
    """Refuse an option in the place of a value: `--picture --reference` would draw into a file of that name."""
    for value in values.values():
        if isinstance(value, str | Path) and str(value).startswith("--"):
            raise UserError(swallowed(str(value)))


def swallowed(option: str) -> str:
    """A sentence about an option that was taken for the value of the one before it."""
    return f"{option:.80} stands where the option before it wants its value: give that one first"


def _refuse_nan(values: dict[str, Any]) -> None:
    """It is in every range: comparisons with it are false."""
    for option in get_current_context().command.params:
        if values.get(option.name or "") != values.get(option.name or ""):
            raise UserError(f"Invalid value for {option.opts[0]!r}: nan is no number")


def _spread(item: Parameter) -> list[Parameter]:
    """A parameter, or one for every field of its record."""
    if not is_dataclass(item.annotation):
        return [item.replace(kind=Parameter.KEYWORD_ONLY)]
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(item.annotation)
    ]


def load_plugins(paths: Sequence[Path]) -> None:
    """Run files of the user's own, and look at what they registered."""
    if not paths:
        return
    from d2dfl.discovery.methods import METHODS, Method
    from d2dfl.plugins import load_file

    for path in paths:
        load_file(path)
        if sys.stdout.closed:
            raise UserError(f"{path} closes standard output: leave it open")
        odd = [name for name, method in METHODS.items() if not isinstance(method, Method) or method.name != name]
        if odd:
            raise UserError(f"{path} registers {odd[0]!r:.80} as a method: give a Method of this name")
