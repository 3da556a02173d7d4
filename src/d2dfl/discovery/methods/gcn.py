"""The paper's GCN baseline: a graph convolutional network at the server names a link for every device.

Appendix C, R38. The net is trained on made-up systems of 10 devices, drawn by the task's own settings, and then
scores every link of the task's network. It sees received power and label histograms of devices, as in the paper, but
not trust, nor how strong one certain link is.

"All possible combinations of 4 devices are considered, and the 10 best links are chosen based on the local
reward": in each of the 210 groups of 4 devices we play all 3^4 graphs of one link a device, and a link is worth
the mean local reward of its receiver over those graphs. The 10 best links *of the system* are the examples of a
link, the other 80 are not. Two other readings fail: a group has only 12 links, and 10 of 12 name nearly all of
them; and if a receiver asked alone, without rivals, groups would make no difference.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel
from d2dfl.config import ChannelConfig
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.task import LinkChoice, Task
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
STEPS = 128  # of Adam in an epoch at most: many systems are trained on in batches
BLOCK = 2**18  # links scored at a time: bounds the memory of the decoder
MESSAGES_PER_DEVICE = 2  # features to the server, a link back


class Gauge(NamedTuple):
    """How the net's input is measured, alike for the systems it learns from and for the task's network."""

    power: bool  # links are measured by received power, or by 1 - drop where a network has no power
    unit: float  # mean over the training systems' links: received power may be in watts, 1e-9 or so
    center: NDArray[np.float64]  # [feature] mean over the training systems' devices
    spread: NDArray[np.float64]  # [feature] standard deviation


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


KEPT = 8  # trained nets
_kept: dict[tuple[object, ...], tuple[Net, Gauge]] = {}


def find(task: Task) -> LinkChoice:
    """Train the net on systems of 10 devices, then give every device the link that the net likes best."""
    _require()
    net, gauge = trained(task)
    slots = best_slots(net, scene_of(task.network, gauge), task.network.candidates)
    return LinkChoice(slots[:, None], *cost(task))


def trained(task: Task) -> tuple[Net, Gauge]:
    """The net, and the scale of its inputs. The last few are kept: stages and points of a sweep ask for the same one."""
    config, power = task.config, task.network.rss is not None
    # The stage is not in the seeds: every stage arrives at the same net, as if the server had trained once.
    settings = (replace(config.network, devices=DEVICES), _drawable(task), config.reward, config.gcn)
    key = (*settings, task.network.partitions, power, task.seed)
    if key not in _kept:
        systems = training_systems(task)
        gauge = gauge_of(systems, power)
        net = make_net(len(gauge.center), int(stream(task.seed, "gcn", "net").integers(2**63)))
        lessons = [(scene_of(system, gauge), right_links(task, system)) for system in systems]
        with one_thread():
            train(net, lessons, task)
        while len(_kept) >= KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = net, gauge
    return _kept[key]


def _require() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the package are not ours to mend
            import torch_geometric.nn  # noqa: F401  # only to see whether it is there
    except ImportError as error:
        raise MissingExtraError("the GCN baseline", "torch-geometric", "gcn") from error


def training_systems(task: Task) -> list[Network]:
    """Random systems of 10 devices by the task's settings, with the partitions of the task's network."""
    settings, partitions = task.config.network, task.network.partitions
    labels = settings.labels_per_device if settings.partitions == partitions else 3
    from_file = settings.trust.endswith(".npy")  # a file fits one network only
    small = replace(
        settings,
        devices=DEVICES,
        partitions=partitions,
        labels_per_device=min(labels, partitions),
        trust="random:0.5" if from_file else settings.trust,
    )
    config = replace(task.config, network=small, channel=_drawable(task))
    seeds = stream(task.seed, "gcn", "systems").integers(2**63, size=task.config.gcn.systems)
    return [Network.generate(config, int(seed)) for seed in seeds]


def _drawable(task: Task) -> ChannelConfig:
    """The task's channel; for a table from a file, Gaussian power with the table's mean and spread."""
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
    """Which of the system's links are its 10 best, in the order of `Scene.links`.

    Training systems have labels even where the task's network has data clusters: histograms are all the net sees.
    """
    terms = Terms.of(task.config.reward)
    board = board_of(system, terms)
    worth = np.asarray(link_worth(board, terms, round_of(board, terms)))[system.candidates >= 0]
    right = np.zeros(len(worth), dtype=np.bool_)
    right[np.argsort(-worth, kind="stable")[:BEST]] = True
    return right


@kernel
def link_worth(board: Any, terms: Any, work: Any) -> Any:
    """worth[receiver, slot]: the receiver's mean local reward over all groups' graphs that have this link."""
    devices, slots = board.candidates.shape
    total = np.zeros((devices, slots))
    games = np.zeros((devices, slots))
    for first in range(devices):
        for second in range(first + 1, devices):
            for third in range(second + 1, devices):
                for fourth in range(third + 1, devices):
                    _play_group(board, terms, work, np.array([first, second, third, fourth]), total, games)
    return total / np.maximum(games, 1.0)


@kernel
def _play_group(board: Any, terms: Any, work: Any, group: Any, total: Any, games: Any) -> None:
    """Every graph in which each device of the group has a link from inside the group, if it hears anyone there."""
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
        play_round(board, terms, work, board.gauss)
        for receiver in group:
            slot = work.slot[receiver]
            if slot >= 0:
                total[receiver, slot] += work.local[receiver]
                games[receiver, slot] += 1.0
    work.slot[group] = -1


def gauge_of(systems: list[Network], power: bool) -> Gauge:
    """Units in which the training systems' features have mean 0 and standard deviation 1.

    Without them the powers, all near 1, drown the histograms and the net learns nothing about labels.
    """
    unit = np.mean([strength(system, power)[system.candidates >= 0].mean() for system in systems])
    unit = float(unit) or 1.0
    rows = np.concatenate([features_of(system, power, unit) for system in systems])
    spread = rows.std(axis=0)
    return Gauge(power, unit, rows.mean(axis=0), np.where(spread > 0, spread, 1.0))


def strength(network: Network, power: bool) -> NDArray[np.float64]:
    """How strong each link is, [receiver, slot]; 0 in empty slots."""
    value = network.rss if power and network.rss is not None else 1.0 - network.drop
    return np.where(network.candidates >= 0, value, 0.0)


def features_of(network: Network, power: bool, unit: float) -> NDArray[np.float64]:
    """[device, WIDTH + partition]: sorted strengths of the links, in units of `unit`, and the label histogram."""
    held = network.counts.sum(axis=1, keepdims=True)
    histogram = network.counts / np.where(held > 0, held, 1.0)
    ordered = sorted_strengths(strength(network, power) / unit, network.candidates >= 0)
    return np.concatenate([ordered, histogram], axis=1)


def sorted_strengths(values: NDArray[np.float64], heard: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Each device's strengths in falling order, resampled to [device, WIDTH]; zeros if it hears nobody.

    Taken at evenly spaced places of the sorted row, between neighbours by interpolation: always from the strongest
    to the weakest, so that a row of 24 looks like the rows of 9 that the net was trained on, which stay as they
    are. The first 9 of 24 would all be strong, and zeros after a short row would look like dead links.
    """
    ordered = -np.sort(np.where(heard, -values, np.inf), axis=1)
    last = np.maximum(heard.sum(axis=1) - 1, 0)[:, None]
    ordered[~heard.any(axis=1)] = 0.0
    place = last * np.linspace(0.0, 1.0, WIDTH)
    below = place.astype(np.int64)
    low = np.take_along_axis(ordered, below, axis=1)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=1)
    return np.asarray(low + (high - low) * (place - below))


