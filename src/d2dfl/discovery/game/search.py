"""Compiled local search over whole graphs: annealing, then best responses until no single link can improve.

Used by the reference optimum, which sees everything; no device could run this on its own.
"""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.equations.reward import total_reward
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rewards import agreement_in
from d2dfl.discovery.game.state import NO_LINK, set_link, taken


@leaf
def random_slot(board: Any, receiver: Any, draw: Any) -> Any:
    """A random candidate slot of the receiver, or NO_LINK."""
    slots = board.candidates.shape[1]
    pick = int(draw * (slots + 1))
    return pick if pick < slots and board.candidates[receiver, pick] >= 0 else NO_LINK


@kernel(nogil=True)
def usual_change(board: Any, terms: Any, play: Any, key: Any, rounds: Any) -> Any:
    """Mean size of the changes that random links make to N times the objective, as one follows the other."""
    devices, edges = play.slots.shape
    whole, made = 0.0, 0
    for draw in range(rounds * devices * edges):
        receiver, edge = draw % devices, draw // devices % edges
        slot = random_slot(board, receiver, uniform(key, draw))
        if slot != play.slots[receiver, edge] and (slot < 0 or not taken(play.slots, receiver, edge, slot)):
            change, _, _ = set_link(board, terms, play, receiver, edge, slot)
            whole += abs(change)
            made += 1
    return whole / max(made, 1)


@kernel(nogil=True)
def anneal(board: Any, terms: Any, play: Any, key: Any, sweeps: Any, hot: Any, cold: Any, free: Any) -> None:
    """Metropolis sweeps over all links, the temperature falling geometrically from hot to cold."""
    devices, edges = play.slots.shape
    draw = 0
    for sweep in range(sweeps):
        temperature = hot * (cold / hot) ** (sweep / max(sweeps - 1, 1))
        for _ in range(devices * edges):
            receiver = int(uniform(key, draw) * devices)
            edge = int(uniform(key, draw + 1) * edges)
            slot = random_slot(board, receiver, uniform(key, draw + 2))
            chance = uniform(key, draw + 3)
            draw += 4
            old = np.int64(play.slots[receiver, edge])
            if (
                slot == old
                or (slot >= 0 and taken(play.slots, receiver, edge, slot))
                or (slot < 0 and not free[receiver])
            ):
                continue
            change, _, _ = set_link(board, terms, play, receiver, edge, slot)
            forced = old < 0 and not free[receiver]
            if change < 0.0 and not forced and chance >= np.exp(change / temperature):
                set_link(board, terms, play, receiver, edge, old)


@part
def best_response(board: Any, terms: Any, play: Any, receiver: Any, edge: Any, free: Any) -> Any:
    """Give one link its best slot, the others standing. Returns the improvement."""
    old: Any = np.int64(play.slots[receiver, edge])
    best, best_change, change = old, 1e-10, 0.0
    if old < 0 and not free[receiver]:
        best_change = -np.inf  # a device that must choose takes even the least bad
    for slot in range(-1 if free[receiver] else 0, board.candidates.shape[1]):
        if slot >= 0 and (board.candidates[receiver, slot] < 0 or taken(play.slots, receiver, edge, slot)):
            continue
        step, _, _ = set_link(board, terms, play, receiver, edge, slot)
        change += step
        if change > best_change:
            best, best_change = slot, change
    set_link(board, terms, play, receiver, edge, best)
    return best_change if best != old else 0.0


@kernel(nogil=True)
def descend(board: Any, terms: Any, play: Any, free: Any) -> Any:
    """Best responses in turn until none changes anything. Returns N times the objective."""
    devices, edges = play.slots.shape
    changed = True
    while changed:
        changed = False
        for receiver in range(devices):
            for edge in range(edges):
                old = play.slots[receiver, edge]
                best_response(board, terms, play, receiver, edge, free)
                # A link that had to be taken counts, whatever it cost: others may answer to it.
                changed = changed or play.slots[receiver, edge] != old
    agreement = agreement_in(play.shape)
    return total_reward(terms, play.local, agreement, board.members, board.budget, play.used)
