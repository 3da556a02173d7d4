"""Every sentence with which d2dfl refuses something, from the code: nearly all say what to do behind a colon."""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import d2dfl
from d2dfl.errors import MissingExtraError
from docsite import ROOT
from docsite.advice import advice
from docsite.markdown import cell, table

EXTRA, ROW = "MissingExtraError", "RowError"
ERRORS = (
    "UserError",
    "TakenError",
    "UnknownDeviceError",
    "UnknownNameError",
    "NotARunFolderError",
    "GivenUpError",
    EXTRA,
    ROW,
)
AREAS = {
    "cli": "The command line",
    "config": "Settings",
    "data": "Data",
    "network": "Networks, links, trust",
    "partition": "Partitions",
    "discovery": "Discovery",
    "transfer.py": "The exchange",
    "federation": "Training",
    "experiment": "Runs and run folders",
    "paper": "The reproduction",
    "report": "The page and figures",
    "env": "The game",
    "peer": "Devices",
    "live": "The live page",
}


def messages_page() -> str:
    """By area, then by text."""
    parts = [INTRODUCTION]
    home = Path(d2dfl.__file__).parent
    found: dict[str, set[str]] = {}
    for path in sorted(home.rglob("*.py")):
        place = path.relative_to(home).parts[0]
        found.setdefault(AREAS.get(place, "Everything else"), set()).update(sentences(path))
    for area in (*AREAS.values(), "Everything else"):
        rows = [_split(text) for text in sorted(found.get(area, ()), key=str.lower)]
        if rows:
            parts.append(f"## {area}\n\n{table(('what it says', 'what to do'), rows)}")
    return "\n".join(parts)


def sentences(path: Path) -> Iterator[str]:
    """Of one file; what is filled in shows as …"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    says = {node.name: _returned(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            made = MADE.get(node.func.id)
            texts = [made(node.args)] if made else _texts(node.args[0], says)
            yield from (text.removeprefix("…; ") for text in texts if re.search(r"\w{3}", text))


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    return [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]


def _texts(node: ast.expr, says: Mapping[str, Sequence[ast.expr]]) -> list[str]:
    """Every sentence that an expression may be: one of two, or what a function of the same file returns."""
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, says), *_texts(node.orelse, says)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in says:
        return [text for value in says[node.func.id] for text in _texts(value, {})]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in itertools.product(*(_filled(part, says) for part in node.values))]
    return [_text(node)]


def _filled(part: ast.expr, says: Mapping[str, Sequence[ast.expr]]) -> list[str]:
    """What stands in one place of a text: sentences if that is what they are, else …"""
    if isinstance(part, ast.FormattedValue):
        found = _texts(part.value, says)
        return found if any(": " in text for text in found) else ["…"]
    return [_text(part)]


def _missing(arguments: list[ast.expr]) -> str:
    """The sentence that this error makes of its arguments."""
    feature, package, extra = map(_text, arguments)
    return str(MissingExtraError(feature, package, extra))


def _in_row(arguments: list[ast.expr]) -> str:
    """Likewise."""
    what, _, advice = map(_text, arguments)
    return f"{what} in row …: {advice}"


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…"


def _split(text: str) -> tuple[str, str]:
    """What is wrong, and what would be right: behind the last colon, or as advice.py has it."""
    wrong, _, right = text.rpartition(": ")
    wrong, right = (wrong, right) if wrong else (text, "")
    if right.strip("… "):
        return cell(wrong), cell(right)
    return cell(wrong), cell(advice(text))


def _exit_codes() -> str:
    """The table of exit codes, which docs/reliability.md holds."""
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    return text.split("## How it ends\n")[1].split("\n\n")[0]


MADE = {EXTRA: _missing, ROW: _in_row}  # of arguments by an error itself

INTRODUCTION = f"""# Exit codes and messages

{_exit_codes()}

Bad input is one sentence on standard error that begins with `d2dfl:`. It names what was given, and behind the colon what would be
right. In Python the same sentence is a `d2dfl.UserError`. A sentence below has … where something is filled in.
"""
