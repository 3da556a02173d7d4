"""Odd inputs: every field (odd_fields.py), every option, plug-ins, and run folders that were edited by hand."""

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from attack import odd_values as values
from attack.cases import ALL, Case, content, copied, fifo, link, listening, several
from attack.odd_fields import (
    DISCOVER,
    GRAPHS,
    LEARN,
    RUN,
    SMALL,
    TRAINED,
    by_bounds,
    by_pairs,
    by_set,
    by_toml,
    settings,
    shuffled,
)
from attack.sandbox import Job, Zygote

SUFFIXES = {
    "save": ".npz",
    "picture": ".png",
    "graphml": ".graphml",
    "json_file": ".json",
    "network": ".json",
    "config_file": ".toml",
}
BASES: dict[str, tuple[str, ...]] = {
    "discover": DISCOVER,
    "compare-graphs": GRAPHS,
    "run": RUN,
    "compare": LEARN,
    "network": ("network", "--save", "n.npz", *settings(*SMALL[:3])),
    "reproduce": ("reproduce", "example", "--out", "out"),
    "report": ("report", "folder", "--out", "r.html"),
    "fields": ("fields",),
    "methods": ("methods",),
    "data list": ("data", "list"),
    "data info": ("data", "info", "digits"),
    "data path": ("data", "path", "digits"),
}  # fmt: skip
KEPT = ("plugin", "settings", "again")  # have families of their own


@cache
def options() -> tuple[tuple[str, str, str, str], ...]:
    """(command, option, its parameter, its type) of every command that has a base."""
    import typer

    from d2dfl.cli.app import app

    found = []

    def walk(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}".strip())
        for item in command.params if path in BASES else ():
            if item.name not in KEPT and not getattr(item, "is_flag", False):
                name = max(item.opts, key=len) if item.param_type_name == "option" else ""
                found.append((path, name, item.name, item.type.name))

    walk(typer.main.get_command(app), "")
    return tuple(found)


def paths_there(suffix: str) -> Callable[[Path], None]:
    """A folder in which every kind of thing stands, under the names of `values.PATHS`."""

    def modes(folder: Path) -> None:
        (folder / f"private{suffix}").chmod(0o600)
        (folder / f"readonly{suffix}").chmod(0o444)
        try:
            os.mknod(folder / f"device{suffix}", 0o20666, os.makedev(1, 3))  # as /dev/null
        except OSError:
            (folder / f"device{suffix}").write_text("no device may be made here")

    return several(
        content(f"file{suffix}"), content(f"private{suffix}"), content(f"readonly{suffix}"), content(f"folder{suffix}/mine"),
        fifo(f"fifo{suffix}"), listening(f"socket{suffix}"), link(f"dangling{suffix}", "nowhere"),
        link(f"loop{suffix}", f"loop{suffix}"), link(f"link{suffix}", f"file{suffix}"), modes,
    )  # fmt: skip


def by_options(rng: random.Random) -> Iterator[Case]:
    """Every named option of every command."""
    cases = []
    for command, option, parameter, kind in options():
        base = BASES[command]
        if kind in ("integer", "integer range"):
            texts: Sequence[str] = values.NUMBERS
        elif kind == "path" or parameter == "json_file":
            texts = values.PATHS
        else:
            texts = values.TEXTS
        suffix = SUFFIXES.get(parameter, "")
        for number, text in enumerate(texts):
            name = f"option-{command}-{option or parameter}-{number}".replace(" ", "-")
            given = text.format(suffix=suffix) if texts is values.PATHS else text
            prepare = paths_there(suffix) if texts is values.PATHS else content("folder/mine")
            named = (f"{option}={given}",) if option else (given,)
            replaced = _replaced(command, parameter, given, suffix)
            cases.append(
                Case(name, (*base, *named), prepare, replaced, codes=(0, 1) if command == "reproduce" else (0,))
            )
    yield from shuffled(rng, cases)


def _replaced(command: str, parameter: str, given: str, suffix: str) -> tuple[str, ...]:
    """Plain files that the user asked to replace."""
    if parameter in ("save", "picture", "graphml", "json_file") or (command, parameter) == ("report", "out"):
        if given.startswith("link"):
            return (f"file{suffix}",)
        return (given,)
    return ()


