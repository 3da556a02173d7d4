"""Metrics of a user's own: the same as built-in ones where they say the same, compiled or not, and refused in a sentence."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Config, Network
from d2dfl.config.metrics import METRICS, Metric
from d2dfl.discovery.discover import discover
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.errors import UserError
from fleets import compiled, fleet_of

CALLS = {"interpreted": 0}


def halves(counts: Any, population: Any) -> Any:
    """Total variation, as arrays."""
    return 0.5 * np.abs(counts / counts.sum() - population / population.sum()).sum()


def interpreted(counts: Any, population: Any) -> float:
    """Total variation, in a way that Numba cannot compile."""
    CALLS["interpreted"] += 1
    shares = [{"p": p, "q": q} for p, q in zip(counts.tolist(), population.tolist(), strict=True)]
    return sum(abs(one["p"] / counts.sum() - one["q"] / population.sum()) for one in shares) / 2


def skewed(counts: Any, population: Any) -> Any:
    """No built-in metric: a label counts the more, the later it comes."""
    total = 0.0
    for label in range(len(counts)):
        total += (label + 1) * (counts[label] / counts.sum() - population[label] / population.sum()) ** 2
    return total


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    """The metrics above, and the registry as it was afterwards."""
    before = dict(METRICS)
    for function in (halves, interpreted, skewed):
        METRICS[function.__name__] = Metric(function.__name__, "", function, largest=2.0)
    yield
    METRICS.clear()
    METRICS.update(before)


@pytest.mark.parametrize("method", ["marginal", "qlearning", "greedy"])
def test_it_gives_what_the_built_in_metric_gives(method: str) -> None:
    config = config_of("best", **{"qlearning.steps": 300, "discovery.edges": 2})
    network = Network.generate(config, 3)
    known = discover(network, config, method=method)
    mine = discover(network, config.with_(reward__metric="halves"), method=method)
    assert mine.graph.slots.tolist() == known.graph.slots.tolist()
    assert mine.evaluation.objective == pytest.approx(known.evaluation.objective, rel=1e-12)
    assert mine.evaluation.distance_after["halves"] == pytest.approx(known.evaluation.distance_after["total-variation"])
    assert "halves" not in known.evaluation.distance_after


def test_what_numba_cannot_compile_is_called_in_python_with_a_warning() -> None:
    config = config_of("best", **{"network.devices": 6, "marginal.messages": 60})
    network = Network.generate(config, 1)
    with pytest.warns(UserWarning, match="'interpreted' cannot be compiled and is called in Python"):
        mine = discover(network, config.with_(reward__metric="interpreted"))
    assert CALLS["interpreted"] > 100
    assert mine.graph.slots.tolist() == discover(network, config).graph.slots.tolist()


def test_the_learner_equals_devices_that_exchange_messages() -> None:
    config = config_of("best", **{"reward.metric": "skewed", "marginal.messages": 100})
    network = Network.generate(config, 7)
    play, learner, rules = compiled(network, config, 7)
    fleet = fleet_of(network, config, 7, learner)
    fleet.introduce()
    fleet.run(rules)
    assert play.slots.tolist() == fleet.slots().tolist()
    assert (play.slots >= 0).any()


def test_a_device_without_data_is_as_far_as_the_metric_says() -> None:
    counts = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert distances_to(counts, np.ones(2), "halves").tolist() == [2.0, 0.0]
    assert distances_to(counts[:1], np.zeros(2), "halves").tolist() == [0.0]


def refused(config: Config, metric: Metric | None) -> str:
    METRICS["mine"] = metric  # type: ignore[assignment]  # what a plug-in may do wrong
    with pytest.raises(UserError) as error:
        discover(Network.generate(config, 0), config.with_(reward__metric="mine"))
    return str(error.value)


@pytest.mark.filterwarnings("ignore:the metric 'mine' cannot be compiled")
def test_what_fails_is_one_sentence() -> None:
    config = config_of("best", **{"network.devices": 4})
    assert refused(config, Metric("mine", "", lambda a, b: {}[0])) == "the metric 'mine' fails: KeyError: 0"
    assert "give finite numbers" in refused(config, Metric("mine", "", lambda a, b: a[0] / 0.0 - a[0] / 0.0))
    assert "fails: ValueError" in refused(config, Metric("mine", "", lambda a, b: "far"))  # type: ignore[arg-type,return-value]  # a function that is wrong
    assert "registered without its function" in refused(config, Metric("mine", ""))
    assert "registered without its function" in refused(config, None)


def test_names_are_those_of_the_registry() -> None:
    with pytest.raises(UserError, match=r"give one of total-variation, wasserstein, jensen-shannon, halves, inter"):
        Config().with_(reward__metric="manhattan")
