"""Fig. 6a, left: FedProx, Fashion-MNIST without labels, 10 devices; evaluated every round, for rounds until 60 %."""

from d2dfl.paper import CONTENDERS, Experiment, Point, Results, Shown, curves_until, task

TARGET = 0.6


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    settings |= {"federation.scheme": "fedprox", "federation.evaluate_every": 1}
    return [Point("FedProx", settings, "unsupervised", CONTENDERS)]


def show(results: Results) -> Shown:
    return curves_until(results, TARGET)


EXPERIMENT = Experiment("fedprox", points, show)
