"""The study of measures (benchmarks/objectives): its sums against the package's, and all of it once, as small as it gets."""

import json
from pathlib import Path

import numpy as np
import pytest

from d2dfl.config import Config
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.discovery.evaluation import graph_of
from d2dfl.network import Network
from objectives.ceiling import Search
from objectives.cells import Scale, Task, run_cell
from objectives.families import OTHERS, TODAY, values_of
from objectives.measures import Known, divergence, pairs_anywhere, rehearsed, root, shares, total_variation, wasserstein
from objectives.places import Place
from objectives.report import measure_all, spearman
from objectives.wiring import annealed, changed, drawn, each_once, expected_counts, useful


def network_with(**changes: object) -> Network:
    return Network.generate(Config().with_(network__devices=9, network__samples_per_device=200, **changes), 3)


def known_for(network: Network, seed: int = 0) -> Known:
    rng = np.random.default_rng(seed)
    labels = network.partitions
    return Known(network.population, rng.normal(size=(labels, 4)), np.repeat(np.eye(4)[None], labels, axis=0))


@pytest.mark.parametrize("edges", [1, 3])
def test_many_graphs_move_what_each_of_them_would(edges: int) -> None:
    network = network_with(channel__budget_share=100.0)
    slots = drawn(useful(network), (6, network.devices, edges), np.random.default_rng(1), none=0.2)
    found = expected_counts(network, slots)
    for graph, mine in zip(slots, found, strict=True):
        np.testing.assert_allclose(
            mine, graph_of(network, graph, over_ask=True).counts_after(network.counts), atol=1e-9
        )


def test_a_cluster_without_budget_gets_nothing_from_outside() -> None:
    network = network_with(channel__budget_share=0.0, channel__reliability=0.0)
    slots = drawn(useful(network), (2, network.devices, 2), np.random.default_rng(1))
    np.testing.assert_allclose(expected_counts(network, slots), np.repeat(network.counts[None], 2, axis=0))


def test_changes_keep_links_apart_and_useful() -> None:
    network, rng = network_with(), np.random.default_rng(2)
    allowed = useful(network)
    slots = changed(drawn(allowed, (20, network.devices, 3), rng), allowed, 0.5, rng)
    for receiver in range(network.devices):
        for links in slots[:, receiver]:
            used = links[links >= 0]
            assert len(set(used.tolist())) == len(used)
            assert allowed[receiver, used].all()
    assert each_once(np.array([[[4, 4, -1]]], dtype=np.int32)).tolist() == [[[4, -1, -1]]]


def test_todays_metrics_are_the_packages() -> None:
    counts = np.random.default_rng(0).integers(0, 50, (1, 7, 10)).astype(np.float64)
    population = np.random.default_rng(1).dirichlet(np.ones(10))
    known = Known(population, np.eye(10), np.zeros((10, 10, 10)))
    for name, of in {
        "total-variation": total_variation,
        "wasserstein": wasserstein,
        "jensen-shannon": root(divergence),
    }.items():
        np.testing.assert_allclose(-of(shares(counts), known)[0], distances_to(counts[0], population, name))


def test_annealing_ends_higher() -> None:
    network = network_with()
    known, rng = known_for(network), np.random.default_rng(0)
    starts = drawn(useful(network), (4, network.devices, 1), rng)
    measure = pairs_anywhere(0.2, -0.1)
    best, _ = annealed(network, known, measure, 1.0, starts, rng, moves=200)
    before, after = (measure(expected_counts(network, slots), known).max() for slots in (starts, best))
    assert after > before * 1.02


def test_alike_pairs_and_other_pairs_are_worth_more() -> None:
    """Three labels, the first two alike: to see these meet is worth most, and a second pair more than the same again."""
    known = Known(np.ones(3) / 3, np.array([[0.0], [0.1], [5.0]]), np.zeros((3, 1, 1)) + 1)
    alike, apart, other = ([5.0, 5.0, 0.0], [5.0, 0.0, 5.0], [0.0, 5.0, 5.0])
    counts = np.array([[alike, alike], [apart, apart], [apart, other]])
    same, far, two = pairs_anywhere(0.4, -0.3)(counts, known)
    assert same > two > far
    values = values_of(np.array([[alike, alike], [apart, apart], [apart, other]]), known)
    assert np.ptp(values[TODAY, "mean"]) < 1e-12  # total variation knows no difference
    assert (values[OTHERS, "mean"] == values[TODAY, "mean"]).all()


def test_a_rehearsal_prefers_iid_data() -> None:
    network = network_with(network__labels_per_device=1)
    iid = np.repeat(network.population[None], network.devices, axis=0) * 200
    skewed, mixed = rehearsed(0.5, 3)(np.array([network.counts, iid]), known_for(network))
    assert mixed > skewed


def test_spearman_is_that_of_scipy() -> None:
    from scipy.stats import spearmanr

    one, other = np.random.default_rng(0).integers(0, 9, (2, 40)).astype(np.float64)
    assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert spearman(np.ones(40), other) == 0.0


def test_one_lucky_training_does_not_lead() -> None:
    search = Search(Place("digits", "labels:3", 0, True), names={"ours": (0,)})
    trainings = range(8)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, (3, 8))
    search.scores = {
        (0,): dict.fromkeys(trainings, 0.5),
        (1,): {t: 0.52 + noise[0, t] for t in trainings},
        (2,): {t: 0.50 + noise[1, t] for t in trainings},
        **{(3 + n,): {0: 0.49 + rng.normal(0, 0.02)} for n in range(20)},
        (99,): {0: 0.53},
    }
    assert search.best(1) == [(1,)]


def test_a_cell_and_its_tables(tmp_path: Path) -> None:
    scale = Scale(devices=7, samples=30, rounds=1, interval=2, graphs=20, trainings=2, moves=2, links=(1,))
    assert "no exchange" in run_cell(Task("digits", "labels:2", 0, scale), tmp_path)
    assert f"{TODAY}: mean" in measure_all(tmp_path, 1)
    rows = json.loads((tmp_path / "measures.json").read_text())["Graphs with the same number of links"]
    assert {row["measure"] for row in rows} >= {"the true accuracy (from two trainings)", f"{TODAY}: mean"}
    assert all(-1 <= row["reporting"][0] <= 1 for row in rows)
