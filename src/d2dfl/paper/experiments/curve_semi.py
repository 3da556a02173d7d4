"""Fig. 5b: accuracy against rounds, radio signals of 11 modulations (generated), 15 % of the labels known, 25 devices."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("radio signals", task("radio", scale), "semi", CONTENDERS)]


EXPERIMENT = Experiment("curve-semi", points, curves)
