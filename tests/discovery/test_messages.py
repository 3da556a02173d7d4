"""Algorithm 1."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import random_slots
from d2dfl import Network, preset
from d2dfl.discovery.equations.messages import allocated, available, exchange, requested
from d2dfl.discovery.evaluation import graph_of


def appendix_a() -> Network:
    """Devices i, j, k of the paper's Appendix A; only j's trust is told there."""
    trust = np.zeros((3, 3, 5))
    trust[0, 1] = [1, 0, 1, 1, 0]
    trust[2, 1] = [1, 1, 1, 0, 0]
    return Network.from_arrays(
        counts=[[20, 0, 0, 0, 20], [20, 20, 20, 20, 20], [0, 20, 0, 20, 0]],
        threshold=np.full((3, 5), 10.0),
        trust=trust,
        drop=np.zeros((3, 3)),
    )


def test_appendix_a_to_the_digit() -> None:
    network = appendix_a()
    slots = np.array([[0], [-1], [1]], dtype=np.int32)  # i and k both ask j
    assert network.candidates.tolist() == [[1, 2], [0, 2], [0, 1]]
    offer = available(network, slots)
    assert offer[0, 0].astype(int).tolist() == [1, 0, 1, 1, 0]
    assert offer[2, 0].astype(int).tolist() == [1, 1, 1, 0, 0]
    asked = requested(network, slots, offer, over_ask=False)
    assert asked[0, 0].tolist() == [0, 0, 10, 10, 0]
    assert asked[2, 0].tolist() == [10, 0, 10, 0, 0]
    sent = allocated(network, slots, asked)
    assert sent[0, 0].tolist() == [0, 0, 5, 10, 0]
    assert sent[2, 0].tolist() == [10, 0, 5, 0, 0]
    after = exchange(network, slots, over_ask=False).after
    assert after[0].tolist() == [20, 0, 5, 10, 20]
    assert after[1].tolist() == [10, 20, 10, 10, 20]
    assert after[2].tolist() == [10, 20, 5, 20, 0]


def test_over_asking_meets_the_threshold_in_expectation() -> None:
    network = Network.from_arrays(
        counts=[[100, 0], [0, 100]],
        threshold=[[10, 10], [10, 10]],
        trust=np.ones((2, 2, 2)),
        drop=[[0, 0.2], [0.5, 0]],
    )
    slots = np.zeros((2, 1), dtype=np.int32)
    literal = exchange(network, slots, over_ask=False)
    assert np.allclose(literal.after, [[90, 8], [5, 90]])  # R1: never reaches 10
    asking = exchange(network, slots, over_ask=True)
    assert np.allclose(asking.allocated[:, 0], [[0, 12.5], [20, 0]])
    assert np.allclose(asking.after, [[80, 10], [10, 87.5]])


def test_several_links_split_the_need_by_what_is_spare() -> None:
    network = Network.from_arrays(
        counts=[[0, 40], [40, 0], [20, 0]],
        threshold=np.full((3, 2), 10.0),
        trust=np.ones((3, 3, 2)),
        drop=np.zeros((3, 3)),
    )
    slots = np.array([[0, 1], [-1, -1], [-1, -1]], dtype=np.int32)
    sent = exchange(network, slots, over_ask=False).allocated
    assert sent[0, :, 0].tolist() == [7.5, 2.5]  # 30 and 10 to spare


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    devices=st.integers(2, 12),
    partitions=st.integers(1, 6),
    edges=st.integers(1, 3),
    density=st.sampled_from([0.0, 0.3, 1.0]),
    over_ask=st.booleans(),
)
def test_properties(seed: int, devices: int, partitions: int, edges: int, density: float, over_ask: bool) -> None:
    config = preset("best").with_(
        **{
            "network.devices": devices,
            "network.partitions": partitions,
            "network.labels_per_device": min(2, partitions),
            "network.trust": f"random:{density}",
            "channel.kind": "harsh",
        }
    )
    network = Network.generate(config, seed)
    slots = random_slots(network, edges, seed)
    result = exchange(network, slots, over_ask)
    receivers = np.arange(devices)[:, None]
    # No trust, no surplus or no link: nothing is sent.
    assert (result.allocated[~network.trust[receivers, slots]] == 0).all()
    assert (result.allocated[slots < 0] == 0).all()
    # A sender never falls below its threshold, unless it was below before.
    graph = graph_of(network, slots, over_ask)
    assert (network.counts - graph.given() >= np.minimum(network.counts, network.threshold) - 1e-9).all()
    # Nobody receives more than it lacks.
    lack = np.maximum(network.threshold - network.counts, 0)
    assert (result.received.sum(axis=1) <= lack + 1e-6).all()
    # Datapoints are conserved: held after + lost = held before.
    lost = result.allocated.sum() - result.received.sum()
    assert np.isclose(result.after.sum() + lost, network.counts.sum())
    assert np.allclose(graph.counts_after(network.counts), result.after)


def test_relabelling_devices_permutes_the_exchange() -> None:
    config = preset("best").with_(**{"network.devices": 8})
    network = Network.generate(config, 3)
    slots = random_slots(network, 1, 3)
    order = np.random.default_rng(1).permutation(8)
    place = np.argsort(order)
    moved = Network(
        candidates=place[network.candidates[order]].astype(np.int32),
        drop=network.drop[order],
        trust=network.trust[order],
        counts=network.counts[order],
        threshold=network.threshold[order],
        cluster=network.cluster[order],
        budget=network.budget,
    )
    one = exchange(network, slots, True).after
    two = exchange(moved, slots[order], True).after
    assert np.allclose(one[order], two)
