"""Commands that list what there is: methods, fields. Plain text, so that nothing large is loaded."""

import dataclasses
import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Annotated, get_type_hints

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.command import Json
from d2dfl.cli.commands.options import Preset
from d2dfl.config.presets import preset
from d2dfl.config.section import allowed
from d2dfl.discovery.methods import METHODS
from d2dfl.errors import UserError

WIDEST = 28  # characters of a column before the last


def methods(as_json: Json = False) -> None:
    """List the methods."""
    if as_json:
        plain = ("name", "title", "summary", "joint", "learns", "by_default", "reference")
        _write_json([{name: getattr(method, name) for name in plain} for method in METHODS.values()])
        return
    _write_table(("method", "what it does"), [(method.name, method.summary) for method in METHODS.values()])


def fields(
    word: Annotated[
        str | None,
        typer.Argument(
            help="Only settings with this in their name, choices or help.",
            show_default=False,
            autocompletion=completion.beginning_with(completion.sections),
        ),
    ] = None,
    preset_name: Preset = "best",
    as_json: Json = False,
) -> None:
    """List every setting with its value in a preset, and what it may be."""
    found = [row for row in _settings(preset_name) if not word or any(word.lower() in cell.lower() for cell in row)]
    if not found:
        raise UserError(f"no setting has {word!r:.80} in it: `d2dfl fields` lists all")
    if as_json:
        _write_json([dict(zip(("setting", "value", "may_be", "help"), row, strict=True)) for row in found])
        return
    _write_table(("setting", "value", "may be", "what it is"), found)


def _settings(preset_name: str) -> list[tuple[str, str, str, str]]:
    """Name, value, what it may be, help."""
    rows, config = [], preset(preset_name)
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        hints = get_type_hints(type(part))
        for field in dataclasses.fields(part):
            bounds = allowed(field, hints[field.name])
            value = str(getattr(part, field.name))
            rows.append((f"{section.name}.{field.name}", value, bounds, str(field.metadata["help"])))
    return rows


def _write_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def _write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of text; on a terminal long cells are wrapped, elsewhere every row is one line."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head) - 1)]
    wrapped = sys.stdout.isatty()
    if wrapped:
        widths = [min(width, WIDEST) for width in widths]
    last = max(20, shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)) if wrapped else 10_000
    for row in (head, ["-" * width for width in widths] + ["-" * len(head[-1])], *rows):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, [*widths, last], strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            line = "  ".join(part.ljust(width) for part, width in zip(parts, [*widths, 0], strict=True))
            sys.stdout.write(line.rstrip() + "\n")
