"""Many graphs of one network at once: what they would move, changed at random, and annealed for a measure."""

import numpy as np
from numpy.typing import NDArray

from d2dfl.network import Network
from objectives.measures import Array, Known, Measure

Slots = NDArray[np.int32]  # [graph, receiver, edge] candidate slot, -1 for no link

CHAINS, MOVES = 6, 800
WARM = 0.02  # temperature at the start, in deviations of the measure over the first graphs


def expected_counts(network: Network, slots: Slots) -> Array:
    """counts[graph, device, label] after the exchange, in expectation: Algorithm 1 with over-asking and held budgets."""
    graphs, devices, _edges = slots.shape
    receivers = np.arange(devices)[None, :, None]
    safe = np.maximum(slots, 0)
    transmitter = network.candidates[receivers, safe]
    chosen = (slots >= 0) & (transmitter >= 0)
    offered = network.trust[receivers, safe] & chosen[..., None]
    spare = network.surplus[transmitter] * offered
    whole = spare.sum(axis=2, keepdims=True)
    asked = network.need[None, :, None] * np.divide(spare, whole, out=np.zeros_like(spare), where=whole > 0)
    arrives = 1.0 - network.drop[receivers, safe]
    asked /= arrives.clip(min=1e-12)[..., None]
    sender = (np.arange(graphs)[:, None, None] * devices + np.where(chosen, transmitter, 0)).ravel()
    demand = _added(sender, asked, graphs, devices)
    share = np.divide(network.surplus, demand, out=np.ones_like(demand), where=demand > network.surplus)
    sent = asked * share.reshape(graphs * devices, -1)[sender].reshape(asked.shape)
    sent *= _room(network, sent.sum(axis=3), chosen & (network.cluster[transmitter] != network.cluster[receivers]))[
        ..., None
    ]
    came = (sent * arrives[..., None]).sum(axis=2)
    return np.maximum(network.counts + came - _added(sender, sent, graphs, devices), 0.0)


def _added(sender: NDArray[np.int64], amounts: Array, graphs: int, devices: int) -> Array:
    """[graph, device, label] what is asked of, or sent by, each device."""
    labels = amounts.shape[-1]
    place = (sender[:, None] * labels + np.arange(labels)).ravel()
    return np.bincount(place, amounts.ravel(), graphs * devices * labels).reshape(graphs, devices, labels)


def _room(network: Network, amount: Array, crossing: NDArray[np.bool_]) -> Array:
    """[graph, receiver, edge] the share of a link's amount for which its cluster has budget."""
    graphs, clusters = len(amount), len(network.budget)
    place = np.arange(graphs)[:, None] * clusters + network.cluster
    use = np.bincount(place.ravel(), (amount * crossing).sum(axis=2).ravel(), graphs * clusters)
    room = np.minimum(1.0, np.tile(network.budget, graphs) / np.maximum(use, 1e-9))
    return np.where(crossing, room[place][..., None], 1.0)


def useful(network: Network) -> NDArray[np.bool_]:
    """[receiver, slot] whether anything could move over a link."""
    spare = (network.surplus[network.candidates] > 0) & network.trust & (network.candidates >= 0)[..., None]
    return np.asarray((spare & (network.need > 0)[:, None]).any(axis=2))


def drawn(allowed: NDArray[np.bool_], shape: tuple[int, ...], rng: np.random.Generator, none: float = 0.0) -> Slots:
    """[..., receiver, edge] slots at random among those allowed, twice the same never; -1 where there are too few."""
    edges = shape[-1]
    order = np.where(allowed, rng.random((*shape[:-1], allowed.shape[1])), 2.0)
    found = np.argsort(order, axis=-1)[..., :edges]
    there = np.take_along_axis(order, found, axis=-1) < 2.0
    return np.where(there & (rng.random(shape) >= none), found, -1).astype(np.int32)


def changed(slots: Slots, allowed: NDArray[np.bool_], rate: float, rng: np.random.Generator) -> Slots:
    """The same graphs [graph, receiver, edge], each link replaced at random with this probability."""
    fresh = drawn(allowed, slots.shape, rng, none=0.1)
    return each_once(np.where(rng.random(slots.shape) < rate, fresh, slots))


def crossed(one: Slots, other: Slots, rng: np.random.Generator) -> Slots:
    """Each device's links from one of two graphs."""
    return np.where(rng.random((*one.shape[:-1], 1)) < 0.5, one, other)


def each_once(slots: Slots) -> Slots:
    """Links that a receiver has twice are left out."""
    found = slots.astype(np.int32)
    for edge in range(1, slots.shape[-1]):
        twice = (found[..., :edge] == found[..., edge, None]).any(axis=-1)
        found[..., edge] = np.where(twice, -1, found[..., edge])
    return found


def annealed(
    network: Network,
    known: Known,
    measure: Measure,
    sign: float,
    starts: Slots,
    seed: np.random.Generator,
    moves: int = MOVES,
) -> tuple[Slots, Slots]:
    """Graphs with a high measure, found by changing a link at a time in all chains; also those on a fifth of the way."""
    now, allowed = starts.copy(), useful(network)
    chains, devices, edges = now.shape
    value = sign * measure(expected_counts(network, now), known)
    best, best_value, early = now.copy(), value.copy(), now.copy()
    unit = max(float(value.std()), 1e-6) * WARM
    for move in range(moves):
        tried = now.copy()
        device, edge = seed.integers(devices, size=chains), seed.integers(edges, size=chains)
        fresh = drawn(allowed, (chains, devices, 1), seed, none=0.05)[np.arange(chains), device, 0]
        tried[np.arange(chains), device, edge] = fresh
        tried = each_once(tried)
        found = sign * measure(expected_counts(network, tried), known)
        takes = found - value > unit * (1 - move / moves) * np.log(seed.random(chains))
        now[takes], value[takes] = tried[takes], found[takes]
        higher = value > best_value
        best[higher], best_value[higher] = now[higher], value[higher]
        if move == moves // 5:
            early = best.copy()
    order = np.argsort(-best_value)
    return best[order], early[order]
