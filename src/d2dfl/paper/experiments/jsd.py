"""Fig. 13: the reward measured by the Jensen-Shannon distance instead, supervised, three data sets."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task

DATA = {"radio signals": "radio", "CIFAR-10": "cifar10", "SVHN": "svhn"}


def points(scale: str) -> list[Point]:
    change = {"reward.metric": "jensen-shannon"}
    return [Point(name, {**task(dataset, scale), **change}, contenders=CONTENDERS) for name, dataset in DATA.items()]


EXPERIMENT = Experiment("jsd", points, curves)
