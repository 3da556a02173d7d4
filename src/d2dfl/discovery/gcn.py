"""The paper's GCN baseline: a graph convolutional network at the server names a link for every device (Appendix C, R38).

The net is trained on made-up systems of 10 devices, drawn by the task's own settings, and then scores every link of
the task's network. It sees received power and label histograms, as in the paper; it does not see trust.

R38, "all possible combinations of 4 devices are considered, and the 10 best links are chosen based on the local
reward": in each of the 210 groups of 4 devices we play all 3^4 graphs of one link a device, and a link is worth the
mean local reward of its receiver over all those graphs. The 10 best links *of the system* are the examples of a link,
the other 80 are not. Two other readings fail: a group has only 12 links, and 10 of 12 name nearly all of them; and if
a receiver asked alone, without rivals, groups would make no difference.
"""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.discovery.game import board_of
from d2dfl.discovery.rounds import play_round, round_of
from d2dfl.discovery.task import Found, Task
from d2dfl.errors import MissingExtraError
from d2dfl.network import Network
from d2dfl.rng import stream

if TYPE_CHECKING:
    import torch

DEVICES = 10  # of a training system
GROUP = 4  # devices that play against each other while links are rated
BEST = 10  # links of a training system that count as right
WIDTH = DEVICES - 1  # received powers among a device's features
CHANNELS = (64, 16)  # of the two convolutions
HIDDEN = 16  # of the decoder
BLOCK = 2**18  # links scored at a time: bounds the memory of the decoder
MESSAGES_PER_DEVICE = 2  # features to the server, a link back


class Gauge(NamedTuple):
    """How strong a link looks to the net: the same for the systems it learns from and for the task's network."""

    power: bool  # received power, or 1 - drop for a network that has none
    scale: float  # mean over the training systems: received power may be in watts, 1e-9 or so


class Scene(NamedTuple):
    """What the net sees of a network."""

    features: "torch.Tensor"  # [device, WIDTH + partition]
    links: "torch.Tensor"  # [2, link] transmitter, receiver
    weights: "torch.Tensor"  # [link]


class Net(NamedTuple):
    """Two convolutions and a decoder of two linear layers."""

    near: Any
    far: Any
    pair: "torch.nn.Linear"
    verdict: "torch.nn.Linear"


def find(task: Task) -> Found:
    """Train the net on systems of 10 devices, then give every device the link that the net likes best."""
    _require()
    # The stage is not in the seed: the server trains once and uses the net in every stage.
    systems = training_systems(task)
    gauge = gauge_of(systems, power=task.network.rss is not None)
    net = make_net(WIDTH + task.network.partitions, int(stream(task.seed, "gcn", "net").integers(2**63)))
    train(net, [(scene_of(system, gauge), right_links(task, system)) for system in systems], task)
    slots = best_slots(net, scene_of(task.network, gauge), task.network.candidates)
    return Found(slots[:, None], *cost(task))


def _require() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the package are not ours to mend
            import torch_geometric.nn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the GCN baseline", "torch-geometric", "gcn") from error


def training_systems(task: Task) -> list[Network]:
    """Random systems of 10 devices by the task's settings, with as many partitions as the task's network has."""
    settings, partitions = task.config.network, task.network.partitions
    labels = settings.labels_per_device if settings.partitions == partitions else 3
    small = replace(
        settings,
        devices=DEVICES,
        partitions=partitions,
        labels_per_device=min(labels, partitions),
        trust="random:0.5" if settings.trust.endswith(".npy") else settings.trust,  # a file fits one network only
    )
    config = replace(task.config, network=small, channel=_drawable(task))
    seeds = stream(task.seed, "gcn", "systems").integers(2**63, size=task.config.gcn.systems)
    return [Network.generate(config, int(seed)) for seed in seeds]


