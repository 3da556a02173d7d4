"""Outputs where something of the user's stands: every output of every command on every kind of thing."""

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attack.cases import ALL, Case, content, copied, fifo, link, listening, several
from attack.odd_fields import DISCOVER, GRAPHS, LEARN, RUN, SMALL, settings
from attack.sandbox import Job, Outcome, Zygote, remove
from attack.verdict import LOST, REFUSED, SURVIVED, Tally, judged

Prepare = Callable[[Path], None]
NETWORK = ("network", *settings(*SMALL[:3]))
EXAMPLE = ("reproduce", "example", "--no-figures")
FULL = 2_000  # bytes that a file may have on a disk that is full
SHORT = ("discover-graphml", "discover-json", "network-json", "network-npz")  # may be shorter than that
# (name, arguments before the path, suffix): outputs that are one file
FILES = (
    ("discover-json", (*DISCOVER, "--json"), ".json"),
    ("discover-graphml", (*DISCOVER, "--graphml"), ".graphml"),
    *((f"discover-picture-{kind}", (*DISCOVER, "--picture"), f".{kind}") for kind in ("png", "svg", "pdf", "html")),
    ("graphs-json", (*GRAPHS, "--json"), ".json"),
    *((f"graphs-picture-{kind}", (*GRAPHS, "--picture"), f".{kind}") for kind in ("png", "svg", "pdf", "html")),
    ("network-npz", (*NETWORK, "--save"), ".npz"),
    ("network-json", (*NETWORK, "--save"), ".json"),
    ("report", ("report", "old", "--out"), ".html"),
)
# (name, arguments before the path): outputs that are a folder
FOLDERS = (
    ("discover-out", (*DISCOVER, "--out")),
    ("graphs-out", (*GRAPHS, "--out")),
    ("run-out", (*RUN, "--out")),
    ("compare-out", (*LEARN, "--log", "csv", "--out")),
    ("reproduce-out", (*EXAMPLE, "--out")),
)
# Files of our names that a user may have made by other means, or ours of another purpose.
OURS = (
    "results.json", "config.toml", "table.md", "curves.csv", "curves.png", "curves.svg", "graphs.html", "graphs.png", "findings.json",
    "log.csv", "checkpoint", "checkpoint.json", "checkpoint-3/0.pt", "checkpoints/mine/0.pt", "cells/mine.json", "failures/mine.txt",
    "graph.json", "graph.graphml", "graph.png", "graph.html", "network.npz", "comparison.json", "tensorboard/mine/events",
    "example/findings.json", "notes.txt", ".hidden",
)  # fmt: skip
FOREIGN = (
    "{}",
    "[]",
    "",
    '{"format": 1}',
    '{"format": 1, "plan": {"methods": [], "seeds": []}}',
    '{"made_by": "another program"}',
    "\udcff",
)


def _mode(path: str, mode: int) -> Prepare:
    return lambda folder: (folder / path).chmod(mode)


def _empty(path: str) -> Prepare:
    return lambda folder: (folder / path).mkdir(parents=True)


def _twin(path: str, other: str) -> Prepare:
    return lambda folder: os.link(folder / path, folder / other)


def _network(suffix: str) -> bytes:
    """A network file with this ending."""
    arrays = {"counts": [[1.0]], "threshold": [[1.0]], "trust": [[[1]]], "drop": [[0.0]]}
    if suffix == ".json":
        return json.dumps(arrays).encode()
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.array(values) for name, values in arrays.items()})
    return buffer.getvalue()


def _device(path: str) -> Prepare:
    def prepare(folder: Path) -> None:
        try:
            os.mknod(folder / path, 0o20666, os.makedev(1, 3))
        except OSError:  # only root may, and not everywhere
            os.mkfifo(folder / path)

    return prepare


def on_files(done: Path) -> Iterator[Case]:
    """Outputs that are one file."""
    for name, before, suffix in FILES:
        yield from _on_file(done, name, before, suffix)


