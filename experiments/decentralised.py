"""Fig. 6b: decentralised learning, each device averages itself and 7 others drawn anew each round, CIFAR-10."""

from d2dfl.reproduce import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [Point("decentralised", {**task("cifar10", scale), "federation.scheme": "decentralised"})]


EXPERIMENT = Experiment("decentralised", points, curves)
