"""Fig. 14b: pseudo-labels from a dense network with one layer that each device trains on its own, SVHN."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    settings = {**task("svhn", scale), "partition.labeller": "mlp"}
    return [Point("SVHN, one-layer labeller", settings, "semi", CONTENDERS)]


EXPERIMENT = Experiment("mlp-labels", points, curves)