def _on_file(done: Path, name: str, before: tuple[str, ...], suffix: str) -> Iterator[Case]:
    path = f"x{suffix}"
    old = (copied(done, "old"),) if name == "report" else ()

    def case(what: str, *steps: Prepare, given: str = "", may: tuple[str, ...] = (), **more: Any) -> Case:
        call = (*before, given or path)
        return Case(f"{name}-on-{what}", call, several(*old, *steps), may_change=may, **more)

    def there(at: str) -> Prepare:  # `report` replaces pages of ours alone, `network` networks, the others any file
        if before[0] == "network":
            return content(at, _network(suffix))
        return content(at, '<meta name="generator" content="d2dfl 0.1.0">') if old else content(at)

    refuse, survive = {"must_refuse": True}, {"must_survive": True}
    yield case("nothing", **survive)
    if old or before[0] == "network":
        yield case("foreign", content(path), **refuse)
        yield case("link-to-foreign", content("true"), link(path, "true"), **refuse)
    yield case("file", there(path), may=(path,), **survive)
    yield case("private", there(path), _mode(path, 0o600), may=(path,), **survive)
    yield case("shared", there(path), _mode(path, 0o666), may=(path,), **survive)
    yield case("read-only", there(path), _mode(path, 0o444), **refuse)
    yield case("link", there("true"), link(path, "true"), may=("true",), **survive)
    yield case("link-to-link", there("true"), link("one", "true"), link(path, "one"), may=("true",), **survive)
    yield case("link-to-private", there("true"), _mode("true", 0o600), link(path, "true"), may=("true",), **survive)
    yield case("link-to-folder", content("true/mine"), link(path, "true"), **refuse)
    yield case("dangling", link(path, "nowhere"))
    yield case("dangling-far", link(path, "no/where"), **refuse)
    yield case("loop", link(path, path), **refuse)
    yield case("folder", content(f"{path}/mine"), **refuse)
    yield case("empty-folder", _empty(path), **refuse)
    yield case("pipe", fifo(path), **refuse)
    yield case("socket", listening(path), **refuse)
    yield case("device", _device(path), **refuse)
    yield case("link-to-pipe", fifo("true"), link(path, "true"), **refuse)
    yield case("link-to-device", _device("true"), link(path, "true"), **refuse)
    yield case("hard-link", there(path), _twin(path, "twin"), may=(path,))
    yield case("no-folder", given=f"nodir/{path}", **({} if name == "report" else refuse))
    yield case("file-as-folder", content("plain"), given=f"plain/{path}", **refuse)
    yield case(
        "full-disk",
        there(path),
        may=(path,) if name in SHORT else (),
        file_size=FULL,
        **({} if name in SHORT else refuse),
    )
    yield case("brackets", _empty("a["), given=f"a[/red][bold]{path}", **survive)
    yield case("part", content(".d2dfl-0123456789abcdef.part"), **survive)
    yield case("own-part", content(f".{path}.1.part"), **survive)


def on_folders(done: Path) -> Iterator[Case]:
    """Outputs that are a folder."""
    for name, before in FOLDERS:
        yield from _on_folder(done, name, before)


def _on_folder(done: Path, name: str, before: tuple[str, ...]) -> Iterator[Case]:
    run = name in ("run-out", "compare-out", "reproduce-out")
    codes = (0, 1) if name == "reproduce-out" else (0,)

    def case(what: str, *steps: Prepare, given: str = "x", **more: Any) -> Case:
        return Case(f"{name}-on-{what}", (*before, given), several(*steps), codes=codes, **more)

    refuse, survive = {"must_refuse": True}, {"must_survive": True}
    yield case("nothing", **survive)
    yield case("deep", given="a/b/c", **survive)
    yield case("empty", _empty("x"), **survive)
    yield case("link-to-empty", _empty("true"), link("x", "true"), **survive)
    yield case("file", content("x"), **refuse)
    yield case("link-to-file", content("true"), link("x", "true"), **refuse)
    yield case("pipe", fifo("x"), **refuse)
    yield case("socket", listening("x"), **refuse)
    yield case("device", _device("x"), **refuse)
    yield case("dangling", link("x", "nowhere"))
    yield case("loop", link("x", "x"), **refuse)
    yield case("below-file", content("plain"), given="plain/x", **refuse)
    yield case("here", content("mine.txt"), given=".", **refuse)
    yield case("here-empty-name", content("mine.txt"), given="", **refuse)
    yield case("brackets", given="a[bold]b[/red]", **survive)
    yield case("all-ours", *(content(f"x/{path}") for path in OURS), **refuse)
    yield case("link-to-all-ours", *(content(f"true/{path}") for path in OURS), link("x", "true"), **refuse)
    for path in OURS:
        yield case(f"mine-{path}", content(f"x/{path}"), **refuse)
    for number, text in enumerate(FOREIGN):
        yield case(f"foreign-{number}", content("x/run.json", text), content("x/notes.txt"), **refuse)
    yield case(
        "links-inside",
        content("mine"),
        *(_inside(f"x/{path}", "mine") for path in ("results.json", "config.toml", "run.json")),
        **refuse,
    )
    yield case("full-disk", file_size=FULL, may_leave=True)
    if run:
        for what, more in (
            ("resume-foreign", content("x/run.json", FOREIGN[4])),
            ("resume-mine", content("x/notes.txt")),
        ):
            yield Case(f"{name}-{what}", (*before, "x", "--resume"), more, must_refuse=True, codes=codes)


def _inside(path: str, target: str) -> Prepare:
    def prepare(folder: Path) -> None:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).symlink_to(folder / target)

    return prepare


