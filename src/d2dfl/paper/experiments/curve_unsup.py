"""Fig. 5c: linear evaluation against rounds, Fashion-MNIST without labels, 10 devices, two links a device."""

from d2dfl.paper import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("Fashion-MNIST", task("fmnist", scale, devices=10, paradigm="unsupervised"), "unsupervised")]


EXPERIMENT = Experiment("curve-unsup", points, curves)
