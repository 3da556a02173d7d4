"""Appendix A: three devices, one link each, by hand: what everybody holds after the exchange."""

import numpy as np

from d2dfl.paper import NONE, Cell, Experiment, Point, Results, Shown, Values, each
from d2dfl.paper.catalogue import scripts_folder
from d2dfl.paper.verdicts import expected
from d2dfl.report.findings import Table

DEVICES = ("i", "j", "k")


def points(scale: str) -> list[Point]:
    return [Point("three devices", {}, contenders=(NONE,))]


def measure(cell: Cell) -> Values:
    """Devices i, j, k with 5 labels; i and k ask j, whose trust is all that the paper tells; nothing is lost."""
    from d2dfl import Network
    from d2dfl.discovery.evaluation import graph_of

    trust = np.zeros((3, 3, 5))  # [receiver, transmitter, label]
    trust[0, 1] = [1, 0, 1, 1, 0]
    trust[2, 1] = [1, 1, 1, 0, 0]
    network = Network.from_arrays(
        counts=[[20, 0, 0, 0, 20], [20, 20, 20, 20, 20], [0, 20, 0, 20, 0]],
        threshold=np.full((3, 5), 10.0),
        trust=trust,
        drop=np.zeros((3, 3)),
    )
    slots = np.array([[0], [-1], [1]], dtype=np.int32)
    return {"after": graph_of(network, slots, over_ask=False).counts_after(network.counts).tolist()}


def show(results: Results) -> Shown:
    paper = np.array(expected(scripts_folder())["example"].numbers["after"])
    ours = np.array(results.found["three devices", NONE.name, 0]["after"])
    rows = tuple(
        (f"device {name}", str(paper[n].tolist()), str([round(value) for value in ours[n]]))
        for n, name in enumerate(DEVICES)
    )
    # Nothing here is random: the seeds agree, and the interval is a point.
    equal = np.full(3, float((paper == ours).sum()))
    table = Table("Datapoints by label after the exchange", ("", "paper", "ours"), rows)
    return Shown({"equal": {"message passing": equal}}, (table,))


EXPERIMENT = Experiment(
    "example",
    points,
    show,
    each(measure),
    random=False,
    setting="3 devices with 5 labels, thresholds of 10, no losses",
    trains=False,
)
