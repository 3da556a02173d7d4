"""Odd values of every field of the configuration: by --set, by TOML, at its bounds, in pairs."""

import dataclasses
import random
import typing
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from attack import odd_values as values
from attack.cases import Case, content

SMALL = ("network.devices=4", "network.partitions=4", "network.labels_per_device=2", "marginal.messages=20", "qlearning.steps=40",
         "bandit.steps=40", "optimum.starts=1", "optimum.sweeps=5", "optimum.messages=20", "gcn.epochs=1", "gcn.systems=2")  # fmt: skip
TRAINED = ("network.devices=4", "data.samples=12", "federation.rounds=1", "federation.interval=2", "marginal.messages=20",
           "partition.components=4", "partition.clusters=3", "partition.ranges=4", "partition.labelled=0.5")  # fmt: skip


def settings(*items: str) -> tuple[str, ...]:
    return tuple(part for item in items for part in ("--set", item))


DISCOVER = ("discover", *settings(*SMALL))
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