def on_runs(done: Path, half: Path) -> Iterator[Case]:
    """Folders that hold a run: a finished one, one that was cut, and one in which the user keeps things."""
    mine = tuple(
        content(f"out/{path}")
        for path in ("notes.txt", "checkpoint-mine/0.pt", "cells/mine.json", ".hidden", "sub/results.json")
    )
    for what, source in (("done", done), ("cut", half)):
        for name, call in (
            ("another-compare", (*LEARN, "--set", "federation.batch=3")),
            ("another-run", (*RUN, "--set", "federation.batch=3")),
            ("discover", (*DISCOVER, "--out", "out")),
            ("graphs", (*GRAPHS, "--out", "out")),
            ("reproduce", (*EXAMPLE, "--out", "out")),
            ("another-resume", (*LEARN, "--set", "federation.batch=3", "--resume")),
            ("from-itself", ("run", "--from", "out", "--out", "out")),
        ):
            yield Case(f"{name}-on-{what}", call, several(copied(source, "out"), *mine), must_refuse=True, codes=(0, 1))
        yield Case(
            f"resume-with-mine-on-{what}",
            (*LEARN, "--resume"),
            several(copied(source, "out"), *mine),
            may_change=ALL,
            must_survive=True,
            check=_mine_there,
        )
    default = tuple(part for number, part in enumerate(LEARN) if part != "--out" and LEARN[number - 1] != "--out")
    again = several(_empty("runs"), copied(done, "runs/compare"))
    yield Case("default-twice", (*default, "--set", "federation.batch=3"), again, must_survive=True, check=_numbered)
    taken = several(again, content("runs/compare-2/mine"))
    yield Case("default-thrice", (*default, "--set", "federation.batch=3"), taken, must_survive=True, check=_numbered)
    foreign = content("runs/compare/results.json")
    yield Case("default-on-foreign", (*default, "--set", "federation.batch=3"), foreign)
    same = several(copied(done, "out"))
    yield Case("same-again", LEARN, same)
    yield Case(
        "report-figures-on-mine",
        ("report", "old", "--out", "r.html", "--figures"),
        several(copied(done, "old"), content("r-figures/mine.txt"), content("r-figures/compare/mine.pdf")),
    )
    yield Case("stragglers", (*LEARN, "--set", "federation.stragglers=4"), must_refuse=True)
    yield Case("scheme", (*LEARN, "--scheme", "nosuch"), must_refuse=True)
    yield Case("model", (*LEARN, "--set", "federation.model=nosuch"), must_refuse=True)


def _mine_there(folder: Path, outcome: Outcome) -> str:
    """The user's own files in a run folder."""
    lost = [
        path
        for path in ("notes.txt", "checkpoint-mine/0.pt", "cells/mine.json", ".hidden", "sub/results.json")
        if not (folder / "out" / path).is_file() or (folder / "out" / path).read_text() != "the user's own\n"
    ]
    return f"the user's files in the run folder: {lost}" if lost else ""


def _numbered(folder: Path, outcome: Outcome) -> str:
    """A second run in the default folder takes a number."""
    found = [path.parent.name for path in (folder / "runs").glob("compare-*/results.json")]
    return "" if found else f"no numbered folder: {sorted(os.listdir(folder / 'runs'))}"


def cases(done: Path, half: Path) -> list[Case]:
    """All of them."""
    return [*on_files(done), *on_folders(done), *on_runs(done, half)]


TWICE = (
    ("compare", LEARN),
    ("compare-cnn", (*LEARN, "--set", "federation.model=cnn")),
    ("reproduce", (*EXAMPLE, "--out", "out")),
)


def together(zygote: Zygote, tally: Tally, keep: Path, times: int = 3) -> None:
    """Two equal calls at once in one folder: one works, the other is refused or comes later; no file is mixed."""
    for name, call in TWICE:
        for number in range(times):
            folder = zygote.place / f"together-{name}-{number}"
            folder.mkdir()
            for _ in range(2):
                zygote.submit(Job(list(call), folder))
            outcomes = [zygote.result()[1] for _ in range(2)]
            found = [judged(outcome) for outcome in outcomes]
            words = sorted(item[0] for item in found)
            good = words in ([REFUSED, SURVIVED], [SURVIVED, SURVIVED]) and _whole(folder / "out")
            left = [path.name for path in folder.rglob(".d2dfl-*")]
            case = f"together-{name}-{number}"
            if good and not left:
                tally.count(case, SURVIVED)
                remove(folder)
                continue
            kept = keep / case
            remove(kept)
            shutil.copytree(folder, kept)
            tally.count(case, LOST, f"{found}; left {left}", f"twice at once: d2dfl {' '.join(call)}  (in {kept})")


def _whole(folder: Path) -> bool:
    """Whether the results of a run can be read."""
    try:
        for path in folder.rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(folder.rglob("findings.json"))
