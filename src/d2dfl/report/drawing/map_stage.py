"""A map of the record on a stage: the same layout as in picture.py, from the record alone."""

import numpy as np
from numpy.typing import NDArray

from d2dfl.report.drawing.scene import Arrows, Stage, bent, link_width, stage_at
from d2dfl.report.findings import Layer, Map


def cluster_names(item: Map) -> NDArray[np.int64]:
    """[device] clusters, counted from 0."""
    rank = {name: number for number, name in enumerate(sorted(set(item.cluster)))}
    return np.array([rank[name] for name in item.cluster], dtype=np.int64)


def map_stage(item: Map, width: float) -> Stage:
    """Devices and hulls; without a scale where all stand in one place, or nobody knows where."""
    positions = np.array(item.positions, dtype=np.float64)
    measured = bool(item.unit) and bool(np.ptp(positions, axis=0).max() > 0)
    return stage_at(positions, cluster_names(item), width, measured)


def most_sent(item: Map) -> float:
    """The most datapoints on any link of any method: they have the full width."""
    return max((sum(link.amounts) for layer in item.layers for link in layer.links), default=0.0)


def layer_links(layer: Layer, partitions: int, stage: Stage, most: float) -> Arrows:
    """The links of one method, bent as in drawing/picture.py."""
    amount = np.array([link.amounts for link in layer.links], dtype=np.float64).reshape(len(layer.links), partitions)
    links = Arrows(
        sender=np.array([link.transmitter for link in layer.links], dtype=np.int64),
        receiver=np.array([link.receiver for link in layer.links], dtype=np.int64),
        trusted=np.array([link.trusted for link in layer.links], dtype=np.int64),
        amount=amount,
        drop=np.array([link.loss for link in layer.links], dtype=np.float64),
        width=link_width(stage, amount.sum(axis=1) / max(most, 1e-9)),
        bow=np.zeros(len(layer.links)),
    )
    return bent(stage, links)
