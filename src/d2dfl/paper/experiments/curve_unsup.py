"""Fig. 5c: linear evaluation against rounds, Fashion-MNIST without labels, 10 devices, two links a device."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [Point("Fashion-MNIST", settings, "unsupervised", CONTENDERS)]


EXPERIMENT = Experiment("curve-unsup", points, curves)
