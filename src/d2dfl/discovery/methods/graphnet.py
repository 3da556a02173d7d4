"""The net of the GCN baseline: what it sees of a network, how it is built and trained, which links it likes (see gcn.py)."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.methods.costs import STEPS
from d2dfl.discovery.methods.rules import highest
from d2dfl.discovery.task import Task
from d2dfl.errors import MissingExtraError
from d2dfl.network import Network

if TYPE_CHECKING:
    import torch

DEVICES = 10  # of a training system
WIDTH = DEVICES - 1  # received powers among a device's features
CHANNELS = (64, 16)  # of the two convolutions
HIDDEN = 16  # of the decoder
BLOCK = 2**18  # links scored at a time: bounds the memory of the decoder


class Gauge(NamedTuple):
    """How the net's input is measured, alike for the systems it learns from and for the task's network."""

    power: bool  # links are measured by received power, or by 1 - drop where a network has no power
    unit: float  # mean over the training systems' links: received power may be in watts, 1e-9 or so
    center: NDArray[np.float64]  # [feature] mean over the training systems' devices
    spread: NDArray[np.float64]  # [feature] standard deviation


class NetInput(NamedTuple):
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


def require() -> None:
    """Say what to install where the package of graph nets is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the package are not ours to mend
            import torch_geometric.nn  # noqa: F401  # only to see whether it is there
    except ImportError as error:
        raise MissingExtraError("the GCN baseline", "torch-geometric", "gcn") from error


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


def input_of(network: Network, gauge: Gauge) -> NetInput:
    """Features of the devices and links with their weights, in O(devices * slots)."""
    import torch

    heard = network.candidates >= 0
    receiver = np.nonzero(heard)[0]
    # A convolution adds a link of weight 1 from a device to itself. Divided by the number of devices heard, all
    # others together weigh about as much; else a device of a large network would be lost among them.
    weights = strength(network, gauge.power) / gauge.unit / np.maximum(heard.sum(axis=1, keepdims=True), 1)
    features = (features_of(network, gauge.power, gauge.unit) - gauge.center) / gauge.spread
    return NetInput(
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

    require()
    from torch_geometric.nn import GCNConv

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Net(
            near=GCNConv(inputs, CHANNELS[0]),
            far=GCNConv(CHANNELS[0], CHANNELS[1]),
            pair=torch.nn.Linear(2 * CHANNELS[1], HIDDEN),
            verdict=torch.nn.Linear(HIDDEN, 1),
        )


def embed(net: Net, scene: NetInput) -> "torch.Tensor":
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


def train(net: Net, lessons: list[tuple[NetInput, NDArray[np.bool_]]], task: Task) -> list[float]:
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
def torch_on_one_core() -> Iterator[None]:
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


def joined(lessons: list[tuple[NetInput, NDArray[np.bool_]]]) -> tuple[NetInput, "torch.Tensor"]:
    """Several systems as one graph without links between them."""
    import torch

    scenes = [scene for scene, _ in lessons]
    starts = np.cumsum([0, *(len(scene.features) for scene in scenes)])
    scene = NetInput(
        features=torch.cat([scene.features for scene in scenes]),
        links=torch.cat([scene.links + int(start) for scene, start in zip(scenes, starts, strict=False)], dim=1),
        weights=torch.cat([scene.weights for scene in scenes]),
    )
    return scene, _float(np.concatenate([right for _, right in lessons]))


def best_slots(
    net: Net, scene: NetInput, candidates: NDArray[np.int32], ties: np.random.Generator
) -> NDArray[np.int32]:
    """slots[receiver, 1]: the slot with the highest score for each device, of equals one by chance; -1 if it hears nobody.

    However low the score: the paper's GCN cannot choose to have no link.
    """
    import torch

    heard = candidates >= 0
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    with torch.no_grad():
        embedding = embed(net, scene)
        parts = [logits(net, embedding, part) for part in torch.split(scene.links, BLOCK, dim=1)]
    scores[heard] = torch.cat(parts).numpy()
    return highest(candidates, ties, scores)
