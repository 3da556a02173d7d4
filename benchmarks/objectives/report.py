"""How well each candidate orders graphs by accuracy: chosen on some cells, reported on others."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.stats import rankdata

from d2dfl.storage import write_whole
from objectives import made
from objectives.families import TODAY, families, values_of
from objectives.measures import Array, Known

Name = tuple[str, str]  # family, parameters
PAIRED = 6  # families that are also tried two at a time
MIXES = (0.25, 0.5, 0.75)
ALL_LINKS = 0  # graphs of all numbers of links together


@dataclass(frozen=True)
class Group:
    """Graphs that are ordered: of one cell, with one number of links, or with any."""

    cell: str
    data: str  # set
    skew: str
    links: int
    chooses: bool
    accuracy: Array  # [graph, training]
    values: Mapping[Name, Array]  # [graph], 0 for no exchange and 1 for i.i.d. data

    def correlation(self, values: Array) -> float:
        """Spearman's; 0 for a measure that is the same for all graphs."""
        return spearman(values, self.accuracy.mean(axis=1))

    @property
    def reachable(self) -> float:
        """What a measure would have that knew each graph's true accuracy, by how well two trainings agree (Spearman-Brown)."""
        agree = max(spearman(self.accuracy[:, 0], self.accuracy[:, 1]), 0.0)
        return float(np.sqrt(2 * agree / (1 + agree)))


def spearman(one: Array, other: Array) -> float:
    first, second = rankdata(np.round(one, 9)), rankdata(other)
    first, second = first - first.mean(), second - second.mean()
    length = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float(first @ second / length) if length > 0 else 0.0


def groups_of(path: Path) -> list[Group]:
    """The groups of a cell's file, with all candidates measured."""
    with np.load(path) as file:
        about, links, accuracy = json.loads(str(file["about"])), file["links"], file["accuracy"]
        counts = file["counts"].astype(np.float64)
        known = Known(file["population"], file["means"], file["covariances"].astype(np.float64))
    values = {name: _scaled(found) for name, found in values_of(counts, known).items()}
    result = []
    for number in (*sorted(set(links.tolist()) - {0}), ALL_LINKS):
        mine = (links == number) if number else np.ones(len(links), dtype=bool)
        own = {name: found[mine] for name, found in values.items()}
        cell = path.stem
        result.append(Group(cell, about["set"], about["skew"], number, about["chooses"], accuracy[mine], own))
    return result


def _scaled(values: Array) -> Array:
    """0 for the first graph, without exchange, and 1 for the second, i.i.d. data, where these differ."""
    way = values[1] - values[0]
    return np.asarray((values - values[0]) / (way if abs(way) > 1e-9 else 1.0))


def interval(groups: Sequence[Group], values: Array) -> tuple[float, float, float]:
    """Mean over groups, and the middle 95 % of a bootstrap over cells: groups of a cell share their network."""
    return made.bootstrap([group.cell for group in groups], values)


def correlations(groups: Sequence[Group], names: Iterable[Name]) -> dict[Name, Array]:
    """[group] of each candidate."""
    return {name: np.array([group.correlation(group.values[name]) for group in groups]) for name in names}


def chosen(groups: Sequence[Group]) -> list[Name]:
    """Of each family the parameters that order best, the best family first."""
    found = correlations(groups, groups[0].values)
    best = [
        max(((family, text) for text in texts), key=lambda n: found[n].mean()) for family, texts in families().items()
    ]
    return sorted(best, key=lambda name: -found[name].mean())


def mixtures(groups: Sequence[Group], singles: Sequence[Name]) -> dict[str, tuple[Name, Name, float]]:
    """Two of the best families at a time; of each two the mixture that orders best."""
    found: dict[str, tuple[Name, Name, float]] = {}
    for one, other in itertools.combinations(singles[:PAIRED], 2):
        scores = {part: np.mean([g.correlation(mixed(g, one, other, part)) for g in groups]) for part in MIXES}
        part = max(scores, key=lambda key: scores[key])
        found[f"{part:g} × {one[0]} + {1 - part:g} × {other[0]}"] = (one, other, part)
    return found


def mixed(group: Group, one: Name, other: Name, part: float) -> Array:
    return part * group.values[one] + (1 - part) * group.values[other]


