"""Fig. 12: as Fig. 5 on other data: radio and SVHN supervised, CIFAR-10 and SVHN semi-supervised, USPS unsupervised."""

from d2dfl.paper import CONTENDERS, Experiment, Point, curves, task


def points(scale: str) -> list[Point]:
    usps = task("usps", scale, devices=10, paradigm="unsupervised")
    return [
        Point("radio signals, supervised", task("radio", scale), contenders=CONTENDERS),
        Point("SVHN, supervised", task("svhn", scale), contenders=CONTENDERS),
        Point("CIFAR-10, semi-supervised", task("cifar10", scale), "semi", CONTENDERS),
        Point("SVHN, semi-supervised", task("svhn", scale), "semi", CONTENDERS),
        Point("USPS, unsupervised", usps, "unsupervised", CONTENDERS),
    ]


EXPERIMENT = Experiment("curve-more", points, curves)
