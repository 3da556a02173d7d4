"""Algorithm 1: messages, settled counts and the measure of a graph, package against `labelled.py`."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.discovery.equations.messages import allocated, available, requested, settle
from d2dfl.discovery.evaluation import evaluate, graph_of, outside_requests
from d2dfl.network import Network
from oracle.close import same
from oracle.labelled import Labelled, Step, step

RULES = ("over-ask", "tolerance", "before-loss", "strict")
FIELDS = ("kind", "metric", "threshold_rule", "budget_rule", "gate", "tolerance")


def exactly(values: NDArray[np.float64]) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in values.tolist()]


def draw_case(draws: np.random.Generator) -> tuple[Labelled, NDArray[np.bool_]]:
    """A random network and set of readings; and who hears whom. A quarter has the preset `paper`."""
    devices, labels = int(draws.integers(2, 8)), int(draws.integers(1, 7))
    D = draws.integers(0, 50, (devices, labels)) * (draws.random((devices, labels)) < 0.6)
    D[np.arange(devices), draws.integers(0, labels, devices)] += 1
    style = draws.integers(0, 3)
    if style == 0:  # the same share of a device's data for all labels, as R29
        share = D.sum(axis=1, keepdims=True) * draws.choice([0.05, 0.1, 1 / labels])
        # In 64ths: a threshold of 3.2 is none that binary numbers know, and what is just enough would hang on their last digit.
        b = np.repeat(np.ceil(64 * share) / 64, labels, axis=1)
    elif style == 1:
        b = draws.integers(1, 30, (devices, labels)).astype(float)
    else:
        b = draws.random((devices, labels)) * 20 + 0.01
    P = np.where(draws.random((devices, devices)) < 0.1, 0.0, draws.random((devices, devices)) * 0.6)
    hears = (draws.random((devices, devices)) < 0.8) & ~np.eye(devices, dtype=bool)
    groups = int(draws.integers(1, devices + 1))
    cluster = draws.permutation([*range(groups), *draws.integers(0, groups, devices - groups)]).tolist()
    case = Labelled(
        D=exactly(D.astype(float)),
        b=exactly(b),
        T=draws.integers(0, 2, (devices, devices, labels)).tolist(),
        P=exactly(P),
        cluster=cluster,
        B=[Fraction(int(draws.integers(1, 40))) for _ in range(groups)],
        gate=min(5, labels),
    )
    if draws.random() < 0.75:
        case = replace(
            case,
            kind=str(draws.choice(["gain", "change"])),
            metric=str(draws.choice(["total-variation", "wasserstein", "jensen-shannon"])),
            threshold_rule=str(draws.choice(RULES)),
            budget_rule=str(draws.choice(["hinge", "ratio", "literal"])),
            tolerance=Fraction(float(draws.choice([0.0, 0.2, 0.5]))),
            gate=int(draws.integers(0, labels + 1)),
            alpha1=float(draws.random() * 2),
            alpha2=float(draws.random() * 2),
            alpha3=float(draws.random() * 2),
            gamma=float(draws.random()),
        )
    return case, hears


def draw_links(draws: np.random.Generator, hears: NDArray[np.bool_]) -> list[int | None]:
    """One transmitter for each receiver, of those that it hears; or none."""
    heard = [np.nonzero(row)[0] for row in hears]
    return [int(draws.choice(row)) if len(row) and draws.random() < 0.85 else None for row in heard]


def network_of(case: Labelled, hears: NDArray[np.bool_]) -> Network:
    return Network.from_arrays(
        counts=np.array(case.D, dtype=float),
        threshold=np.array(case.b, dtype=float),
        trust=np.swapaxes(np.array(case.T), 0, 1),  # receiver first
        drop=np.where(hears, np.array(case.P, dtype=float), 1.0),
        cluster=case.cluster,
        budget=np.array(case.B, dtype=float),
    )


def config_of(case: Labelled) -> Config:
    fields = {f"reward.{name}": getattr(case, name) for name in FIELDS}
    fields |= {"reward.tolerance": float(case.tolerance), "reward.diversity_weight": case.alpha1}
    fields |= {"reward.reliability_weight": case.alpha2, "reward.budget_weight": case.alpha3}
    return preset("paper").with_(**fields, **{"reward.global_weight": case.gamma})


def slots_of(network: Network, Y: list[int | None]) -> NDArray[np.int32]:
    """The package names a candidate's place in the receiver's row."""
    places = [-1 if j is None else network.candidates[i].tolist().index(j) for i, j in enumerate(Y)]
    return np.array(places, dtype=np.int32)[:, None]


def check(seed: int) -> None:
    draws = np.random.default_rng([1, seed])
    case, hears = draw_case(draws)
    Y = draw_links(draws, hears)
    network, config = network_of(case, hears), config_of(case)
    slots = slots_of(network, Y)
    true = step(replace(case, dead_links_cost=False), Y)
    _check_messages(true, network, slots, case.threshold_rule == "over-ask")

    graph = graph_of(network, slots, case.threshold_rule == "over-ask")
    found = evaluate(network, graph, config.reward)
    dead = [sum(row) == 0 for row in true.U]
    same("links", [j < 0 for j in graph.transmitter[:, 0].tolist()], dead)
    same("D-hat of a graph", found.counts_after, true.after)
    same("labels that meet their threshold", found.labels_satisfied, true.met)
    same("d'", outside_requests(network, graph), true.outside)
    same("local reward", found.local_rewards, true.local)
    same("objective", found.objective, sum(true.overall) / len(true.overall))
    same("objective without links", found.no_exchange, _mean(step(case, [None] * network.devices)))


def _check_messages(true: Step, network: Network, slots: NDArray[np.int32], over_ask: bool) -> None:
    offer = available(network, slots)
    asked = requested(network, slots, offer, over_ask)
    given = allocated(network, slots, asked)
    settled = settle(network, slots, given)
    same("V", offer[:, 0], true.V)
    same("Q", asked[:, 0], true.Q)
    same("U", given[:, 0], true.U)
    same("what arrives", settled.received[:, 0], true.arrived)
    same("D-hat", settled.after, true.after)


def _mean(outcome: Step) -> float:
    return sum(outcome.overall) / len(outcome.overall)
