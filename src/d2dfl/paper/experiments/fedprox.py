"""Fig. 6a, left: FedProx, Fashion-MNIST without labels, 10 devices."""

from d2dfl.paper import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [Point("FedProx", {**settings, "federation.scheme": "fedprox"}, "unsupervised")]


EXPERIMENT = Experiment("fedprox", points, curves)
