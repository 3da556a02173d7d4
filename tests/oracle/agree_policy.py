"""Both Q-tables: the package's learner is played step by step, rewards from `labelled.py`, tables from `policy.py`."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rounds import round_of
from d2dfl.discovery.game.tables import LARGEST, reweigh, rules_of, tables_of
from d2dfl.discovery.methods.dynamic import _learn
from d2dfl.discovery.methods.qlearning import read_off, train
from d2dfl.network import Network
from d2dfl.rng import device_keys
from oracle.agree_labelled import config_of, draw_case, network_of
from oracle.close import same
from oracle.labelled import step
from oracle.policy import Learner

STATE = 0  # Appendix C: S = 1
OPTIMISTIC = 1.0  # R13: what an untried action is worth; the text gives no number
NEAR = 1e-9  # a draw this near to the border between two actions may fall to either


def draw_settings(draws: np.random.Generator, config: Config, steps: int) -> Config:
    """R2, R3, R4, R12, R13 and R14 at random."""
    # Rewards of hundreds (R9 literal) over a small temperature have exponents that the package cuts: not compared here.
    cold = config.reward.budget_rule != "literal"
    temperature = float(draws.choice([0.02, 0.1, 1.0, 1e5] if cold else [1.0, 1e5]))
    changes = {
        "qlearning.steps": steps,
        "qlearning.buffer": int(draws.choice([1, 3, 8, 256])),
        "qlearning.reduction": float(draws.choice([0.0, 0.5, 0.9])),
        "qlearning.update": str(draws.choice(["per-action", "per-action", "literal"])),
        "qlearning.reduction_rule": str(draws.choice(["subtract", "multiply"])),
        "qlearning.untried": str(draws.choice(["once", "zero", "optimistic"])),
        "qlearning.temperature": temperature,
        "qlearning.temperature_end": temperature,
        "discovery.no_link": bool(draws.integers(0, 2)),
    }
    return config.with_(**changes)


def check(seed: int) -> None:
    draws = np.random.default_rng([3, seed])
    case, hears = draw_case(draws)
    # Everybody hears somebody: a device without any choice learns nothing, and the text has none.
    hears[np.arange(len(hears)), (np.arange(len(hears)) + 1) % len(hears)] = True
    if draws.random() < 0.3:  # nothing may be sent: rewards stay the same, and none of them is below their mean
        case = replace(case, T=(0 * np.array(case.T)).tolist())
    network = network_of(case, hears)
    steps = int(draws.integers(5, 30))
    config = draw_settings(draws, config_of(case), steps)
    settings, temperature = config.qlearning, config.qlearning.temperature
    no_link, slots = config.discovery.no_link, network.slots
    learners = [
        Learner(slots + no_link, settings.buffer, settings.reduction, settings.update, settings.reduction_rule)
        for _ in range(network.devices)
    ]
    terms, keys = Terms.of(config.reward), device_keys(seed, "oracle", devices=network.devices)
    board, rules = board_of(network, terms), rules_of(settings)
    tables, work = tables_of(board, settings, keys, no_link), round_of(board, terms)
    reweigh(board, rules, tables, temperature)
    for number in range(steps):
        train(board, terms, rules, tables, work, keys, number, number + 1, temperature)
        actions = [int(slot) if slot >= 0 else slots for slot in work.slot]
        if _beyond(learners, temperature):
            return
        for i, learner in enumerate(learners):
            _check_action(config, network, learner, i, actions[i], float(uniform(keys[i], number)))
        Y = [None if action == slots else int(network.candidates[i, action]) for i, action in enumerate(actions)]
        outcome = step(case, Y)
        same(f"r in step {number}", work.local, outcome.local)
        same(f"R in step {number}", work.reward, outcome.overall)
        for learner, action, reward in zip(learners, actions, work.reward.tolist(), strict=True):
            learner.learn(STATE, action, reward)
        _check_tables(tables, learners, number)
    if settings.final == "argmax":
        _check_graph(learners, read_off(board, tables, settings, keys), slots)


def _beyond(learners: list[Learner], temperature: float) -> bool:
    """Whether somebody's mean reward over the temperature is an exponent that the package cuts: its policy is then another."""
    means = (learner.worth(*pair) or 0.0 for learner in learners for pair in learner.psi_c)
    return any(abs(mean) > LARGEST * temperature for mean in means)


