"""Fig. 6a, right: FedSGD, a round is one step on the full gradient, Fashion-MNIST without labels, 10 devices; evaluated
every round, for rounds until 60 %."""

from d2dfl.paper import CONTENDERS, Experiment, Point, Results, Shown, curves_until, task

ROUNDS = {"tiny": 4, "small": 120, "paper": 200}
TARGET = 0.6


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    settings |= {
        "federation.scheme": "fedsgd",
        "federation.rounds": ROUNDS[scale],
        "federation.evaluate_every": 1,
    }
    return [Point("FedSGD", settings, "unsupervised", CONTENDERS)]


def show(results: Results) -> Shown:
    return curves_until(results, TARGET)


EXPERIMENT = Experiment("fedsgd", points, show)
