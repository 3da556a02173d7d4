"""Run tutorials: their Python in one namespace, their commands through the command line, in an empty folder.

The same for notebooks, as they are on the site: cells that are Python, and cells whose lines begin with ! and call d2dfl.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docsite import ROOT
from docsite.notebooks import Block, blocks

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
FOLDER = ROOT / "docs" / "tutorials"


def tutorials() -> list[Path]:
    """Those whose outputs are written here; docs/own-data.md, the first of them, has a test of its own."""
    return [path for path in sorted(FOLDER.glob("*.md")) if path.name != "index.md"]


def executed(book: Mapping[str, Any]) -> Iterator[tuple[str, str | None, str]]:
    """Every code cell of a notebook: its source, what it says that it prints (None: nothing is said), what it prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = cell["source"]
        lines = source.splitlines()
        if all(line.startswith("!") for line in lines):
            printed = _commands("\n".join(line.removeprefix("!") for line in lines))
        else:
            printed = _python(source, names)
        told = "".join(output["text"] for output in cell["outputs"]) if cell["outputs"] else None
        yield source, told, printed


def outputs(text: str) -> Iterator[tuple[Block | None, str]]:
    """What every block prints, with the block of the text that should say so, if there is one."""
    names: dict[str, object] = {"__name__": "__main__"}
    parts = list(blocks(text))
    for block, after in zip(parts, [*parts[1:], None], strict=True):
        if block.kind not in ("python", "console"):
            continue
        printed = _python(block.content, names) if block.kind == "python" else _commands(block.content)
        yield (after if after is not None and after.kind == "output" else None), printed


def _python(source: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "tutorial", "exec"), names)
    return out.getvalue()


def _commands(source: str) -> str:
    """Lines that begin with d2dfl; tables and sentences, wherever they are printed."""
    from d2dfl.cli.app import main
    from d2dfl.cli.output import console

    printed = []
    for line in source.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["d2dfl"]:
            raise SystemExit(f"a tutorial can only call d2dfl: {line}")
        before, file, width = sys.argv, console.file, console.width
        with contextlib.redirect_stdout(io.StringIO()) as out:
            sys.argv, console.file, console.width = words, out, 100
            try:
                main()
            except SystemExit as ended:
                if ended.code:
                    raise SystemExit(f"{line} ended with {ended.code}: {out.getvalue()}") from None
            finally:
                sys.argv, console.file, console.width = before, file, width
        printed.append(out.getvalue())
    return "".join(printed)


def tidy(text: str) -> str:
    """Without spaces at the ends of lines, empty lines at the ends, and how long something took."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def alike(told: str, printed: str, share: float = 0.02, least: float = 0.02) -> bool:
    """Whether two texts have the same words, and numbers that differ by no more than rounding on another machine."""
    texts = [NUMBER.split(" ".join(tidy(text).replace("─", "").split())) for text in (told, printed)]
    numbers = [[float(found.replace(",", "")) for found in NUMBER.findall(tidy(text))] for text in (told, printed)]
    if [part.split() for part in texts[0]] != [part.split() for part in texts[1]] or len(numbers[0]) != len(numbers[1]):
        return False
    return all(abs(a - b) <= max(least, share * abs(a)) for a, b in zip(*numbers, strict=True))


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in a folder that is gone afterwards."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def rewritten(text: str) -> str:
    """The tutorial with what its blocks print now."""
    changes = [(block, tidy(printed)) for block, printed in outputs(text) if block is not None]
    for block, printed in reversed(changes):
        text = text[: block.start] + printed + text[block.end :]
    return text


def rewrite_all() -> None:
    """Write what tutorials print into them."""
    for path in tutorials():
        with empty_folder():
            new = rewritten(path.read_text(encoding="utf-8"))
        path.write_text(new, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
