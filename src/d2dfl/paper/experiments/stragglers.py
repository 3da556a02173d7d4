"""Fig. 7a: accuracy when some devices never send their model, SVHN, supervised, 15 devices.

All train until accuracy hardly rises any more: before, who learns faster has more to lose. What is lost is held against the
baseline on the same terms that loses least in the mean over seeds; the least of each seed would be nobody's.
"""

from collections.abc import Iterable

from d2dfl.paper import (
    NONE,
    Array,
    Contender,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    Values,
    final,
    final_score,
    known,
    last_fifth,
    sweep_chart,
    sweep_table,
    task,
    terms_of,
)  # fmt: skip

NUMBERS = {"tiny": (0, 4), "small": (0, 12), "paper": (0, 12)}
ROUNDS = {"tiny": 10, "small": 120, "paper": 120}
EVALUATIONS = 15
SEEDS = {"tiny": 2, "small": 10, "paper": 10}


def points(scale: str) -> list[Point]:
    every = max(1, ROUNDS[scale] // EVALUATIONS)
    long = {"federation.rounds": ROUNDS[scale], "federation.evaluate_every": every}
    settings = {**task("svhn", scale, devices=15), **long}
    return [
        Point(f"{number} stragglers", {**settings, "federation.stragglers": number}, value=number)
        for number in NUMBERS[scale]
    ]


def slope(cell: Values) -> float:
    """What the last fifth of the curve is above the fifth before: near 0 on a plateau."""
    before = cell["scores"][: -last_fifth(len(cell["scores"]))]
    return final(cell) - final_score(before)


def show(results: Results) -> Shown:
    first, last = results.points[0], results.points[-1]

    def lost(name: str) -> Array:
        return results.final(first, name) - results.final(last, name)

    def least(contenders: Iterable[Contender]) -> Array:
        """[seed] what is lost by whoever loses least in the mean."""
        there = [lost(item.name) for item in contenders if len(known(lost(item.name)))]
        return min(there, key=lambda values: float(known(values).mean()))

    quantities: Quantities = {"kept": {}, "lost": {}, "over-next": {}, "left": {}}
    for system in results.systems(first, last):
        terms = terms_of(system.name)
        quantities["kept"][system.name] = least(terms.baselines) - lost(system.name)
        quantities["lost"][system.name] = lost(system.name)
        if system is terms.ours:
            others = [item for item in (NONE, *terms.contenders) if item is not system]
            quantities["over-next"][system.name] = least(others) - lost(system.name)
        best = results.baselines(last, system.name)[0].name
        quantities["left"][system.name] = results.gain(last, system.name, best)
    tables = (
        sweep_table(results, "Final accuracy"),
        sweep_table(results, "Rise from the last but one fifth of the rounds to the last", slope),
    )
    chart = sweep_chart(results, "Accuracy with stragglers", "stragglers", "accuracy")
    return Shown(quantities, tables, (chart,))


EXPERIMENT = Experiment("stragglers", points, show, seeds=SEEDS)
