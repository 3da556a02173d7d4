"""Message passing of the labelled paradigms: Algorithm 1, eqs. (avl_at_tx) to (final_diversity_vector).

Plain NumPy over whole networks; the compiled learners compute the same incrementally and are tested against this.
`slots[receiver, edge]` names the chosen candidate slots, -1 for no link.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.equations.gaussian import cluster_requests
from d2dfl.network import Network

Array = NDArray[np.float64]
SlotArray = NDArray[np.int32]
LEAST = 1e-9  # less than this of a datapoint is nothing: no link stands for it


class Exchange(NamedTuple):
    """What a set of links moves, in expectation."""

    allocated: Array  # [receiver, edge, partition] U: what the transmitter sends
    received: Array  # [receiver, edge, partition] what arrives
    after: Array  # [device, partition] D-hat


def available(network: Network, slots: SlotArray) -> NDArray[np.bool_]:
    """V[receiver, edge, partition] (eq. avl_at_tx): trusted, asked for, and more than the transmitter's threshold."""
    receivers = np.arange(network.devices)[:, None]
    surplus = network.counts > network.threshold
    transmitter = network.candidates[receivers, slots]
    chosen = (slots >= 0) & (transmitter >= 0)
    return np.asarray(network.trust[receivers, slots] & surplus[transmitter] & chosen[:, :, None])


def requested(network: Network, slots: SlotArray, available: NDArray[np.bool_], over_ask: bool) -> Array:
    """Q[receiver, edge, partition] (eq. req_at_dst): what is missing to the threshold, where it is available.

    With several links at once, the need for a partition is split over the links in proportion to what their
    transmitters can spare (R16).
    """
    receivers = np.arange(network.devices)[:, None]
    if network.centroids is not None:  # Algorithm 2: each link is asked for its own part
        return np.asarray(cluster_requests(network)[receivers, slots] * available)
    need = network.need[:, None, :]
    spare = network.surplus[network.candidates[receivers, slots]] * available
    whole = spare.sum(axis=1, keepdims=True)
    asked = need * np.divide(spare, whole, out=np.zeros_like(spare), where=whole > 0)
    if over_ask:
        # R1: the receiver over-asks, or no label that starts below its threshold could ever pass.
        asked /= (1.0 - network.drop[receivers, slots]).clip(min=1e-12)[:, :, None]
    return np.asarray(asked)


def allocated(network: Network, slots: SlotArray, requested: Array) -> Array:
    """U[receiver, edge, partition] (eq. tx_buffer): all that was asked, or shares of the surplus by relative demand."""
    receivers = np.arange(network.devices)[:, None]
    transmitter = np.where(slots >= 0, network.candidates[receivers, slots], 0)
    demand = np.zeros_like(network.counts)
    np.add.at(demand, transmitter, requested)
    surplus = network.surplus
    share = np.divide(surplus, demand, out=np.ones_like(demand), where=demand > surplus)
    return np.asarray(requested * share[transmitter])


def settle(network: Network, slots: SlotArray, allocation: Array) -> Exchange:
    """Expected losses and the counts after the exchange (eq. final_diversity_vector)."""
    receivers = np.arange(network.devices)[:, None]
    received = allocation * (1.0 - network.drop[receivers, slots])[:, :, None]
    given = np.zeros_like(network.counts)
    np.add.at(given, np.where(slots >= 0, network.candidates[receivers, slots], 0), allocation)
    after = np.maximum(network.counts + received.sum(axis=1) - given, 0.0)
    return Exchange(allocation, received, after)


def exchange(network: Network, slots: SlotArray, over_ask: bool) -> Exchange:
    """Algorithm 1 for every receiver at once: V, then Q, then U, then what arrives."""
    offer = available(network, slots)
    asked = requested(network, slots, offer, over_ask)
    return settle(network, slots, allocated(network, slots, asked))