def _check_action(config: Config, network: Network, learner: Learner, i: int, action: int, draw: float) -> None:
    """R13 and eq. prob_edge: an action by its probability, or one never tried before where there are some."""
    real = [*np.nonzero(network.candidates[i] >= 0)[0].tolist(), *range(network.slots, learner.actions)]
    assert action in real, f"device {i} chose {action}, which does not exist"
    settings = config.qlearning
    untried = [one for one in learner.untried(STATE) if one in real]
    if settings.untried == "once" and untried:
        assert action in untried, f"device {i} chose {action} again before it had tried all of {untried}"
        return
    unknown = OPTIMISTIC if settings.untried == "optimistic" else 0.0
    chances = learner.probabilities(STATE, settings.temperature, unknown, real)
    below = sum(chances[:action])
    assert below - NEAR <= draw <= below + chances[action] + NEAR, (
        f"device {i} chose {action} by the draw {draw:.6f}, the oracle from {below:.6f} to {below + chances[action]:.6f}"
    )


def _check_tables(tables: Any, learners: list[Learner], number: int) -> None:
    """Both tables; what was never tried is 0 visits, and its psi^R means nothing."""
    pairs = [[(STATE, action) for action in learner.all] for learner in learners]
    visits = [[learner.psi_c.get(pair, 0) for pair in row] for learner, row in zip(learners, pairs, strict=True)]
    totals = [[learner.psi_r.get(pair, 0.0) for pair in row] for learner, row in zip(learners, pairs, strict=True)]
    same(f"psi^C[device, action] in step {number}", tables.visits, visits)
    same(f"psi^R[device, action] in step {number}", np.where(tables.visits > 0, tables.total, 0.0), totals)


def _check_graph(learners: list[Learner], chosen: NDArray[np.int32], slots: int) -> None:
    """R3: the final graph is the argmax of psi^R / psi^C among what was tried."""
    for i, learner in enumerate(learners):
        action = int(chosen[i]) if chosen[i] >= 0 else slots
        worth = {a: learner.psi_r[q, a] / learner.psi_c[q, a] for q, a in learner.psi_c}
        assert worth[action] >= max(worth.values()) - NEAR, f"device {i} ends with {action}, which is not its best"


def check_states(seed: int) -> None:
    """Several states (Section VI-N): the table of a changing channel, up to H rewards a device.

    Beyond H the package forgets at the rate of a ring and keeps none, which is not R2 to the letter.
    """
    draws = np.random.default_rng([8, seed])
    states, actions, steps = int(draws.integers(1, 5)), int(draws.integers(1, 5)), int(draws.integers(1, 60))
    settings = draw_settings(draws, Config(), steps).with_(**{"qlearning.buffer": steps}).qlearning
    total, count = np.zeros((1, states, actions)), np.zeros((1, states, actions), dtype=np.int32)
    recent, rules = np.zeros((1, 2)), rules_of(settings)
    learner = Learner(actions, steps, settings.reduction, settings.update, settings.reduction_rule)
    for _ in range(steps):
        state, action = int(draws.integers(states)), int(draws.integers(actions))
        reward = float(draws.choice([-0.3, 0.1, draws.normal()]))
        _learn(rules, total, count, recent, 0, state, action, reward)
        learner.learn(state, action, reward)
    same("psi^R", total[0], [[learner.psi_r.get((q, a), 0.0) for a in range(actions)] for q in range(states)])
    same("psi^C", count[0], [[learner.psi_c.get((q, a), 0) for a in range(actions)] for q in range(states)])
