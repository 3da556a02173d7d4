"""Odd inputs: every field, every option, every file of settings, plug-ins, and run folders that were edited by hand."""

import dataclasses
import json
import os
import random
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from attack import odd_values as values
from attack.cases import ALL, Case, content, copied, fifo, link, listening, several
from attack.sandbox import Job, Zygote

SMALL = ("network.devices=4", "network.partitions=4", "network.labels_per_device=2", "marginal.messages=20", "qlearning.steps=40",
         "bandit.steps=40", "optimum.starts=1", "optimum.sweeps=5", "optimum.messages=20", "gcn.epochs=1", "gcn.systems=2")  # fmt: skip
TRAINED = ("network.devices=4", "data.samples=12", "federation.rounds=1", "federation.interval=2", "marginal.messages=20",
           "partition.components=4", "partition.clusters=3", "partition.ranges=4", "partition.labelled=0.5")  # fmt: skip


def settings(*items: str) -> tuple[str, ...]:
    return tuple(part for item in items for part in ("--set", item))


DISCOVER = ("discover", "--no-reference", *settings(*SMALL))
GRAPHS = ("compare-graphs", "--methods", "closest,marginal", *settings(*SMALL))
LEARN = ("compare", "--methods", "closest", "--seeds", "1", "--out", "out", *settings(*TRAINED))
RUN = ("run", "--method", "closest", "--out", "out", *settings(*TRAINED))
# Where a section matters.
CONTEXTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "network": (DISCOVER, LEARN, (*DISCOVER, "--preset", "paper")),
    "channel": tuple(
        (*DISCOVER, *settings(f"channel.kind={kind}", *more))
        for kind in ("path-loss", "gaussian", "physical", "harsh", "csv")
        for more in ((), ("channel.dynamic=true",))
    ),
    "reward": (
        DISCOVER,
        (*DISCOVER, "--preset", "paper"),
        (*DISCOVER, "--method", "greedy"),
        (*LEARN, "--paradigm", "unsupervised", "--methods", "marginal"),
    ),
    "discovery": (DISCOVER, (*DISCOVER, "--preset", "paper"), LEARN),
    "qlearning": (
        (*DISCOVER, "--method", "qlearning"),
        (*DISCOVER, "--method", "qlearning", *settings("channel.dynamic=true", "discovery.edge_mode=sequence")),
    ),
    "marginal": (DISCOVER, (*DISCOVER, *settings("channel.dynamic=true"))),
    "bandit": ((*DISCOVER, "--method", "bandit"), (*DISCOVER, "--method", "bandit", *settings("bandit.kind=exp3"))),
    "gcn": ((*DISCOVER, "--method", "gcn"),),
    "optimum": ((*DISCOVER, "--method", "optimum"),),
    "data": (LEARN,),
    "partition": tuple((*LEARN, "--paradigm", name) for name in ("semi", "unsupervised", "regression")),
    "privacy": ((*LEARN, *settings("privacy.epsilon=1")),),
    "radio": ((*LEARN, "--dataset", "radio", *settings("radio.per_cell=2")),),
    "exchange": (LEARN,),
    "federation": (
        *((*LEARN, "--scheme", name) for name in ("fedavg", "fedprox", "fedsgd", "decentralised", "semi-decentralised")),
        (*LEARN, "--paradigm", "unsupervised"),
    ),
    "energy": tuple(
        (*LEARN, *settings(f"energy.radio={name}")) for name in ("first-order", "two-slope", "shannon", "fixed-power")
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of the configuration."""

    section: str
    name: str
    hint: Any
    low: float | None
    high: float | None

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def number(self) -> bool:
        return self.hint in (int, float)

    @property
    def closed(self) -> bool:
        """Whether it takes only certain words."""
        return typing.get_origin(self.hint) is typing.Literal


@cache
def fields() -> tuple[Field, ...]:
    """All of them."""
    from d2dfl.config import Config

    found = []
    for section in dataclasses.fields(Config):
        kind = typing.get_type_hints(Config)[section.name]
        hints = typing.get_type_hints(kind)
        for item in dataclasses.fields(kind):
            limits = item.metadata
            found.append(Field(section.name, item.name, hints[item.name], limits.get("low"), limits.get("high")))
    return tuple(found)


def context(rng: random.Random, field: Field) -> tuple[str, ...]:
    return rng.choice(CONTEXTS.get(field.section, (DISCOVER, LEARN)))


def without(arguments: tuple[str, ...], path: str) -> tuple[str, ...]:
    """Arguments without their own value of a field: --set would win over a file."""
    drop = {number for number, part in enumerate(arguments) if part.startswith(f"{path}=")}
    return tuple(part for number, part in enumerate(arguments) if not {number, number + 1} & drop)


def shuffled(rng: random.Random, items: Sequence[Any]) -> list[Any]:
    return rng.sample(list(items), len(items))


def by_set(rng: random.Random) -> Iterator[Case]:
    """Every field with odd texts, one text after the other over all fields."""
    texts = {item.path: shuffled(rng, (*values.TEXTS, *values.RULES.get(item.path, ()) * 3)) for item in fields()}
    for number in range(len(values.TEXTS)):
        for item in shuffled(rng, fields()):
            text = texts[item.path][number]
            never = (item.number and text in values.NEVER) or (item.closed and text not in typing.get_args(item.hint))
            arguments = (*context(rng, item), "--set", f"{item.path}={text}")
            yield Case(f"set-{item.path}-{number}", arguments, must_refuse=never and text.strip() == text)


def by_bounds(rng: random.Random) -> Iterator[Case]:
    """Every number at its lowest and highest value, and just outside."""
    for item in shuffled(rng, [item for item in fields() if item.number]):
        for name, bound, step in (("low", item.low, -1), ("high", item.high, 1)):
            if bound is None:
                continue
            whole = item.hint is int
            at = str(int(bound)) if whole else repr(float(bound))
            beyond = (
                str(int(bound) + step) if whole else repr(float(bound) + step * max(abs(float(bound)) * 1e-3, 1e-300))
            )
            yield Case(f"bound-{item.path}-{name}", (*context(rng, item), "--set", f"{item.path}={at}"))
            arguments = (*context(rng, item), "--set", f"{item.path}={beyond}")
            yield Case(f"beyond-{item.path}-{name}", arguments, must_refuse=float(beyond) != float(bound))


def by_toml(rng: random.Random) -> Iterator[Case]:
    """Every field with odd values in a file, and odd files."""
    files = [
        Case(f"toml-file-{number}", (*DISCOVER, "--config", "c.toml"), content("c.toml", text))
        for number, text in enumerate(values.TOML_FILES)
    ]
    texts = {item.path: shuffled(rng, values.TOML) for item in fields()}
    single = []
    for number in range(len(values.TOML)):
        for item in shuffled(rng, fields()):
            text = texts[item.path][number]
            never = (item.number or item.closed) and text in values.TOML_NEVER
            base = without(context(rng, item), item.path)
            made = content("c.toml", f"[{item.section}]\n{item.name} = {text}\n")
            single.append(Case(f"toml-{item.path}-{number}", (*base, "--config", "c.toml"), made, must_refuse=never))
    yield from shuffled(rng, files)
    yield from single


def by_pairs(rng: random.Random) -> Iterator[Case]:
    """Two or three fields at once, each sensible or at a bound."""
    while True:
        chosen = rng.sample(fields(), rng.choice((2, 3)))
        texts = [f"{item.path}={_plausible(rng, item)}" for item in chosen]
        yield Case(f"pair-{'-'.join(item.path for item in chosen)}", (*context(rng, chosen[0]), *settings(*texts)))


def _plausible(rng: random.Random, item: Field) -> str:
    if item.closed:
        return str(rng.choice(typing.get_args(item.hint)))
    if item.hint is bool:
        return rng.choice(("true", "false"))
    if item.hint is int:
        low = 0 if item.low is None else int(item.low)
        return str(rng.choice((low, low + 1, low + 2, low + 7)))
    if item.hint is float:
        bounds = [repr(float(bound)) for bound in (item.low, item.high) if bound is not None]
        return rng.choice((*bounds, "0", "1", "0.5", "1e-12", "1e-3", "3.7"))
    return rng.choice(values.RULES.get(item.path, ("x",)))


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

    from d2dfl.cli import app

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
