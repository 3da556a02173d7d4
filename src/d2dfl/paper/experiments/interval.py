"""Fig. 7b: accuracy against the aggregation interval, SVHN, supervised; the same number of minibatches everywhere."""

from d2dfl.paper import NONE, Array, Experiment, Point, Results, Shown, sweep_chart, sweep_table, task

INTERVALS = {"tiny": (2, 10), "small": (5, 10, 20, 50), "paper": (5, 10, 20, 50)}


def points(scale: str) -> list[Point]:
    settings = task("svhn", scale)
    steps = settings["federation.rounds"] * settings["federation.interval"]
    return [Point(f"interval {n}", {**settings, **every(n, steps // n)}, value=n) for n in INTERVALS[scale]]


def every(interval: int, rounds: int) -> dict[str, int]:
    return {
        "federation.interval": interval,
        "federation.rounds": rounds,
        "federation.evaluate_every": max(1, rounds // 20),
    }


def show(results: Results) -> Shown:
    first, last = results.points[0], results.points[-1]
    names = [system.name for system in results.systems(first, last)]

    def margin(point: Point, name: str) -> Array:
        """Over the best baseline on the same terms."""
        return results.gain(point, name, results.baselines(point, name)[0].name)

    quantities = {
        "growth": {name: margin(last, name) - margin(first, name) for name in names},
        "growth-none": {n: results.gain(last, n, NONE.name) - results.gain(first, n, NONE.name) for n in names},
    }
    chart = sweep_chart(results, "Accuracy against the interval", "minibatches between aggregations", "accuracy")
    return Shown(quantities, (sweep_table(results, "Final accuracy"),), (chart,))


EXPERIMENT = Experiment("interval", points, show)
