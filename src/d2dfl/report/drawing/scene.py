"""Where everything stands in a picture of a graph: devices, clusters and links, laid out in points (1/72 inch)."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # a page needs no compiler, and one without a map no trees
    from scipy.spatial import cKDTree

    from d2dfl.discovery.evaluation import Evaluation
    from d2dfl.network import Network
    from d2dfl.network.graph import Graph

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

BOWS = (0.16, 0.08, 0.24, 0.36, -0.16, -0.08, -0.24, -0.36)  # ways to bend an arrow, best first
CROWD = 45  # devices from which circles shrink
LANDMARKS = 100  # devices to which all others are measured when positions are unknown


class Stage(NamedTuple):
    """Where the devices of a network stand in a panel, in points."""

    width: float
    height: float
    xy: Array  # [device, 2]
    radius: float  # of a node
    hulls: list[Array]  # per cluster: [corner, 2]
    points_per_m: float  # 0 where there is no scale


class Arrows(NamedTuple):
    """The links of a graph on a stage."""

    sender: IntArray
    receiver: IntArray
    trusted: IntArray  # partitions that the sender lets the receiver have
    amount: Array  # [link, partition] datapoints sent
    drop: Array
    width: Array
    bow: Array  # how far the arrow bends to its right, as a share of its length


class Scene(NamedTuple):
    """One panel."""

    title: str
    network: "Network"
    evaluation: "Evaluation"
    stage: Stage
    links: Arrows


def stage_of(network: "Network", width: float) -> Stage:
    """Devices at their positions, scaled into a panel and moved apart where they would cover each other."""
    raw = network.positions
    measured = raw is not None and bool(np.ptp(raw, axis=0).max() > 0)
    if raw is None or not measured:
        raw = layout(network)
    return stage_at(raw, network.cluster, width, measured)


def stage_at(raw: Array, cluster: NDArray[Any], width: float, measured: bool) -> Stage:
    """The same for positions and clusters alone; a scale only where positions are measured."""
    extent = np.ptp(raw, axis=0)
    extent = extent.clip(min=max(1e-9 * float(extent.max()), 1e-12))
    size = width * np.array([1.0, np.clip(extent[1] / extent[0], 0.6, 1.05)])
    margin = 9.0 + 0.22 * width / np.sqrt(max(len(raw), 25))  # for a hull and its name
    scale = float(((size - 2 * margin) / extent).min())
    xy = (raw - (raw.min(axis=0) + raw.max(axis=0)) / 2) * scale + size / 2
    near = np.median(_tree(xy).query(xy, k=2)[0][:, 1]) if len(xy) > 1 else width
    radius = float(np.clip(max(0.42 * near, 0.1 * np.sqrt(size.prod() / len(xy))), 1.0, 0.016 * width + 5))
    radius = max(1.0, radius * min(1.0, (CROWD / len(xy)) ** 0.5))  # room for links where there are many devices
    xy = _apart(xy, 2.3 * radius + 1.0, margin, size - margin)
    order = np.argsort(cluster, kind="stable")
    groups = np.split(xy[order], np.flatnonzero(np.diff(cluster[order])) + 1)
    hulls = [_hull(group, 1.6 * radius + 2) for group in groups]
    return Stage(width, float(size[1]), xy, radius, hulls, scale if measured else 0.0)


def layout(network: "Network") -> Array:
    """Positions from loss probabilities: multidimensional scaling, over landmarks in large networks.

    Where power falls with the square of distance, eq. prob_drop makes sqrt(-log(1 - P)) a distance.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    devices = network.devices
    receiver, slot = np.nonzero((network.candidates >= 0) & (network.drop < 1))
    length = np.sqrt(-np.log1p(-network.drop[receiver, slot])) + 1e-6
    sender = network.candidates[receiver, slot]
    roads = coo_array((length, (receiver, sender)), shape=(devices, devices)).tocsr()
    marks = np.unique(np.linspace(0, devices - 1, min(devices, LANDMARKS)).astype(np.int64))
    away = dijkstra(roads, directed=False, indices=marks)
    reached = np.isfinite(away)
    away = np.where(reached, away, 1.5 * away[reached].max(initial=0.0)) ** 2
    between = away[:, marks]
    pairs = between[~np.eye(len(marks), dtype=np.bool_)]
    if not pairs.size or np.ptp(pairs) <= 1e-9 * pairs.max():
        return _sunflower(devices)
    centred = between - between.mean(axis=0) - between.mean(axis=1, keepdims=True) + between.mean()
    value, vector = np.linalg.eigh(-centred / 2)
    value, vector = value[[-1, -2]], vector[:, [-1, -2]]
    sign = np.sign(vector[np.abs(vector).argmax(axis=0), [0, 1]])  # an eigenvector may point either way
    weight = np.where(value > 1e-9 * value[0], sign / np.sqrt(value.clip(min=1e-300)), 0.0)
    return np.asarray((between.mean(axis=1) - away.T) @ (vector * weight) / 2)


def _sunflower(devices: int) -> Array:
    """Evenly spread places, for devices that nothing tells apart."""
    index = np.arange(devices)
    angle = index * np.pi * (3 - np.sqrt(5))
    return np.asarray(np.sqrt(index + 0.5)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1))


