"""Every command with its options, from the command line itself."""

from collections.abc import Iterator

import click
import typer.main

from d2dfl.cli.app import app
from docsite.markdown import cell, code, table


def commands_page() -> str:
    """One section a command."""
    root = typer.main.get_command(app)
    parts = ["# Commands\n", (root.help or "").strip(), "", "Options before any command:\n", _options(root)]
    for path, command in _commands(root, ("d2dfl",)):
        parts += [
            f"## {' '.join(path[1:])}\n",
            f"```\n{_usage(path, command)}\n```\n",
            _help(command),
            "",
            _options(command),
        ]
    return "\n".join(parts)


def _commands(group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in getattr(group, "commands", {}).items():
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _usage(path: tuple[str, ...], command: click.Command) -> str:
    arguments = [item.human_readable_name for item in command.params if isinstance(item, click.Argument)]
    return " ".join([*path, "[OPTIONS]", *arguments])


def _help(command: click.Command) -> str:
    return (command.help or "").strip()


def _options(command: click.Command) -> str:
    rows = []
    for item in command.params:
        if isinstance(item, click.Argument):
            rows.append((code(item.human_readable_name), cell(getattr(item, "help", "") or "")))
        elif isinstance(item, click.Option) and not item.hidden:
            names = " ".join(code(name) for name in (*item.opts, *item.secondary_opts))
            default = item.default if item.show_default and item.default not in (None, False) else ""
            known = f" [default: {default}]" if default != "" and not callable(default) else ""
            rows.append((names, cell((item.help or "") + known)))
    return table(("option", "what it does"), rows) if rows else ""