def scene_of(network: Network, gauge: Gauge) -> Scene:
    """Features of the devices and links with their weights, in O(devices * slots)."""
    import torch

    heard = network.candidates >= 0
    receiver = np.nonzero(heard)[0]
    # A convolution adds a link of weight 1 from a device to itself. Divided by the number of devices heard, all
    # others together weigh about as much; else a device of a large network would be lost among them.
    weights = strength(network, gauge.power) / gauge.unit / np.maximum(heard.sum(axis=1, keepdims=True), 1)
    features = (features_of(network, gauge.power, gauge.unit) - gauge.center) / gauge.spread
    return Scene(
        features=_float(features),
        links=torch.from_numpy(np.stack([network.candidates[heard].astype(np.int64), receiver])),
        weights=_float(weights[heard]),
    )


def _float(values: NDArray[Any]) -> "torch.Tensor":
    import torch

    return torch.from_numpy(values.astype(np.float32))


def make_net(inputs: int, seed: int) -> Net:
    """A net with random weights; the global random state stays as it is."""
    import torch

    _require()
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
    """Adam on batches of systems, with right and wrong links; returns the mean loss of each epoch."""
    import torch

    config = task.config.gcn
    parameters = [parameter for layer in net for parameter in layer.parameters()]
    adam = torch.optim.Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    size = -(-len(lessons) // STEPS)
    batches = [joined(lessons[first : first + size]) for first in range(0, len(lessons), size)]
    losses = []
    for epoch in range(config.epochs):
        summed = 0.0
        for scene, right in batches:
            adam.zero_grad()
            score = logits(net, embed(net, scene), scene.links)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(score, right)
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            adam.step()
            summed += loss.item()
        losses.append(summed / len(batches))
        task.progress((epoch + 1) / config.epochs)
    return losses


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work on one core: such small products gain nothing from two, and wait for whichever is busy.

    Measured beside other work on both cores: 32 s became 4 s.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def joined(lessons: list[tuple[Scene, NDArray[np.bool_]]]) -> tuple[Scene, "torch.Tensor"]:
    """Several systems as one graph without links between them."""
    import torch

    scenes = [scene for scene, _ in lessons]
    starts = np.cumsum([0, *(len(scene.features) for scene in scenes)])
    scene = Scene(
        features=torch.cat([scene.features for scene in scenes]),
        links=torch.cat([scene.links + int(start) for scene, start in zip(scenes, starts, strict=False)], dim=1),
        weights=torch.cat([scene.weights for scene in scenes]),
    )
    return scene, _float(np.concatenate([right for _, right in lessons]))


def best_slots(net: Net, scene: Scene, candidates: NDArray[np.int32]) -> NDArray[np.int32]:
    """The slot with the highest score for each device, the first of equals; -1 if it hears nobody.

    However low the score: the paper's GCN cannot choose to have no link.
    """
    import torch

    heard = candidates >= 0
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    with torch.no_grad():
        embedding = embed(net, scene)
        parts = [logits(net, embedding, part) for part in torch.split(scene.links, BLOCK, dim=1)]
    scores[heard] = torch.cat(parts).numpy()
    return np.where(heard.any(axis=1), scores.argmax(axis=1), -1).astype(np.int32)


def cost(task: Task) -> tuple[float, float]:
    """Messages and bits: each device's received powers and counts to the server, a device number back."""
    network, discovery = task.network, task.config.discovery
    powers = float((network.candidates >= 0).sum())
    counts = float(network.devices) * (network.partitions + 1)
    bits = powers * discovery.real_bits + counts * discovery.count_bits
    return float(network.devices * MESSAGES_PER_DEVICE), bits