def _apart(xy: Array, distance: float, low: Any, high: Any) -> Array:
    """Push devices that stand closer than `distance` away from each other."""
    everyone = np.arange(len(xy))
    spin = _sunflower(len(xy)) / np.sqrt(everyone + 0.5)[:, None]
    for _ in range(200):
        gap, other = _tree(xy).query(xy, k=min(7, len(xy)), distance_upper_bound=distance - 0.01)
        gap, other = gap.reshape(len(xy), -1), other.reshape(len(xy), -1)
        device, place = np.nonzero((other < len(xy)) & (other != everyone[:, None]))
        if not len(device):
            break
        step, gap = xy[device] - xy[other[device, place]], gap[device, place][:, None]
        step = np.where(gap > 1e-9, step / np.maximum(gap, 1e-9), spin[device])
        push = np.zeros_like(xy)
        np.add.at(push, device, step * (distance - gap) / 2)
        # Many neighbours push together; without a limit a crowd would explode.
        push *= np.minimum(1.0, distance / np.linalg.norm(push, axis=1, keepdims=True).clip(min=1e-9))
        xy = np.clip(xy + push, low, high)
    return xy


def _hull(members: Array, radius: float) -> Array:
    """A rounded outline: the convex hull of a circle around each member, be they one, two or many."""
    from scipy.spatial import ConvexHull

    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    around = (members[:, None, :] + circle).reshape(-1, 2)
    return np.asarray(around[ConvexHull(around).vertices])


def _tree(xy: Array) -> "cKDTree":
    """Who is near whom."""
    # Takes a tenth of a second to load, which a run that nobody looks at does without.
    from scipy.spatial import cKDTree

    return cKDTree(xy)


def links_of(network: "Network", graph: "Graph", stage: Stage, most: float) -> Arrows:
    """Links and their arrows; `most` datapoints have the full width."""
    receiver, edge = graph.links
    amount = graph.allocated[receiver, edge]
    links = Arrows(
        sender=graph.transmitter[receiver, edge].astype(np.int64),
        receiver=receiver.astype(np.int64),
        trusted=network.trust[receiver, graph.slots[receiver, edge]].sum(axis=1),
        amount=amount,
        drop=graph.drop[receiver, edge],
        width=link_width(stage, amount.sum(axis=1) / max(most, 1e-9)),
        bow=np.zeros(len(receiver)),
    )
    return bent(stage, links)


def bent(stage: Stage, links: Arrows) -> Arrows:
    """The same links, each with a bend that keeps it clear of other devices."""
    return links._replace(bow=_bows(stage, links)) if len(links.sender) else links


def link_width(stage: Stage, share: Any) -> Any:
    """Width of a link in points, by its share of the most datapoints that any link carries."""
    return np.clip(0.28 * stage.radius, 0.7, 3.0) * (0.3 + 0.7 * share)


def _bows(stage: Stage, links: Arrows) -> Array:
    """The first bend that passes under no other device and stays in the panel, or the one nearest to it."""
    tree, pair = _tree(stage.xy), np.stack([links.sender, links.receiver], axis=1)
    code, back = pair @ [len(stage.xy), 1], pair @ [1, len(stage.xy)]
    length = np.linalg.norm(stage.xy[links.sender] - stage.xy[links.receiver], axis=1).clip(min=1e-9)
    bows = np.minimum(0.55 * stage.width / length, 1.0)[:, None] * np.array(BOWS)
    both = np.isin(code, back)  # links both ways bend to their own right, and so never meet
    cost = np.full(bows.shape, np.inf)
    for index in range(len(BOWS)):
        left = np.flatnonzero(cost.min(axis=1) > 0)  # who has found a free one takes it
        left = left if index < 4 else left[~both[left]]
        if not len(left):
            break
        one = links._replace(sender=links.sender[left], receiver=links.receiver[left], bow=bows[left, index])
        spots = curves(stage, one, np.linspace(0.03, 0.97, 32))
        gap, other = tree.query(spots, k=min(3, len(stage.xy)))
        strange = (other != pair[left, None, :1]) & (other != pair[left, None, 1:])
        outside = (spots < 5) | (spots > np.array([stage.width, stage.height]) - 5)
        cost[left, index] = (strange * (stage.radius + 4 - gap).clip(min=0)).sum(axis=(1, 2))
        cost[left, index] += outside.any(axis=2).sum(axis=1)
    return np.asarray(bows[np.arange(len(bows)), cost.argmin(axis=1)])


def curves(stage: Stage, links: Arrows, t: Array) -> Array:
    """[link, step, 2] points on quadratic Bézier curves from centre to centre; t[step] or t[link, step]."""
    start, end = stage.xy[links.sender], stage.xy[links.receiver]
    right = np.stack([end[:, 1] - start[:, 1], start[:, 0] - end[:, 0]], axis=1)
    bend = (start + end) / 2 + links.bow[:, None] * right
    t = t[..., None]
    return np.asarray((1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * bend[:, None] + t**2 * end[:, None])