def _drawable(task: Task) -> ChannelConfig:
    """The task's channel; in place of a table from a file, Gaussian powers with the table's mean and spread."""
    channel, network = task.config.channel, task.network
    if channel.kind != "csv":
        return channel
    heard = network.candidates >= 0
    if network.rss is None or not heard.any():
        return replace(channel, kind="gaussian")
    power = network.rss[heard]
    return replace(
        channel,
        kind="gaussian",
        mean=float(power.mean()),
        deviation=float(power.std()),
        lowest=float(power.min()),
        highest=float(power.max()),
    )


def right_links(task: Task, system: Network) -> NDArray[np.bool_]:
    """Which of the system's links are its 10 best, in the order of `Scene.links`."""
    board = board_of(system, task.terms)
    worth = np.asarray(link_worth(board, task.terms, round_of(board)))[system.candidates >= 0]
    right = np.zeros(len(worth), dtype=np.bool_)
    right[np.argsort(-worth, kind="stable")[:BEST]] = True
    return right


@njit(cache=True)
def link_worth(board: Any, terms: Any, work: Any) -> Any:
    """worth[receiver, slot]: the receiver's mean local reward over all graphs of all groups of 4 with this link."""
    devices, slots = board.candidates.shape
    total = np.zeros((devices, slots))
    games = np.zeros((devices, slots))
    for first in range(devices):
        for second in range(first + 1, devices):
            for third in range(second + 1, devices):
                for fourth in range(third + 1, devices):
                    _play_group(board, terms, work, np.array([first, second, third, fourth]), total, games)
    return total / np.maximum(games, 1.0)


@njit(cache=True)
def _play_group(board: Any, terms: Any, work: Any, group: Any, total: Any, games: Any) -> None:
    """Every graph in which each device of the group has a link from another one of the group, if it hears any."""
    choices = np.empty((GROUP, GROUP), np.int32)
    sizes = np.zeros(GROUP, np.int64)
    graphs = 1
    for member in range(GROUP):
        for slot in range(board.candidates.shape[1]):
            if np.any(group == board.candidates[group[member], slot]):
                choices[member, sizes[member]] = slot
                sizes[member] += 1
        graphs *= max(sizes[member], 1)
    for graph in range(graphs):
        code = graph  # a number in mixed radix: one digit per device, its choice
        for member in range(GROUP):
            if sizes[member] > 0:
                slot = choices[member, code % sizes[member]]
                code //= sizes[member]
                work.slot[group[member]] = slot
                work.drop[group[member]] = board.drop[group[member], slot]
        play_round(board, terms, work)
        for receiver in group:
            slot = work.slot[receiver]
            if slot >= 0:
                total[receiver, slot] += work.local[receiver]
                games[receiver, slot] += 1.0
    work.slot[group] = -1


def gauge_of(systems: list[Network], power: bool) -> Gauge:
    """Received power where the task has it, in units of its mean over the training systems."""
    raw = Gauge(power, 1.0)
    mean = np.mean([strength(system, raw)[system.candidates >= 0].mean() for system in systems])
    return Gauge(power, float(mean) or 1.0)


def strength(network: Network, gauge: Gauge) -> NDArray[np.float64]:
    """How strong each link is, [receiver, slot]; 0 in empty slots."""
    value = network.rss if gauge.power and network.rss is not None else 1.0 - network.drop
    return np.where(network.candidates >= 0, value / gauge.scale, 0.0)


