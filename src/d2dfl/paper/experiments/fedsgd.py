"""Fig. 6a, right: FedSGD, one step on the full local gradient a round, Fashion-MNIST without labels, 10 devices."""

from d2dfl.paper import Experiment, Point, curves, task

ROUNDS = {"tiny": 8, "small": 120, "paper": 200}  # a round is one step here


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    settings |= {"federation.scheme": "fedsgd", "federation.rounds": ROUNDS[scale]}
    settings["federation.evaluate_every"] = max(1, ROUNDS[scale] // 20)
    return [Point("FedSGD", settings, "unsupervised")]


EXPERIMENT = Experiment("fedsgd", points, curves)
