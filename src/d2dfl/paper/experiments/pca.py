"""Fig. 8b: linear evaluation against the shared principal components, Fashion-MNIST without labels, 10 devices."""

from d2dfl.paper import SYSTEMS, Experiment, Point, Results, Shown, sweep_chart, sweep_table, task

COMPONENTS = {"tiny": (2, 4, 8), "small": (2, 4, 8, 16, 32), "paper": (2, 4, 8, 16, 32)}


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [
        Point(f"{n} components", {**settings, "partition.components": n}, "unsupervised", value=n)
        for n in COMPONENTS[scale]
    ]


def show(results: Results) -> Shown:
    first, middle, last = (results.points[n] for n in (0, len(results.points) // 2, -1))
    scores = {s.name: [results.final(point, s.name) for point in (first, middle, last)] for s in SYSTEMS}
    quantities = {
        "rise": {name: high - low for name, (low, _, high) in scores.items()},
        "diminishing": {name: (mid - low) - (high - mid) for name, (low, mid, high) in scores.items()},
    }
    chart = sweep_chart(results, "Linear evaluation against components", "principal components", "linear evaluation")
    return Shown(quantities, (sweep_table(results, "Final linear evaluation"),), (chart,))


EXPERIMENT = Experiment("pca", points, show)
