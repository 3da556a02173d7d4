"""The Python reference: every public name with its signature and what its docstring says."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import d2dfl
from docsite.markdown import cell, code, table
from docsite.records import comments

# Beside the front door: what plug-ins and learners of one's own are made of.
FURTHER = {
    "Plug-ins": (
        "d2dfl.discovery.methods.Method",
        "d2dfl.discovery.task.Task",
        "d2dfl.discovery.task.LinkChoice",
        "d2dfl.config.metrics.Metric",
        "d2dfl.data.catalogue.Entry",
        "d2dfl.federation.schemes.Scheme",
        "d2dfl.federation.losses.Loss",
        "d2dfl.energy.radios.Radio",
    ),
    "The game": ("d2dfl.env.parallel.GraphDiscovery", "d2dfl.env.vector.VectorGame"),
    "Records": (
        "d2dfl.discovery.evaluation.Evaluation",
        "d2dfl.federation.federated.Federated",
        "d2dfl.federation.state.Curves",
        "d2dfl.experiment.cells.results.Row",
        "d2dfl.report.findings.Findings",
    ),
}

ARRAY = re.compile(r"(?:numpy\.)?ndarray\[tuple\[(?:Any|int), \.\.\.\], (?:numpy\.)?dtype\[(?:numpy\.)?\w+\]\]")
OBJECT = re.compile(r"<(?:function )?([\w.]+)(?: object)? at 0x\w+>")  # a default that says where it lies in memory


def api_page() -> str:
    """The front door first."""
    parts = ["# Python\n", inspect.cleandoc(f"```python\n{d2dfl.__doc__.partition(chr(10))[2].strip()}\n```"), ""]
    names = sorted(d2dfl.__all__, key=lambda name: (name[0].isupper(), name.lower()))
    parts += ["## The front door\n", *(_entry(f"d2dfl.{name}", getattr(d2dfl, name)) for name in names)]
    for heading, paths in FURTHER.items():
        parts += [f"## {heading}\n", *(_entry(path, named(path)) for path in paths)]
    return "\n".join(parts)


def named(path: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _entry(path: str, thing: Any) -> str:
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        kinds = ", ".join(code(name) for name in thing)
        return f"### {code(path)}\n\nThe registry of methods: {kinds}.\n"
    parts = [f"### {code(path)}\n", _signature(path.rpartition(".")[2], thing), doc(thing), ""]
    if inspect.isclass(thing):
        parts += [_fields(thing), *_members(thing)]
    return "\n".join(parts)


def doc(thing: Any) -> str:
    """A docstring as Markdown; what is indented in it stays as it is."""
    text = inspect.getdoc(thing) or ""
    if not text:
        raise SystemExit(f"{thing!r} has no docstring")
    return re.sub(r"(?<!`)<(?=\w)", "&lt;", text)


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or issubclass(thing, Exception)):
        return ""  # its fields are listed
    lines = [f"{name}{_arguments(thing)}"]
    return "```python\n" + "\n".join(lines) + "\n```\n"


def _arguments(thing: Any) -> str:
    """As they stand in the code, one a line where there are many."""
    signature = inspect.signature(thing)
    kept = [item for item in signature.parameters.values() if item.name != "self"]
    text = str(signature.replace(parameters=kept))
    text = OBJECT.sub(r"\1", text).replace("~", "").replace("'", "")
    text = ARRAY.sub("array", re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text))  # modules of types
    return text if len(text) < 100 else re.sub(r", (?=\w+(?::|=)|\*)", ",\n    ", text).replace("(", "(\n    ", 1)


def _fields(thing: Any) -> str:
    if not dataclasses.is_dataclass(thing):
        return ""
    said = comments(thing)
    rows = [
        (code(item.name), cell(code(_kind(item.type))), cell(said.get(item.name, "")))
        for item in dataclasses.fields(thing)
        if not item.name.startswith("_")
    ]
    return table(("field", "kind", ""), rows) if rows else ""


def _kind(hint: Any) -> str:
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text.replace("'", ""))
    text = re.sub(r"\b(?:numpy|collections|typing)\.(?:\w+\.)*", "", text)
    return ARRAY.sub("array", text)


def _members(thing: Any) -> Iterator[str]:
    """Public methods and properties of its own, in the order of the code."""
    for name, member in vars(thing).items():
        inside = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        inside = getattr(inside, "fget", None) or getattr(inside, "func", None) or inside
        if name.startswith("_") or not inspect.isfunction(inside) or not inspect.getdoc(inside):
            continue
        plain = not isinstance(member, property) and not hasattr(member, "func")
        head = f"{name}{_arguments(getattr(thing, name))}" if plain else name
        yield f"```python\n{thing.__name__}.{head}\n```\n\n{doc(inside)}\n"