def line(
    name: str, parts: tuple[Sequence[Group], Sequence[Group]], found: tuple[Array, Array], today: Array
) -> dict[str, Any]:
    """One row: choosing and reporting part, and the difference to today's on the latter."""
    return {
        "measure": name,
        "choosing": float(found[0].mean()) if len(found[0]) else np.nan,
        "reporting": interval(parts[1], found[1]),
        "difference": interval(parts[1], found[1] - today),
        "worst": lowest(parts[1], found[1]),
        "by": {
            **{
                f"{g} link(s)" if g else "any links": _where(parts[1], found[1], "links", g)
                for g in _kinds(parts[1], "links")
            },
            **{g: _where(parts[1], found[1], "skew", g) for g in _kinds(parts[1], "skew")},
            **{g: _where(parts[1], found[1], "data", g) for g in _kinds(parts[1], "data")},
        },
    }


def lowest(groups: Sequence[Group], values: Array) -> float:
    """Of all sets, skews and numbers of links the one that is ordered worst, in the mean of its seeds."""
    places: dict[tuple[str, str, int], list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        places.setdefault((group.data, group.skew, group.links), []).append(float(value))
    return min(float(np.mean(found)) for found in places.values())


def _kinds(groups: Sequence[Group], what: str) -> list[Any]:
    return sorted({getattr(group, what) for group in groups})


def _where(groups: Sequence[Group], values: Array, what: str, kind: object) -> float:
    return float(values[[getattr(group, what) == kind for group in groups]].mean())


def study(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """All families and mixtures, by the choosing part best first."""
    choosing, reporting = [g for g in groups if g.chooses], [g for g in groups if not g.chooses]
    choosing, reporting = choosing or reporting, reporting or choosing  # a tiny run may have one part only
    singles = chosen(choosing)
    parts = (choosing, reporting)
    today = correlations(reporting, [(TODAY, "mean")])[TODAY, "mean"]
    rows = []
    for name in singles:
        found = tuple(correlations(part, [name])[name] for part in parts)
        rows.append(line(": ".join(filter(None, name)), parts, found, today))
    for text, (one, other, share) in mixtures(choosing, singles).items():
        found = tuple(np.array([g.correlation(mixed(g, one, other, share)) for g in part]) for part in parts)
        rows.append(line(text, parts, found, today))
    if all(g.accuracy.shape[1] > 1 for g in groups):
        reach = tuple(np.array([g.reachable for g in part]) for part in parts)
        rows.append(line("the true accuracy (from two trainings)", parts, reach, today))
    return sorted(rows, key=lambda row: -row["choosing"])


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: all measures, then those of the reporting part by links, skew and set."""
    lines = [
        "| measure | choosing | reporting (95 %) | worst | minus total variation (95 %) |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        mean, low, high = row["reporting"]
        more, least, most = row["difference"]
        lines.append(
            f"| {row['measure']} | {row['choosing']:.3f} | {mean:.3f} ({low:.3f} to {high:.3f}) "
            f"| {row['worst']:.3f} | {more:+.3f} ({least:+.3f} to {most:+.3f}) |"
        )
    kinds = list(rows[0]["by"])
    lines += ["", f"| reporting part | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for row in rows:
        cells = " | ".join(f"{row['by'][kind]:.3f}" for kind in kinds)
        lines.append(f"| {row['measure']} | {cells} |")
    return "\n".join(lines)


def measure_all(folder: Path, workers: int) -> str:
    """The tables of a folder of cells, also written there: with the number of links fixed, and with any."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise SystemExit(f"{folder} has no cells: run the command graphs first")
    found = joblib.Parallel(n_jobs=workers)(joblib.delayed(groups_of)(path) for path in paths)
    groups = [group for part in found for group in part]
    texts, records = [f"{len(paths)} cells, {sum(len(g.accuracy) for g in groups if g.links == ALL_LINKS)} graphs"], {}
    for title, mine in {
        "Graphs with the same number of links": [g for g in groups if g.links != ALL_LINKS],
        "Graphs with any number of links": [g for g in groups if g.links == ALL_LINKS],
    }.items():
        records[title] = study(mine)
        texts.append(f"### {title}\n\n{table(records[title])}")
    records["made"] = made.differences(paths)
    texts.append(f"### Graphs made for a measure\n\n{made.table(records['made'])}")
    write_whole(folder / "measures.json", json.dumps(records).encode())
    write_whole(folder / "measures.md", "\n\n".join(texts).encode())
    return "\n\n".join(texts)
