"""Fig. 6c: semi-decentralised learning, subsets of 5 average every 2 minibatches, all every 8, CIFAR-10."""

from d2dfl.paper import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("semi-decentralised", {**task("cifar10", scale), "federation.scheme": "semi-decentralised"})]


EXPERIMENT = Experiment("semi-decentralised", points, curves)
