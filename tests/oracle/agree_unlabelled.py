"""Algorithm 2: the measure of a graph over data clusters, and the rewards of RL steps, package against `unlabelled.py`."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.discovery.equations.gaussian import cluster_requests, standard_points
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.equations.worth import clustered_worth, clusters_after
from d2dfl.discovery.evaluation import evaluate, graph_of, outside_requests
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.rounds import round_of
from d2dfl.discovery.game.tables import reweigh, rules_of, tables_of
from d2dfl.discovery.methods.qlearning import train
from d2dfl.network import Network
from d2dfl.rng import device_keys
from oracle.agree_labelled import draw_links, slots_of
from oracle.close import same
from oracle.unlabelled import Step, Unlabelled, divergences, share_of_variance, step

STEPS = 6
LEAST = 1e-9  # the package adds this to both divergences of a ratio, so that it may divide by them


def draw_case(draws: np.random.Generator) -> tuple[Unlabelled, NDArray[np.bool_], float]:
    """Random data clusters and readings; who hears whom; and the ridge as a share."""
    devices, clusters, d = int(draws.integers(2, 5)), int(draws.integers(1, 4)), int(draws.integers(1, 4))
    n = draws.integers(2, 60, (devices, clusters)).astype(float)
    kept = np.where(draws.random(n.shape) < 0.2, 1.0, draws.random(n.shape) * 0.9 + 0.05)  # some give nothing away
    mu = draws.normal(size=(devices, clusters, d)) * 2.0
    root = draws.normal(size=(devices, clusters, d, d)) * 0.5
    Sigma = root @ np.swapaxes(root, 2, 3) + 0.05 * np.eye(d)
    groups = int(draws.integers(1, devices + 1))
    share = float(draws.choice([0.0, 0.01, 0.1]))
    case = Unlabelled(
        n=n.tolist(),
        b=(kept * n).tolist(),
        mu=[list(row) for row in mu],
        Sigma=[list(row) for row in Sigma],
        Q=(n.sum(axis=1) * float(draws.choice([0.1, 0.5, 2.0]))).tolist(),
        T=(draws.random((devices, devices, clusters)) < 0.7).astype(int).tolist(),
        P=(draws.random((devices, devices)) * 0.6).tolist(),
        cluster=draws.permutation([*range(groups), *draws.integers(0, groups, devices - groups)]).tolist(),
        B=draws.integers(1, 60, groups).astype(float).tolist(),
        points=[[_points(mu[j, cluster], Sigma[j, cluster]) for cluster in range(clusters)] for j in range(devices)],
    )
    if draws.random() < 0.7:
        case = replace(
            case,
            agreement=str(draws.choice(["ratio", "literal", "mean", "median"])),
            agreement_weight=float(draws.random() * 2),
            budget_rule=str(draws.choice(["hinge", "ratio", "literal"])),
            alpha1=float(draws.random() * 2),
            alpha2=float(draws.random() * 2),
            alpha3=float(draws.random() * 2),
            gamma=float(draws.random()),
        )
    hears = (draws.random((devices, devices)) < 0.9) & ~np.eye(devices, dtype=bool)
    hears[np.arange(devices), (np.arange(devices) + 1) % devices] = True
    return replace(case, ridge=share_of_variance(case, share)), hears, share


def _points(mean: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """The package's points in place of a sample (R23). They must have the Gaussian's mean and covariance."""
    values, vectors = np.linalg.eigh(spread)
    points = mean + standard_points(len(mean)) @ (vectors * np.sqrt(values)).T
    same("mean of the points", points.mean(axis=0), mean)
    same("covariance of the points", (points - mean).T @ (points - mean) / len(points), spread, 1e-8)
    return np.asarray(points)


def network_of(case: Unlabelled, hears: NDArray[np.bool_]) -> Network:
    return Network.from_arrays(
        counts=case.n,
        threshold=case.b,
        trust=np.swapaxes(np.array(case.T), 0, 1),  # receiver first
        drop=np.where(hears, np.array(case.P), 1.0),
        cluster=case.cluster,
        budget=case.B,
        centroids=np.array(case.mu),
        covariances=np.array(case.Sigma),
        request=case.Q,
    )


def config_of(case: Unlabelled, share: float) -> Config:
    names: dict[str, object] = {
        "diversity_weight": case.alpha1,
        "reliability_weight": case.alpha2,
        "budget_weight": case.alpha3,
    }
    names |= {"global_weight": case.gamma, "agreement": case.agreement, "agreement_weight": case.agreement_weight}
    names |= {"budget_rule": case.budget_rule, "ridge": share}
    return preset("paper", "unsupervised").with_(**{f"reward.{name}": value for name, value in names.items()})


def loose(case: Unlabelled, outcome: Step) -> float:
    """How far a sum of ratios may be off, since the package adds LEAST to what it divides by; a ratio of sums hardly."""
    if case.agreement == "ratio":
        return 1e-7
    return 1e-7 + 3 * LEAST / min(divergences(case, outcome.after))


def check(seed: int) -> None:
    draws = np.random.default_rng([2, seed])
    case, hears, share = draw_case(draws)
    network, config = network_of(case, hears), config_of(case, share)
    _check_graph(case, draw_links(draws, hears), network, config)
    _check_steps(case, network, config, seed)


def _check_graph(case: Unlabelled, Y: list[int | None], network: Network, config: Config) -> None:
    true = step(replace(case, dead_links_cost=False), Y)
    slots = slots_of(network, Y)
    graph = graph_of(network, slots, over_ask=False)
    wish = cluster_requests(network)[np.arange(network.devices), slots[:, 0]]
    same("Q-tilde", np.where(slots >= 0, wish, 0.0), true.asked)
    same("D_{j,l -> i}", graph.allocated[:, 0], true.sent)
    counts, means, spreads = clusters_after(network, graph)
    same("datapoints after", counts, [one.n for one in true.after])
    same("means after", means, [one.mu for one in true.after])
    same("covariances after", spreads, [one.Sigma for one in true.after], 1e-8)
    same("diversity gain", clustered_worth(network, graph, config.reward).gain, true.gain, 1e-8)
    found = evaluate(network, graph, config.reward)
    same("system agreement", found.agreement, true.agreement, loose(case, true))
    same("d'", outside_requests(network, graph), true.outside)
    same("local reward of a graph", found.local_rewards, true.local, 1e-8)
    same("objective", found.objective, sum(true.overall) / len(true.overall), loose(case, true))


def _check_steps(case: Unlabelled, network: Network, config: Config, seed: int) -> None:
    """The same in the learner's own, compiled steps."""
    config = config.with_(**{"qlearning.steps": STEPS, "discovery.no_link": True})
    terms, keys = Terms.of(config.reward, clustered=True), device_keys(seed, "oracle", devices=network.devices)
    board, rules = board_of(network, terms, ridge=config.reward.ridge), rules_of(config.qlearning)
    tables, work = tables_of(board, config.qlearning, keys, True), round_of(board, terms)
    reweigh(board, rules, tables, 1.0)
    for number in range(STEPS):
        train(board, terms, rules, tables, work, keys, number, number + 1, 1.0)
        Y = [None if slot < 0 else int(network.candidates[i, slot]) for i, slot in enumerate(work.slot.tolist())]
        true = step(case, Y)
        same(f"r in step {number}", work.local, true.local, 1e-7)
        same(f"R in step {number}", work.reward, true.overall, loose(case, true))
