"""Fig. 5a: accuracy against rounds, CIFAR-10, supervised, 25 devices with 3 labels each, one link a device."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("CIFAR-10", task("cifar10", scale), contenders=CONTENDERS)]


EXPERIMENT = Experiment("curve-supervised", points, curves)
