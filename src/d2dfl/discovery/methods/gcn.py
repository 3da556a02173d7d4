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

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, part
from d2dfl.config import ChannelConfig
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.methods.graphnet import (
    DEVICES,
    Gauge,
    Net,
    best_slots,
    gauge_of,
    input_of,
    make_net,
    require,
    torch_on_one_core,
    train,
)
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.network import Network
from d2dfl.rng import stream

GROUP = 4  # devices that play against each other while links are rated
BEST = 10  # links of a training system that count as right
MESSAGES_PER_DEVICE = 2  # features to the server, a link back
KEPT = 64  # trained nets: points of a sweep ask for those of the same seeds again
_kept: dict[tuple[object, ...], tuple[Net, Gauge]] = {}


def find(task: Task) -> LinkChoice:
    """Train the net on systems of 10 devices, then give every device the link that the net likes best."""
    require()
    net, gauge = trained(task)
    ties = stream(task.seed, "gcn", "ties", task.stage)
    slots = best_slots(net, input_of(task.network, gauge), task.network.candidates, ties)
    return LinkChoice(slots, *cost(task))


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
        lessons = [(input_of(system, gauge), right_links(task, system)) for system in systems]
        with torch_on_one_core():
            train(net, lessons, task)
        while len(_kept) >= KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = net, gauge
    return _kept[key]


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
        deviation_rule="deviation",
        lowest=float(power.min()),
        highest=float(power.max()),
    )


def right_links(task: Task, system: Network) -> NDArray[np.bool_]:
    """Which of the system's links are its 10 best, in the order of `NetInput.links`.

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


@part
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


def cost(task: Task) -> tuple[float, float]:
    """Messages and bits: each device's received powers and counts to the server, a device number back."""
    network, discovery = task.network, task.config.discovery
    powers = float((network.candidates >= 0).sum())
    counts = float(network.devices) * (network.partitions + 1)
    bits = powers * discovery.real_bits + counts * discovery.count_bits
    return float(network.devices * MESSAGES_PER_DEVICE), bits
