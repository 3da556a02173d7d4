"""Fig. 6b: decentralised learning, each device averages itself and 7 others drawn anew each round, CIFAR-10."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    settings = task("cifar10", scale)
    # All 25 models are tested, not one: seldom.
    settings["federation.evaluate_every"] = max(1, settings["federation.rounds"] // 5)
    return [Point("decentralised", {**settings, "federation.scheme": "decentralised"}, contenders=CONTENDERS)]


EXPERIMENT = Experiment("decentralised", points, curves)
