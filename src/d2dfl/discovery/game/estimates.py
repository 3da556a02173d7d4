"""What a receiver of data clusters can estimate without asking: its gain from each transmitter that nobody else asks."""

from typing import Any

import numpy as np

from d2dfl.compiled import part
from d2dfl.discovery.equations.agreement import lone_agreement, shape_of, take_in
from d2dfl.discovery.equations.gaussian import RATIO as RATIO_OF_MEANS
from d2dfl.discovery.equations.reward import local_reward
from d2dfl.discovery.game.rewards import clustered_after
from d2dfl.discovery.game.state import HOPELESS


@part
def clustered_gains(board: Any, terms: Any, play: Any, gauss: Any, known: Any, receiver: Any, gains: Any) -> None:
    """What joining each transmitter would be worth to the network if nobody else asked it; HOPELESS if nothing would move.

    Needs no message: centroids and covariances were told at the introduction, and sums over all devices are kept up to date
    by broadcasts.
    """
    shape = play.shape
    clusters, components = shape.mean.shape[1:]
    standing, moments = np.empty(gauss.own.shape[1:]), np.empty(gauss.own.shape[1:])
    cost, _ = clustered_after(board, play, gauss, receiver, standing)
    amounts = np.empty(clusters)
    mean, spread = np.empty((clusters, components)), np.empty((clusters, components, components))
    inverse, log = np.empty((clusters, components, components)), np.empty(clusters)
    for slot in range(board.candidates.shape[1]):
        gains[slot] = HOPELESS
        if not known[receiver, slot]:
            continue
        transmitter = board.candidates[receiver, slot]
        arrives = 1.0 - board.drop[receiver, slot]
        whole = 0.0
        for cluster in range(clusters):
            amount = min(gauss.request[receiver, slot, cluster], board.surplus[transmitter, cluster])
            amounts[cluster] = amount * arrives
            whole += amount
        if whole <= 0.0:
            continue
        moments[:] = standing
        take_in(gauss, receiver, slot, amounts, moments)
        gain = shape_of(gauss, receiver, moments, mean, spread)
        local = local_reward(terms, gain, cost + board.drop[receiver, slot])
        gains[slot] = terms.own * (local - play.local[receiver])
        if terms.agreement != 0.0 and terms.agreement_kind == RATIO_OF_MEANS:
            agreement = lone_agreement(gauss, shape, receiver, mean, spread, inverse, log)
            gains[slot] += len(play.local) * terms.agreement * (agreement - shape.agreement[0])
