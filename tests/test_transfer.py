"""The actual exchange: every datapoint accounted for."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import random_slots
from d2dfl import Graph, Network, UserError, preset
from d2dfl.discovery.evaluation import graph_of
from d2dfl.network.network import default_budget
from d2dfl.rng import stream
from d2dfl.transfer import KEEPING, ExchangeResult, exchange, held_counts, whole_datapoints, within_budgets


def holdings_of(network: Network) -> tuple[list[np.ndarray], np.ndarray]:
    """Datapoints numbered device by device, partition by partition."""
    labels = np.concatenate([np.repeat(np.arange(network.partitions), row.astype(int)) for row in network.counts])
    bounds = np.concatenate([[0], network.counts.sum(axis=1).astype(int).cumsum()])
    return [np.arange(a, b) for a, b in itertools.pairwise(bounds)], labels


def example(
    seed: int, devices: int = 8, edges: int = 1, samples: int = 97, threshold: str = "iid"
) -> tuple[Network, Graph]:
    config = preset("best").with_(
        **{
            "network.devices": devices,
            "network.partitions": 5,
            "network.samples_per_device": samples,
            "network.threshold": threshold,
            "channel.kind": "harsh",
        }
    )
    network = Network.generate(config, seed)
    return network, graph_of(network, random_slots(network, edges, seed), over_ask=True)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    devices=st.integers(2, 9),
    edges=st.integers(1, 3),
    samples=st.integers(0, 150),
    threshold=st.sampled_from(["iid", "0.033", "0.1", "0"]),
    keep=st.sampled_from(KEEPING),
    lossy=st.booleans(),
    attempts=st.integers(1, 4),
)
def test_every_datapoint_is_accounted_for(
    seed: int, devices: int, edges: int, samples: int, threshold: str, keep: str, lossy: bool, attempts: int
) -> None:
    network, graph = example(seed, devices, edges, samples, threshold)
    holdings, labels = holdings_of(network)
    result = exchange(graph, holdings, labels, network.threshold, seed=seed, keep=keep, lossy=lossy, attempts=attempts)
    held = np.concatenate(result.holdings)
    everything = np.arange(len(labels))
    for points in result.holdings:
        assert len(np.unique(points)) == len(points)
    if keep == "copy":
        assert (np.unique(held) == everything).all()
    else:
        assert (np.sort(np.concatenate([held, result.lost])) == everything).all()
    if keep != "delete" or not lossy:
        assert len(result.lost) == 0
    assert result.dropped == 0 if not lossy else result.dropped <= result.moved
    counts = held_counts(result.holdings, labels, 5)
    floor = np.minimum(network.counts, np.floor(network.threshold))
    assert (counts >= floor).all()  # a sender never falls below its threshold
    for transfer in result.transfers:
        assert np.isin(transfer.sent, holdings[transfer.transmitter]).all()
        slot = np.nonzero(network.candidates[transfer.receiver] == transfer.transmitter)[0][0]
        assert network.trust[transfer.receiver, slot][labels[transfer.sent]].all()
        sent, lost = len(transfer.sent), len(transfer.sent) - len(transfer.arrived)
        assert sent + (attempts - 1) * lost <= transfer.transmissions <= attempts * sent, "who is lost was tried enough"
        if attempts == 1 or not lossy:
            assert transfer.transmissions == sent


def test_one_attempt_is_one_draw_a_datapoint() -> None:
    network, graph = example(2, edges=2)
    holdings, labels = holdings_of(network)
    result = exchange(graph, holdings, labels, network.threshold, seed=4)
    assert result.moved > 50
    for transfer in result.transfers:
        edge = int(np.nonzero(graph.transmitter[transfer.receiver] == transfer.transmitter)[0][0])
        draws = stream(4, "exchange-loss", transfer.transmitter, transfer.receiver, edge).random(len(transfer.sent))
        assert (transfer.arrived == transfer.sent[draws >= graph.drop[transfer.receiver, edge]]).all()


def test_whole_amounts_are_near_the_real_ones() -> None:
    network, graph = example(3, devices=9, edges=2)
    spare = np.maximum(np.floor(network.counts - network.threshold), 0).astype(np.int64)
    whole = whole_datapoints(graph, spare)
    assert np.abs(whole - graph.allocated).max() < 1 + 1e-9
    given = np.zeros_like(network.counts)
    receiver, edge = graph.links
    np.add.at(given, graph.transmitter[receiver, edge], whole[receiver, edge])
    assert (given <= spare).all()


def taken_from_outside(network: Network, result: ExchangeResult) -> np.ndarray:
    """[cluster] datapoints sent to its devices by devices of other clusters."""
    taken = np.zeros(len(network.budget))
    for one in result.transfers:
        if network.cluster[one.transmitter] != network.cluster[one.receiver]:
            taken[network.cluster[one.receiver]] += len(one.sent)
    return taken


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    devices=st.integers(2, 9),
    edges=st.integers(1, 3),
    share=st.floats(0, 0.6),
    keep=st.sampled_from(KEEPING),
)
def test_no_cluster_takes_more_than_its_budget(seed: int, devices: int, edges: int, share: float, keep: str) -> None:
    """Eq. (budget), R9, in whole datapoints; clusters that keep to it by themselves are not touched."""
    network, graph = example(seed, devices, edges)
    network = replace(network, budget=default_budget(network.counts, network.cluster, share))
    holdings, labels = holdings_of(network)
    soft, hard = (
        exchange(graph, holdings, labels, network.threshold, seed=seed, keep=keep, within=limits)
        for limits in (None, network)
    )
    free, held = taken_from_outside(network, soft), taken_from_outside(network, hard)
    assert (held == np.minimum(free, np.floor(network.budget + 1e-9))).all()
    for one, other in zip(soft.transfers, hard.transfers, strict=True):
        assert np.bincount(labels[other.sent], minlength=5).sum() == len(other.sent) <= len(one.sent)
        assert (np.bincount(labels[other.sent], minlength=5) <= np.bincount(labels[one.sent], minlength=5)).all()
        if free[network.cluster[one.receiver]] <= network.budget[network.cluster[one.receiver]]:
            assert len(one.sent) == len(other.sent)


def test_what_is_over_the_budget_is_left_out_of_all_links_alike() -> None:
    """By hand: 30 and 10 wanted from outside, 20 allowed; 8 from inside stay."""
    allocated = np.zeros((4, 3, 1))
    allocated[0, :, 0] = [30, 10, 8]
    transmitter = np.full((4, 3), -1, dtype=np.int32)
    transmitter[0] = [1, 2, 3]
    graph = Graph(np.where(transmitter >= 0, 0, -1).astype(np.int32), transmitter, np.zeros((4, 3)), allocated)
    network = replace(
        example(0, devices=4)[0],
        cluster=np.array([0, 1, 1, 0], dtype=np.int32),
        budget=np.array([20.9, 0.0]),
    )
    held = within_budgets(graph, allocated.astype(np.int64), network)
    assert held[0, :, 0].tolist() == [15, 5, 8]


def test_losses_follow_the_link() -> None:
    drop = np.array([[0.0, 0.3], [0.0, 0.0]])
    network = Network.from_arrays(
        counts=[[2000, 0], [0, 5000]], threshold=np.full((2, 2), 1000.0), trust=np.ones((2, 2, 2)), drop=drop
    )
    graph = graph_of(network, np.array([[0], [0]], dtype=np.int32), over_ask=False)
    holdings, labels = holdings_of(network)
    result = exchange(graph, holdings, labels, network.threshold, seed=0)
    assert result.moved == 2000
    assert abs(len(result.lost) / 1000 - 0.3) < 0.05
    assert held_counts(result.holdings, labels, 2)[1].tolist() == [1000, 4000]


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_losses_fall_with_the_attempts(attempts: int) -> None:
    loss, number = 0.6, 20_000
    network = Network.from_arrays(
        counts=[[0], [2 * number]], threshold=[[number], [number]], trust=np.ones((2, 2, 1)), drop=[[0, loss], [1, 0]]
    )
    graph = graph_of(network, np.array([[0], [-1]], dtype=np.int32), over_ask=False)
    holdings, labels = holdings_of(network)
    result = exchange(graph, holdings, labels, network.threshold, seed=1, attempts=attempts)
    assert result.moved == number
    assert len(result.lost) / number == pytest.approx(loss**attempts, abs=0.015)
    # 1 + 0.6 + 0.36 + ...: a second transmission where the first was lost, and so on
    expected = sum(loss**number for number in range(attempts))
    assert result.transfers[0].transmissions / number == pytest.approx(expected, abs=0.02)


def test_same_seed_same_points_and_uniform_within_the_partition() -> None:
    network, graph = example(1)
    holdings, labels = holdings_of(network)
    one, two, other = (exchange(graph, holdings, labels, network.threshold, seed=s) for s in (5, 5, 6))
    assert all((a == b).all() for a, b in zip(one.holdings, two.holdings, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(one.holdings, other.holdings, strict=True))


def test_bad_input() -> None:
    network, graph = example(1)
    holdings, labels = holdings_of(network)
    with pytest.raises(UserError, match="exchange.keep"):
        exchange(graph, holdings, labels, network.threshold, seed=0, keep="burn")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(UserError, match="exchange.attempts cannot be 0"):
        exchange(graph, holdings, labels, network.threshold, seed=0, attempts=0)
    with pytest.raises(UserError, match="must be the same"):
        exchange(graph, holdings[1:], labels, network.threshold, seed=0)
    with pytest.raises(UserError, match="partitions are 0 to 4"):
        exchange(graph, holdings, labels + 3, network.threshold, seed=0)


@pytest.mark.parametrize("strange", [-1, 5])
def test_the_partition_that_is_not_there_is_named(strange: int) -> None:
    network, graph = example(0)
    holdings, labels = holdings_of(network)
    labels[holdings[0][1]] = strange
    with pytest.raises(UserError, match=f"device 0 holds a datapoint of partition {strange}: partitions are 0 to 4"):
        exchange(graph, holdings, labels, network.threshold, seed=0)
