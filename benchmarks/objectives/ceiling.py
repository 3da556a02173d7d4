"""The best graph with one link by trained accuracy: a search over graphs that trains them, and what it found on the test part.

Networks, exchange and training are those of the cells, with 20 rounds. The search sees a validation part alone, trains for 12
rounds, and never believes one training: leaders train again with other seeds.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from d2dfl.experiment.measures import share_of_gap
from d2dfl.rng import stream
from d2dfl.storage import write_whole
from d2dfl.terminal import number
from objectives.cells import known_of
from objectives.families import optimised
from objectives.places import Graph, Links, Place, datasets_of, item_of, setting_at, trained
from objectives.wiring import CHAINS, annealed, changed, crossed, drawn, useful

SKEWS = ("labels:3", "labels:1")  # the main table's, and the one that is hardest
FRESH = 5000  # training seeds of the report begin here: none of them was searched with
LEADERS, PARENTS, FINALISTS = 8, 12, 4
TRAININGS = 8  # training seeds of the search, by turns
REFERENCES = ("ours", "ours, no claims", "optimum", "closest")
LEAST_NOISE, LEAST_RANGE = 0.003, 0.002  # of accuracy: between trainings of a graph, between graphs


@dataclass
class Search:
    """All graphs of a network that were trained, and what is believed of them."""

    place: Place
    scores: dict[Links, dict[int, float]] = field(default_factory=dict)  # graph -> training seed -> accuracy
    names: dict[str, Links] = field(default_factory=dict)  # of the references
    generation: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def save(self, out: Path) -> None:
        record = {
            "scores": [[list(graph), {str(t): v for t, v in found.items()}] for graph, found in self.scores.items()],
            "names": {name: list(graph) for name, graph in self.names.items()},
            "generation": self.generation,
            "history": self.history,
        }
        write_whole(out / self.place.file, json.dumps(record).encode())

    @classmethod
    def open(cls, place: Place, out: Path) -> "Search":
        """As it was left, or new."""
        if not (out / place.file).exists():
            return cls(place)
        record = json.loads((out / place.file).read_text())
        scores = {tuple(graph): {int(t): v for t, v in found.items()} for graph, found in record["scores"]}
        names = {name: tuple(graph) for name, graph in record["names"].items()}
        return cls(place, scores, names, record["generation"], record["history"])

    def believed(self) -> dict[Links, float]:
        """Expected accuracy beside the references, each graph drawn to the mean of all by how little is known of it."""
        base = {
            training: np.mean([self.scores[graph][training] for graph in self.names.values()])
            for training in set.intersection(*(set(self.scores[graph]) for graph in self.names.values()))
        }
        found = {
            graph: np.array([value - base[training] for training, value in own.items() if training in base])
            for graph, own in self.scores.items()
        }
        found = {graph: values for graph, values in found.items() if len(values)}
        again = [values - values.mean() for values in found.values() if len(values) > 1]
        freedom = sum(len(values) - 1 for values in again)
        noise = max(sum(float((v**2).sum()) for v in again) / freedom if freedom else 0.0, LEAST_NOISE**2)
        means = np.array([values.mean() for values in found.values()])
        middle = float(np.median(means))
        between = max(float(means.var()) - noise / np.mean([len(v) for v in found.values()]), LEAST_RANGE**2)
        return {
            graph: middle + (values.mean() - middle) * between / (between + noise / len(values))
            for graph, values in found.items()
        }

    def best(self, most: int) -> list[Links]:
        believed = self.believed()
        return sorted(believed, key=lambda graph: -believed[graph])[:most]

    def next_graphs(self) -> list[Links]:
        """Who trains next: references that lack this training, leaders that do, and children of the best."""
        training = self.generation % TRAININGS
        rng = stream(self.place.seed, "ceiling", self.generation)
        network, most = setting_at(self.place).network, self.place.population
        allowed = useful(network)
        if not self.scores:
            return self._first(rng)
        again = [*self.names.values(), *self.best(LEADERS)]
        chosen = dict.fromkeys(graph for graph in again if training not in self.scores[graph])
        parents = np.array(self.best(PARENTS), dtype=np.int32)
        for _ in range(20 * most):
            if len(chosen) >= most:
                break
            one, other = parents[rng.integers(len(parents), size=2)]
            child = (crossed(one[:, None], other[:, None], rng) if rng.random() < 0.4 else one[:, None])[None]
            child = changed(child, allowed, float(rng.choice([1.0, 2.0, 4.0])) / network.devices, rng)
            graph = _links(child[0])
            if graph not in self.scores:
                chosen[graph] = None
        return list(chosen)

    def _first(self, rng: np.random.Generator) -> list[Links]:
        """References, graphs that are best by a candidate measure, changes of ours, and random ones."""
        setting, most = setting_at(self.place), self.place.population
        network, known = setting.network, known_of(setting, datasets_of(self.place.name)[0])
        allowed = useful(network)
        for name in REFERENCES:
            discovery = item_of(self.place, name).discovery
            assert discovery is not None
            self.names[name] = _links(discovery.graph.slots)
        chosen = list(self.names.values())
        ours = np.array(chosen[0], dtype=np.int32)[:, None]
        starts = drawn(allowed, (CHAINS, network.devices, 1), rng)
        starts[: CHAINS // 2] = ours
        for measure, sign in optimised().values():
            if sign > 0:
                best, early = annealed(network, known, measure, sign, starts, rng, 20 if self.place.tiny else 800)
                chosen += [_links(best[0]), _links(early[0])]
        while len(set(chosen)) < most:
            start = ours[None] if rng.random() < 0.5 else drawn(allowed, (1, network.devices, 1), rng)
            chosen.append(_links(changed(start, allowed, 0.2, rng)[0]))
        return list(dict.fromkeys(chosen))

    def book(self, graphs: Sequence[Links], values: Sequence[float], training: int) -> None:
        for graph, value in zip(graphs, values, strict=True):
            self.scores.setdefault(graph, {})[training] = value
        self.generation += 1
        believed = self.believed()
        top = {name: believed[graph] for name, graph in self.names.items()}
        self.history.append({"graphs": len(self.scores), "best": max(believed.values()), **top})


def _links(slots: NDArray[np.int32]) -> Links:
    return tuple(slots.reshape(len(slots), -1)[:, 0].tolist())


def in_parts(
    work: Any, jobs: Sequence[tuple[Place, Sequence[Graph], Sequence[int]]], size: int, **how: Any
) -> list[list[float]]:
    """Many graphs of several places, trained in parts by all processes."""
    parts = [(n, at) for n, (_, graphs, _) in enumerate(jobs) for at in range(0, len(graphs), size)]
    found = work(
        joblib.delayed(trained)(jobs[n][0], jobs[n][1][at : at + size], jobs[n][2][at : at + size], **how)
        for n, at in parts
    )
    results: list[list[float]] = [[] for _ in jobs]
    for (n, _), values in zip(parts, found, strict=True):
        results[n] += values
    return results


def search(out: Path, name: str, seeds: int, minutes: float, workers: int, tiny: bool) -> None:
    """Search all networks side by side until the time is over, then report."""
    places = [Place("digits" if tiny else name, skew, seed, tiny) for seed in range(seeds) for skew in SKEWS]
    searches = [Search.open(place, out) for place in places]
    until, size = time.time() + 60 * minutes, 8 if tiny else 16
    with joblib.Parallel(n_jobs=workers, batch_size=1, inner_max_num_threads=1) as work:
        while time.time() < until:
            asked = work(joblib.delayed(_asked)(one) for one in searches)
            searches = [one for one, _ in asked]
            trainings = [one.generation % TRAININGS for one in searches]
            jobs = [
                (one.place, graphs, [one.place.seed + 100 * training] * len(graphs))
                for (one, graphs), training in zip(asked, trainings, strict=True)
            ]
            found = in_parts(work, jobs, size, test=False, whole=False)
            for one, (_, graphs, _), values, training in zip(searches, jobs, found, trainings, strict=True):
                one.book(graphs, values, training)
                one.save(out)
            last = "; ".join(
                f"{o.place.skew} {o.place.seed}: best {o.history[-1]['best']:+.4f} ours {o.history[-1]['ours']:+.4f}"
                for o in searches
            )
            print(
                f"generation {searches[0].generation}, {searches[0].history[-1]['graphs']} graphs: {last}", flush=True
            )
        winners = finals(work, searches)
        print(report(work, out, searches, winners, 2 if tiny else 5), flush=True)


def _asked(one: Search) -> tuple[Search, list[Links]]:
    graphs = one.next_graphs()
    return one, graphs


def finals(work: Any, searches: Sequence[Search]) -> list[Links]:
    """Of the best of each network the one that is best in three whole trainings on the validation part."""
    jobs = []
    for one in searches:
        best = one.best(FINALISTS)
        jobs.append((one.place, [g for g in best for _ in range(3)], [FRESH - 100 + n for _ in best for n in range(3)]))
    found = in_parts(work, jobs, 6, test=False)
    return [
        job[1][3 * int(np.argmax(np.array(values).reshape(-1, 3).mean(axis=1)))]
        for job, values in zip(jobs, found, strict=True)
    ]


def report(work: Any, out: Path, searches: Sequence[Search], winners: Sequence[Links], fresh: int) -> str:
    """Accuracy and share of the gap on the test part with training seeds that nothing was chosen with."""
    names: dict[str, str | None] = {"none": "none", "iid": "iid", **dict.fromkeys(REFERENCES), "best found": None}
    result: dict[str, dict[str, list[float]]] = {}
    jobs = []
    for one, winner in zip(searches, winners, strict=True):
        graphs: list[Graph] = [fixed or one.names.get(name, winner) for name, fixed in names.items()]
        jobs.append(
            (one.place, [g for g in graphs for _ in range(fresh)], [FRESH + n for _ in graphs for n in range(fresh)])
        )
    found = in_parts(work, jobs, 8, test=True)
    for one, values in zip(searches, found, strict=True):
        means = np.array(values).reshape(len(names), fresh).mean(axis=1)
        for name, value in zip(names, means.tolist(), strict=True):
            result.setdefault(one.place.skew, {}).setdefault(name, []).append(value)
    write_whole(out / "report.json", json.dumps({"fresh": fresh, "accuracy": result}).encode())
    return table(result)


def table(result: dict[str, dict[str, list[float]]]) -> str:
    lines = [
        "### One link, test part",
        "",
        f"| graph | {' | '.join(result)} |",
        f"|---|{'---:|' * len(result)}",
    ]
    for name in next(iter(result.values())):
        cells = []
        for own in result.values():
            none, iid, mine = (np.array(own[which]) for which in ("none", "iid", name))
            each = ", ".join(f"{value:.3f}" for value in mine)
            cells.append(f"{mine.mean():.3f} [{each}] ({number(share_of_gap(mine, none, iid, True), 2)})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
