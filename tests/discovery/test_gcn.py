"""The GCN baseline: it keeps the contract of a method, repeats itself, and learns what it is taught."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from conftest import config_of
from d2dfl import Config, Network, discover
from d2dfl.discovery.equations.messages import exchange
from d2dfl.discovery.equations.reward import local_rewards
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.rounds import round_of
from d2dfl.discovery.methods import gcn, graphnet
from d2dfl.discovery.task import Task
from d2dfl.errors import MissingExtraError
from d2dfl.rng import stream

FAST = {"gcn.epochs": 2, "gcn.systems": 2}


def worth_of(task: Task, network: Network) -> np.ndarray:
    board = board_of(network, task.terms)
    return np.asarray(gcn.link_worth(board, task.terms, round_of(board, task.terms)))


def with_gaps(network: Network, seed: int) -> Network:
    """Some slots emptied; device 0 hears nobody."""
    gone = np.random.default_rng(seed).random(network.candidates.shape) < 0.5
    gone[0] = True
    return replace(
        network,
        candidates=np.where(gone, -1, network.candidates).astype(np.int32),
        drop=np.where(gone, 1.0, network.drop),
        trust=network.trust & ~gone[:, :, None],
    )


def test_contract(config: Config) -> None:
    config = config.with_(**FAST)
    network = with_gaps(Network.generate(config, 3), 4)
    shares: list[float] = []
    found = gcn.find(replace(Task(network, config, 0), progress=shares.append))
    assert found.slots.shape == (9, 1)
    assert found.slots.dtype == np.int32
    hears = (network.candidates >= 0).any(axis=1)
    assert not hears[0]
    assert hears.sum() > 4
    np.testing.assert_array_equal(found.slots[:, 0] >= 0, hears)
    assert (network.candidates[hears, found.slots[hears, 0]] >= 0).all()
    assert shares == [0.5, 1.0]


def test_cost_is_one_upload_and_one_answer_per_device() -> None:
    config = config_of("best", **FAST, **{"discovery.real_bits": 32, "discovery.count_bits": 8})
    found = gcn.find(Task(Network.generate(config, 0), config, 0))
    assert found.messages == 18
    assert found.message_bits == 9 * (8 * 32 + 6 * 8 + 8)


@pytest.mark.parametrize("devices", [1, 2, 60])
def test_any_number_of_devices(devices: int) -> None:
    config = config_of("best", **FAST, **{"network.devices": devices})
    slots = gcn.find(Task(Network.generate(config, 0), config, 0)).slots
    assert slots.shape == (devices, 1)
    assert (slots >= 0).all() == (devices > 1)


def test_networks_that_the_settings_cannot_draw() -> None:
    """Other partitions than configured, trust and power from files, no received power, a device without data."""
    config = config_of("best", **FAST, **{"network.trust": "own.npy", "channel.kind": "csv"})
    drawn = Network.generate(config_of("best", **{"network.partitions": 2, "network.labels_per_device": 1}), 0)
    assert drawn.rss is not None
    for network in (
        replace(drawn, counts=drawn.counts * np.arange(9)[:, None]),
        replace(drawn, rss=drawn.rss * 1e-9),
        replace(drawn, rss=None),
    ):
        assert (gcn.find(Task(network, config, 0)).slots >= 0).all()


def test_power_is_seen_on_one_scale_whatever_its_unit() -> None:
    """A table in nanowatts gives the features and weights that the same table in watts gives."""
    config = config_of("best", **FAST, **{"channel.kind": "csv"})
    network = Network.generate(config_of("best"), 0)
    assert network.rss is not None
    loud = replace(network, rss=network.rss * 1e9)
    gauges = [graphnet.gauge_of(gcn.training_systems(Task(one, config, 0)), power=True) for one in (network, loud)]
    quiet_scene, loud_scene = (graphnet.input_of(*pair) for pair in zip((network, loud), gauges, strict=True))
    torch.testing.assert_close(quiet_scene.features, loud_scene.features)
    torch.testing.assert_close(quiet_scene.weights, loud_scene.weights)


def test_same_seed_same_slots_and_torch_stays_as_it_was() -> None:
    config = config_of("best", **{"gcn.epochs": 5, "gcn.systems": 3, "network.devices": 20})
    network = Network.generate(config, 0)
    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = gcn.find(Task(network, config, seed=7)).slots
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    np.testing.assert_array_equal(gcn.find(Task(network, config, seed=7)).slots, first)
    others = [gcn.find(Task(network, config, seed=seed)).slots for seed in range(3)]
    assert any((other != first).any() for other in others)


@pytest.mark.parametrize("slots", [0, 2])
def test_worth_of_links_equals_the_loops(config: Config, slots: int) -> None:
    config = config.with_(**{"network.devices": 6, "channel.slots": slots})
    network = Network.generate(config, 2)
    task = Task(network, config, 0)
    rewards: dict[tuple[int, int], list[float]] = {}
    for group in itertools.combinations(range(6), 4):
        inside = [[s for s, j in enumerate(network.candidates[i]) if j in group] or [-1] for i in group]
        for choice in itertools.product(*inside):
            links = np.full((6, 1), -1, dtype=np.int32)
            links[list(group), 0] = choice
            moved = exchange(network, links, task.over_ask)
            arrived = moved.received.sum(axis=1)
            before_loss = moved.after - arrived + moved.allocated.sum(axis=1)
            lost = np.where(links[:, 0] >= 0, network.drop[np.arange(6), links[:, 0]], 0.0)
            local, _ = local_rewards(
                task.terms, network.counts, moved.after, before_loss, network.threshold, network.population, lost
            )
            for receiver, slot in zip(group, choice, strict=True):
                rewards.setdefault((receiver, slot), []).append(local[receiver])
    worth = worth_of(task, network)
    for (receiver, slot), seen in rewards.items():
        if slot >= 0:
            assert worth[receiver, slot] == pytest.approx(np.mean(seen), abs=1e-9)


def test_ten_links_of_a_training_system_are_right() -> None:
    config = config_of("best", **FAST)
    task = Task(Network.generate(config, 0), config, 0)
    system = gcn.training_systems(task)[1]
    assert system.counts.shape == (10, 6)
    right = gcn.right_links(task, system)
    worth = worth_of(task, system)[system.candidates >= 0]
    assert right.sum() == 10
    assert len(right) == 90
    assert worth[right].min() >= worth[~right].max()


def test_sorted_strengths_keep_nine_and_span_any_row() -> None:
    nine = np.random.default_rng(0).random((1, 9))
    np.testing.assert_array_equal(graphnet.sorted_strengths(nine, nine > -1)[0], np.sort(nine[0])[::-1])
    row = np.array([[5.0, 1.0, 9.0, 3.0], [0.5, 7.0, 7.0, 7.0], [4.0, 2.0, 8.0, 8.0], [1.0, 1.0, 1.0, 1.0]])
    heard = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    shown = graphnet.sorted_strengths(row, heard)
    np.testing.assert_allclose(shown[0], [5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1])
    np.testing.assert_allclose(shown[1], 0.5)
    np.testing.assert_allclose(shown[2], np.linspace(4, 2, 9))
    np.testing.assert_allclose(shown[3], 0.0)


def test_a_batch_scores_like_its_systems_one_by_one() -> None:
    config = config_of("best", **{"gcn.systems": 3})
    task = Task(Network.generate(config, 0), config, 0)
    systems = gcn.training_systems(task)
    gauge = graphnet.gauge_of(systems, power=True)
    net = graphnet.make_net(len(gauge.center), 0)
    lessons = [(graphnet.input_of(system, gauge), gcn.right_links(task, system)) for system in systems]
    batch, right = graphnet.joined(lessons)
    np.testing.assert_array_equal(right.numpy(), np.concatenate([one for _, one in lessons]))
    alone = torch.cat([graphnet.logits(net, graphnet.embed(net, scene), scene.links) for scene, _ in lessons])
    torch.testing.assert_close(graphnet.logits(net, graphnet.embed(net, batch), batch.links), alone)


def test_the_pair_is_ordered() -> None:
    config = config_of("best", **FAST)
    network = Network.generate(config, 0)
    gauge = graphnet.gauge_of([network], power=True)
    net, scene = graphnet.make_net(len(gauge.center), 0), graphnet.input_of(network, gauge)
    embedding = graphnet.embed(net, scene)
    assert not torch.allclose(
        graphnet.logits(net, embedding, scene.links), graphnet.logits(net, embedding, scene.links.flip(0))
    )


def test_it_learns_to_tell_good_links() -> None:
    """On systems that it never saw, its links are worth more than a uniform pick is on average."""
    config = config_of(
        "best",
        **{
            "network.partitions": 10,
            "network.devices": 10,
            "channel.kind": "harsh",
            "reward.reliability_weight": 1.0,  # so that the link's power, which it sees, matters
        },
    )
    task = Task(Network.generate(config, 0), config, 0)
    systems = gcn.training_systems(task)
    gauge = graphnet.gauge_of(systems, power=True)
    net = graphnet.make_net(len(gauge.center), 0)
    lessons = [(graphnet.input_of(system, gauge), gcn.right_links(task, system)) for system in systems]
    with graphnet.torch_on_one_core():
        losses = graphnet.train(net, lessons, task)
    assert losses[-1] < 0.3 < 0.5 < losses[0]  # 0.35: always the share of right links, 1 in 9
    ahead = []
    for seed in range(100, 115):
        network = Network.generate(config, seed)
        worth = worth_of(task, network)
        slots = graphnet.best_slots(net, graphnet.input_of(network, gauge), network.candidates, stream(seed, "ties"))
        ahead.append(worth[np.arange(10), slots[:, 0]].mean() - worth.mean())
    assert np.mean(ahead) > 2 * np.std(ahead) / np.sqrt(len(ahead))
    assert np.mean(ahead) > 0.02


def test_a_second_link_comes_from_a_second_stage() -> None:
    config = config_of("best", **FAST, **{"discovery.edges": 2, "discovery.edge_mode": "sequence"})
    network = Network.generate(config, 0)
    graph = discover(network, config, seed=1, method="gcn").graph
    assert graph.slots.shape == (9, 2)
    assert len(set(graph.edges)) == len(graph.edges)


def test_equal_scores_are_told_apart_by_chance() -> None:
    """A net that likes all links alike, as nets with dead units do, must not send everybody to device 0."""
    config = config_of("best", **FAST, **{"network.devices": 30})
    network = Network.generate(config, 0)
    gauge = graphnet.gauge_of([network], power=True)
    net, scene = graphnet.make_net(len(gauge.center), 0), graphnet.input_of(network, gauge)
    with torch.no_grad():
        net.verdict.weight.zero_()
    one, same, other = (graphnet.best_slots(net, scene, network.candidates, stream(s, "ties")) for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).mean() > 0.8
    assert len(np.unique(one)) > 10


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    config = config_of("best", **FAST)
    with pytest.raises(MissingExtraError, match=r"pip install 'd2dfl\[gcn\]'"):
        gcn.find(Task(Network.generate(config, 0), config, 0))
