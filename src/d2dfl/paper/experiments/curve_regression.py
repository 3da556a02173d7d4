"""Fig. 5d: mean squared error against rounds, California Housing, 25 devices (the paper does not say how many)."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("California Housing", task("california", scale), "regression", CONTENDERS)]


EXPERIMENT = Experiment("curve-regression", points, curves)