def by_plugins(rng: random.Random) -> Iterator[Case]:
    """Code of the user's own that misbehaves."""
    cases = [
        Case(
            f"plugin-{name}-{after[0]}",
            ("--plugin", "p.py", *after),
            content("p.py", text),
            must_refuse=name in values.MUST_REFUSE,
            codes=(130,) if name in values.STOPPED else (0,),
        )
        for name, text in values.PLUGINS.items()
        for after in (("methods",), DISCOVER)
    ]
    cases += [
        Case(
            f"plugin-path-{number}",
            (f"--plugin={text.format(suffix='.py')}", "methods"),
            paths_there(".py"),
            must_refuse=True,
        )
        for number, text in enumerate(values.PATHS)
    ]
    cases += [
        Case(
            f"script-{name}",
            ("reproduce", "p.py", "--out", "out"),
            content("p.py", text),
            must_refuse=name not in values.STOPPED,
            codes=(130,),
        )
        for name, text in values.PLUGINS.items()
    ]
    yield from shuffled(rng, cases)


def by_methods(rng: random.Random) -> Iterator[Case]:
    """Lists of methods."""
    lists = ("", ",", ",,", "all,all", "all,", "closest,closest", "closest, none", " closest", "closest,", "none", "none,none", "iid",
             "iid,none", "nosuch", "CLOSEST", "closest;none", "closest none", "[bold]", "\x1b[31m", "a\nb", "closest\n", "x" * 60_000,
             ",".join(["closest"] * 2_000), "٣", "\udcff")  # fmt: skip
    bases = (LEARN, GRAPHS, RUN)
    cases = [
        Case(f"methods-{base[0]}-{number}", (*base, "--method" if base is RUN else "--methods", text))
        for base in bases
        for number, text in enumerate(lists)
    ]
    yield from shuffled(rng, cases)


def by_terminals(rng: random.Random) -> Iterator[Case]:
    """Terminals that know no letters beyond ASCII."""
    calls = [("methods",), ("fields",), ("reproduce", "list"), ("data", "list"), ("data", "info", "digits"), DISCOVER, LEARN, GRAPHS,
             ("--help",), ("compare", "--help"), ("discover", "--set", "network.trust=🙂")]  # fmt: skip
    for call in calls:
        for encoding in ("ascii", "latin-1", "cp1252"):
            refused = call[-1].endswith("🙂")
            yield Case(
                f"terminal-{encoding}-{call[0]}-{call[-1][:12]}", call, encoding=encoding, must_survive=not refused
            )


def _edits() -> Iterator[tuple[str, Callable[[dict[str, Any]], Any]]]:
    """What somebody may do to run.json by hand."""
    plan: list[tuple[str, Any]] = [
        (key, value)
        for key, many in {
            "seeds": ([-1], [0, 0], [], ["x"], [1.5], [None], [True], [10**30], [1e308], "0", 0, None, {}, [[0]], list(range(10_000))),
            "methods": ([], ["nosuch"], [1], [None], "closest", ["closest", "closest"], ["a,b"], ["iid"], [["closest"]], {}, None, [""],
                        ["\x1b[31m"], ["a\nb"], ["all"], ["x" * 60_000]),
        }.items()
        for value in many
    ]  # fmt: skip
    for number, (key, value) in enumerate(plan):
        yield f"plan-{key}-{number}", lambda run, key=key, value=value: run["plan"].update({key: value})
    for key in ("format", "plan", "made_by", "versions"):
        yield f"without-{key}", lambda run, key=key: run.pop(key, None)
        for number, value in enumerate((None, [], {}, "x", 99, 1.5, float("nan"), 10**30, True)):
            yield f"{key}-{number}", lambda run, key=key, value=value: run.update({key: value})
    for number, text in enumerate(
        (b"", b"{", b"null", b"[]", b"1", b"\xff", b"[" * 100_000, b"9" * 5_000, b'{"plan": ' * 3_000, b"\x00" * 10)
    ):
        yield f"text-{number}", lambda run, text=text: text
    yield "twice", lambda run: json.dumps(run)[:-1].encode() + b', "format": 1}'


