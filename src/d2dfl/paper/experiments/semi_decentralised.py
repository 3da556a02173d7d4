"""Fig. 6c: semi-decentralised learning, subsets of 5 average every 2 minibatches, all every 8, CIFAR-10."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    settings = {**task("cifar10", scale), "federation.scheme": "semi-decentralised"}
    return [Point("semi-decentralised", settings, contenders=CONTENDERS)]


EXPERIMENT = Experiment("semi-decentralised", points, curves)
