"""Fig. 12: as Fig. 5 on other data: radio and SVHN supervised, CIFAR-10 and SVHN semi-supervised, USPS unsupervised."""

from d2dfl.paper import Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    return [
        Point("radio signals, supervised", task("radio", scale)),
        Point("SVHN, supervised", task("svhn", scale)),
        Point("CIFAR-10, semi-supervised", task("cifar10", scale), "semi"),
        Point("SVHN, semi-supervised", task("svhn", scale), "semi"),
        Point("USPS, unsupervised", task("usps", scale, devices=10, paradigm="unsupervised"), "unsupervised"),
    ]


EXPERIMENT = Experiment("curve-more", points, curves)
