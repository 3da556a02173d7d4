"""Fig. 14b: pseudo-labels from a dense network with one layer that each device trains on its own, SVHN."""

from d2dfl.paper import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("SVHN, one-layer labeller", {**task("svhn", scale), "partition.labeller": "mlp"}, "semi")]


EXPERIMENT = Experiment("mlp-labels", points, curves)
