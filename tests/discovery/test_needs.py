"""What a computation will need is known from shapes, and what does not fit is refused before anything is made."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from d2dfl import METHODS, Network, UserError, discover, preset
from d2dfl.config import RadioSignalsConfig
from d2dfl.config.needs import NetworkShape, check_network, network_bytes, radio_bytes
from d2dfl.discovery.discover import warm_up
from d2dfl.discovery.methods import Method, costs, marginal, rules
from d2dfl.discovery.needs import check_discovery, discovery_bytes, discovery_seconds, discovery_work
from d2dfl.discovery.task import LinkChoice, Task


def test_networks_that_do_not_fit_are_refused_before_they_are_made() -> None:
    # Made, each of these would end the process or take hours; it does not come to that.
    large = preset("best").with_(**{"network.devices": 100_000_000, "channel.slots": 100_000})
    with pytest.raises(UserError, match="100,000,000 devices with 100,000 candidates each need .* channel.slots=25000"):
        Network.generate(large, 0)
    with pytest.raises(UserError, match="fewer partitions"):
        check_network(10**13, 4, 10, 5)
    wide = np.broadcast_to(np.zeros((1, 1)), (10_000_000, 10))
    with pytest.raises(UserError, match="10,000,000 devices"):
        Network.around(wide, preset("best").with_(**{"channel.slots": 10_000}), 0)
    many = {"counts": np.zeros((3_000_000, 1)), "threshold": np.zeros((3_000_000, 1))}
    with pytest.raises(UserError, match="tables of all pairs of 3,000,000 devices need .* give candidates"):
        Network.from_arrays(**many, trust=[], drop=[])


def test_discoveries_that_do_not_fit_are_refused_before_they_begin() -> None:
    config = preset("paper").with_(**{"network.devices": 900, "qlearning.steps": 10**9})
    with pytest.raises(UserError, match="qlearning in a network of 900 devices .* fewer steps"):
        discover(Network.generate(config, 0), config)
    split = preset("best").with_(**{"network.devices": 3, "discovery.action": "partition", "network.trust": "full"})
    shape = NetworkShape(3, 10**6, 10**4)
    assert discovery_bytes(METHODS["marginal"], split, shape) > 5_000 * discovery_bytes(
        METHODS["closest"], split, shape
    )
    own = replace(shape, devices=10**4, slots=999, partitions=20, components=16)
    with pytest.raises(UserError, match="20 partitions needs about"):
        check_discovery(METHODS["marginal"], preset("best"), own)


def test_predicted_memory_holds_what_is_made() -> None:
    config = preset("best").with_(**{"network.devices": 3000, "network.partitions": 20})
    network = Network.generate(config, 0)
    held = sum(array.nbytes for array in vars(network).values() if isinstance(array, np.ndarray))
    assert held < network_bytes(3000, network.slots, 20) < 10 * held
    assert network.shape == NetworkShape.planned(config)
    assert (
        NetworkShape.planned(config.with_(**{"network.devices": 1})).slots
        == Network.generate(preset("best").with_(**{"network.devices": 1}), 0).slots
    )


def test_every_method_says_what_it_takes() -> None:
    assert all(method.costs is not None for method in METHODS.values())


GROWING: list[tuple[str, list[dict[str, Any]]]] = [
    ("marginal", [{"marginal.messages": amount} for amount in (1, 500, 10**6, 10**9)]),
    ("marginal", [{"discovery.edges": amount} for amount in (1, 5, 64)]),
    ("qlearning", [{"qlearning.steps": amount} for amount in (1, 5000, 10**6)]),
    ("bandit", [{"bandit.steps": amount} for amount in (1, 5000, 10**6)]),
    ("gcn", [{"gcn.epochs": amount} for amount in (1, 100, 10**4)]),
    ("gcn", [{"gcn.systems": amount} for amount in (1, 64, 1000)]),
    ("optimum", [{"optimum.starts": amount} for amount in (1, 16, 1000)]),
    ("optimum", [{"optimum.sweeps": amount} for amount in (1, 1000, 10**5)]),
    ("optimum", [{"optimum.messages": amount} for amount in (1, 5000, 10**6)]),
    ("greedy", [{"discovery.edges": amount} for amount in (1, 5, 64)]),
]


@pytest.mark.parametrize(("method", "settings"), GROWING)
def test_more_work_takes_more_time(method: str, settings: list[dict[str, Any]]) -> None:
    times = [discovery_seconds(method, preset("best").with_(**each), NetworkShape(100, 99, 10)) for each in settings]
    assert all(one < two for one, two in pairwise(times))


@pytest.mark.parametrize("method", METHODS)
def test_larger_networks_take_more(method: str) -> None:
    shapes = [
        NetworkShape(20, 19, 4),
        NetworkShape(200, 19, 4),
        NetworkShape(200, 64, 4),
        NetworkShape(200, 64, 40),
        NetworkShape(200, 64, 40, 8),
    ]
    times = [discovery_seconds(method, preset("best"), shape) for shape in shapes]
    sizes = [discovery_bytes(METHODS[method], preset("best"), shape) for shape in shapes]
    # Searching longer for one thing may save time elsewhere; a larger network never does.
    assert all(one <= two for one, two in pairwise(times))
    assert all(one < two for one, two in pairwise(sizes))
    assert times[0] < 60
    costs = METHODS[method].costs
    assert costs is not None
    assert len(discovery_work(METHODS[method], preset("best"), shapes[0])) == len(costs.seconds)


def test_a_budget_of_a_thousand_million_messages_is_announced() -> None:
    config = preset("best").with_(**{"marginal.messages": 10**9})
    assert discovery_seconds("marginal", config, NetworkShape.planned(config)) > 3600
    assert discovery_seconds("marginal", preset("best"), NetworkShape.planned(preset("best"))) < 5
    assert discovery_seconds("someone's own", config, NetworkShape.planned(config)) == 0


def test_memory_grows_with_every_axis() -> None:
    base = network_bytes(10_000, 64, 10)
    assert base < network_bytes(20_000, 64, 10) < network_bytes(20_000, 128, 10) < network_bytes(20_000, 128, 20)
    assert network_bytes(10_000, 4, 10, edges=64) > network_bytes(10_000, 4, 10, edges=5)


def test_radio_signals() -> None:
    few, many = RadioSignalsConfig(per_cell=200), RadioSignalsConfig(per_cell=100_000)
    signals = 11 * 20 * 200 * 2 * 128 * 4
    assert 2 * signals < radio_bytes(few) < 5 * signals
    assert radio_bytes(many) > 4e10
    one = RadioSignalsConfig(per_cell=200, lowest_snr_db=18, highest_snr_db=18)
    assert radio_bytes(one) - 64e6 == pytest.approx((radio_bytes(few) - 64e6) / 20)


def test_a_forecast_counts_by_the_constants_of_the_method() -> None:
    assert costs.INTRODUCTIONS == marginal.INTRODUCTIONS


def test_a_branch_and_bound_is_forecast_where_one_is_tried() -> None:
    config = preset("best").with_(**{"discovery.edges": 1, "optimum.nodes": 10**6})
    exact = [discovery_work(METHODS["optimum"], config, NetworkShape(n, n - 1, 10))[-1] for n in (12, 13)]
    assert exact == [10**6, 0]


def test_an_entry_says_by_which_settings_its_method_is_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def find(task: Task) -> LinkChoice:
        seen.append(task.config.bandit.steps)
        return rules.uniform(task)

    monkeypatch.setitem(METHODS, "mine", Method("mine", "Mine", find, False, "of a user", least={"bandit.steps": 7}))
    warm_up("mine", preset("best"))
    assert set(seen) == {7}
    for method in METHODS.values():
        assert preset("best").with_(**method.least)  # settings that are there


@pytest.mark.parametrize("method", ["marginal", "optimum"])
def test_a_warm_up_says_nothing_of_its_own_tiny_budget(method: str, caplog: pytest.LogCaptureFixture) -> None:
    warm_up(method, preset("paper").with_(**{"marginal.messages": 3}))
    assert "no link was looked for" not in caplog.text
