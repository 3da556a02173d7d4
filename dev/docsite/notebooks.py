"""Tutorials: their blocks in order, as a notebook, and as what is run."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A piece of a tutorial."""

    kind: str  # text, python, console, output
    content: str
    start: int  # where its content begins in the text
    end: int


def blocks(text: str) -> Iterator[Block]:
    """Words, Python, commands, and what they print: a fence without a language."""
    place = 0
    for match in FENCE.finditer(text):
        if text[place : match.start()].strip():
            yield Block("text", text[place : match.start()], place, match.start())
        kind = {"python": "python", "console": "console", "": "output"}.get(match[1], "text")
        content = match[0] if kind == "text" else match[2]
        yield Block(kind, content, match.start(2), match.end(2))
        place = match.end()
    if text[place:].strip():
        yield Block("text", text[place:], place, len(text))


def notebook(text: str, source: str) -> str:
    """The same as a notebook; links to other pages are left out, since it is read alone."""
    cells: list[dict[str, Any]] = []
    for number, block in enumerate(blocks(text)):
        lines = block.content.rstrip("\n")
        mark = {"id": f"block-{number}", "metadata": {}}
        if block.kind in ("python", "console"):
            if block.kind == "console":
                lines = "\n".join(f"!{line}" for line in lines.splitlines())
            cells.append({**mark, "cell_type": "code", "execution_count": None, "outputs": [], "source": lines})
        elif block.kind == "output" and cells and cells[-1]["cell_type"] == "code":
            cells[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": block.content}]
        else:
            words = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", lines.strip())
            cells.append({**mark, "cell_type": "markdown", "source": words})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "d2dfl": {"source": source}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