def sorted_strengths(values: NDArray[np.float64], heard: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Each device's strengths in falling order, resampled to WIDTH values [device, WIDTH]; zeros if it hears nobody.

    Evenly spaced places of the sorted row, with interpolation between neighbours: from the strongest to the weakest
    for any number of devices. Cutting the row of a larger network off would show the net only strong links, such as
    its training systems never have; of 9 values nothing changes.
    """
    ordered = -np.sort(np.where(heard, -values, np.inf), axis=1)
    last = heard.sum(axis=1) - 1
    place = np.maximum(last, 0)[:, None] * np.linspace(0.0, 1.0, WIDTH)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(last, 0)[:, None])
    low, high = (np.take_along_axis(ordered, index, axis=1) for index in (below, above))
    silent = (last < 0)[:, None]
    low, high = np.where(silent, 0.0, low), np.where(silent, 0.0, high)
    return np.asarray(low + (high - low) * (place - below))


def scene_of(network: Network, gauge: Gauge) -> Scene:
    """Features of the devices and links with their weights, in O(devices * slots)."""
    import torch

    values, heard = strength(network, gauge), network.candidates >= 0
    held = network.counts.sum(axis=1, keepdims=True)
    histogram = network.counts / np.where(held > 0, held, 1.0)
    receiver, slot = np.nonzero(heard)
    # A convolution adds a link of weight 1 from a device to itself. Divided by the number of devices heard, all others
    # together weigh about as much, whatever the size of the network; else a device in a large one would not see itself.
    weights = values[receiver, slot] / heard.sum(axis=1)[receiver]
    return Scene(
        features=_float(np.concatenate([sorted_strengths(values, heard), histogram], axis=1)),
        links=torch.from_numpy(np.stack([network.candidates[receiver, slot].astype(np.int64), receiver])),
        weights=_float(weights),
    )


def _float(values: NDArray[Any]) -> "torch.Tensor":
    import torch

    return torch.from_numpy(values.astype(np.float32))


def make_net(inputs: int, seed: int) -> Net:
    """A net with random weights; the global random state stays as it is."""
    import torch
    from torch_geometric.nn import GCNConv

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Net(
            near=GCNConv(inputs, CHANNELS[0]),
            far=GCNConv(CHANNELS[0], CHANNELS[1]),
            pair=torch.nn.Linear(2 * CHANNELS[1], HIDDEN),
            verdict=torch.nn.Linear(HIDDEN, 1),
        )


def embed(net: Net, scene: Scene) -> "torch.Tensor":
    """[device, channel] from features and links."""
    hidden = net.near(scene.features, scene.links, scene.weights).relu()
    result: torch.Tensor = net.far(hidden, scene.links, scene.weights).relu()
    return result


def logits(net: Net, embedding: "torch.Tensor", links: "torch.Tensor") -> "torch.Tensor":
    """How much the net is for each link [link], from the ordered pair of transmitter and receiver."""
    import torch

    both = torch.cat([embedding[links[0]], embedding[links[1]]], dim=1)
    result: torch.Tensor = net.verdict(net.pair(both).relu()).squeeze(1)
    return result


def train(net: Net, lessons: list[tuple[Scene, NDArray[np.bool_]]], task: Task) -> list[float]:
    """One step of Adam per system and epoch; returns the mean loss of each epoch."""
    import torch

    config = task.config.gcn
    parameters = [parameter for layer in net for parameter in layer.parameters()]
    adam = torch.optim.Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    examples = [(scene, _float(right)) for scene, right in lessons]
    losses = []
    for epoch in range(config.epochs):
        summed = 0.0
        for scene, right in examples:
            adam.zero_grad()
            score = logits(net, embed(net, scene), scene.links)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(score, right)
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            summed += loss.item()
        losses.append(summed / len(examples))
        task.progress((epoch + 1) / config.epochs)
    return losses


def best_slots(net: Net, scene: Scene, candidates: NDArray[np.int32]) -> NDArray[np.int32]:
    """The slot with the highest score for each device, the first of equals; -1 for a device that hears nobody.

    However low the score: the paper's GCN cannot choose to have no link.
    """
    import torch

    heard = candidates >= 0
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    with torch.no_grad():
        embedding = embed(net, scene)
        parts = [logits(net, embedding, part) for part in scene.links.split(BLOCK, dim=1)]
    scores[heard] = torch.cat(parts).numpy()
    return np.where(heard.any(axis=1), scores.argmax(axis=1), -1).astype(np.int32)


def cost(task: Task) -> tuple[float, float]:
    """Messages and bits: received powers and counts of each device to the server, the number of a device back."""
    network, discovery = task.network, task.config.discovery
    powers = float((network.candidates >= 0).sum())
    counts = float(network.devices) * (network.partitions + 1)
    return float(network.devices * MESSAGES_PER_DEVICE), powers * discovery.real_bits + counts * discovery.count_bits