def edited(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change run.json in a copy of a run folder."""

    def prepare(folder: Path) -> None:
        path = folder / name / "run.json"
        run = json.loads(path.read_text())
        made = change(run)
        path.write_bytes(made if isinstance(made, bytes) else json.dumps(run).encode())

    return prepare


def by_folders(rng: random.Random, done: Path, half: Path) -> Iterator[Case]:
    """Run folders that were edited by hand, and folders that are none."""
    cases = []
    for name, change in _edits():
        again = ("run", "--from", "old", "--out", "new")
        cases.append(Case(f"from-{name}", again, copied(done, "old", edited("old", change))))
        going = (*LEARN[: -len(settings(*TRAINED))], *settings(*TRAINED), "--out", "old", "--resume")
        cases.append(Case(f"resume-{name}", going, copied(half, "old", edited("old", change)), may_change=ALL))
    for number, text in enumerate(values.TOML_FILES):
        again = ("run", "--from", "old", "--out", "new")
        cases.append(Case(f"from-config-{number}", again, copied(done, "old", content("old/config.toml", text))))
    for number, text in enumerate(values.PATHS):
        given = text.format(suffix="")
        cases.append(
            Case(f"from-path-{number}", ("run", f"--from={given}", "--out", "new"), paths_there(""), must_refuse=True)
        )
        cases.append(Case(f"report-path-{number}", ("report", "--out", "r.html", "--", given), paths_there("")))
        cases.append(
            Case(
                f"show-path-{number}",
                ("reproduce", "example", "--show", f"--out={given}"),
                paths_there(""),
                must_refuse=True,
            )
        )
    yield from shuffled(rng, cases)
    yield from shuffled(rng, list(_reports(done)))


def _reports(done: Path) -> Iterator[Case]:
    """`report` on findings that nobody made so."""
    try:
        whole = json.loads((done / "findings.json").read_text())
    except (OSError, ValueError):
        return
    odd: tuple[Any, ...] = (None, [], {}, "x", "", -1, 1e308, float("nan"), 10**30, True, [[]], [{}], "<script>alert(1)</script>",
                            "\x1b[31m", "\ud800", "a/../../b", "x" * 60_000)  # fmt: skip
    for key in whole:
        for number, value in enumerate(odd):
            text = json.dumps({**whole, key: value})
            yield Case(
                f"report-{key}-{number}",
                ("report", "old", "--out", "r.html", "--figures"),
                copied(done, "old", content("old/findings.json", text)),
            )
    for number, text in enumerate(("", "{", "null", "[]", "[" * 100_000, "9" * 5_000, "\udcff")):
        yield Case(
            f"report-text-{number}",
            ("report", "old", "--out", "r.html"),
            copied(done, "old", content("old/findings.json", text)),
            must_refuse=True,
        )
    for number, title in enumerate(values.TEXTS):
        yield Case(
            f"report-title-{number}", ("report", "old", "--out", "r.html", f"--title={title}"), copied(done, "old")
        )


def templates(zygote: Zygote) -> tuple[Path, Path]:
    """A run folder that is finished and one that was cut."""
    done, half = zygote.place / "template-done", zygote.place / "template-half"
    for folder, kill_at in ((done, 0), (half, 12)):
        if not folder.exists():
            folder.mkdir()
            zygote.run(Job(list(LEARN), folder, kill_at=kill_at))
    return done / "out", half / "out"


WEIGHTS = {
    by_set: 9,
    by_bounds: 4,
    by_toml: 5,
    by_pairs: 3,
    by_options: 8,
    by_plugins: 2,
    by_methods: 1,
    by_terminals: 1,
    by_folders: 5,
}


def generated(seed: int, count: int, done: Path, half: Path) -> list[Case]:
    """That many cases, a share from every family; what a family does not have, the next ones give."""
    total, left = sum(WEIGHTS.values()), count
    cases: list[Case] = []
    for family, weight in sorted(WEIGHTS.items(), key=lambda item: item[1]):
        rng = random.Random(f"{seed} {family.__name__}")
        share = min(left, round(left * weight / total))
        total -= weight
        source = by_folders(rng, done, half) if family is by_folders else family(rng)
        mine = list(islice(source, share))
        cases += mine
        left -= len(mine)
    random.Random(seed).shuffle(cases)
    return cases
