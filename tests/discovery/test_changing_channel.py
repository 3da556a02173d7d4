"""Discovery over a channel that changes: who knows what of it."""

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Config, Network, discover, preset
from d2dfl.discovery import changing_channel
from d2dfl.discovery.discover import METHODS, Discovery
from d2dfl.network import channel


@pytest.mark.parametrize("state", ["link", "vector"])
def test_dynamic_channel(state: str) -> None:
    config = config_of("paper", **{"channel.dynamic": True, "qlearning.state": state, "qlearning.steps": 600})
    network = Network.generate(config, 0)
    one, two = (discover(network, config, seed=1, method="qlearning") for _ in range(2))
    assert (one.graph.slots == two.graph.slots).all()
    assert (one.network.drop != network.drop).any()  # the channel at the exchange is another one
    closest = discover(network, config, seed=1, method="closest")
    assert (closest.network.drop == one.network.drop).all()  # the same for every method


def test_dynamic_links_are_told_apart_by_level() -> None:
    """One receiver, two transmitters with the same data: the policy should take the link that is good right now."""
    trust = np.ones((3, 3, 2))
    network = Network.from_arrays(
        counts=[[100, 0], [0, 100], [0, 100]],
        threshold=np.full((3, 2), 20.0),
        trust=trust,
        rss=np.full((3, 3), 0.3),
    )
    config = preset("best").with_(
        **{
            "channel.dynamic": True,
            "channel.levels": 4,
            "qlearning.steps": 3000,
            "reward.reliability_weight": 3.0,
        }
    )
    better = 0
    for seed in range(24):
        found = discover(network, config, seed=seed, method="qlearning")
        power = found.network.rss[0]
        if abs(power[0] - power[1]) > 0.13:
            better += 1 if found.graph.slots[0, 0] == power.argmax() else -1
    assert better >= 6


def two_exchanges(config: Config, method: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Discovery, Discovery]:
    """The same discovery before an exchange that meets one channel, and before one that meets another."""
    network, at_exchange = Network.generate(config, 0), changing_channel.at_exchange
    one = discover(network, config, seed=1, method=method)
    monkeypatch.setattr(
        changing_channel, "at_exchange", lambda here, settings, seed: at_exchange(here, settings, seed + 99)
    )
    return one, discover(network, config, seed=1, method=method)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.reference])
@pytest.mark.parametrize("edges", [1, 2])
def test_nobody_plans_with_the_channel_of_the_exchange(
    method: str, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R45: with one level nothing is known of it, so whatever it is, the same links are chosen and as much is asked."""
    changes = {
        "channel.dynamic": True,
        "channel.levels": 1,
        "discovery.edges": edges,
        "gcn.epochs": 1,
        "gcn.systems": 1,
    }
    one, two = two_exchanges(config_of("best", **changes, **{"qlearning.steps": 200}), method, monkeypatch)
    assert (one.network.drop != two.network.drop).any()
    assert (one.graph.slots == two.graph.slots).all()
    assert (one.graph.allocated == two.graph.allocated).all()
    if method != "none":  # what was planned meets the channel as it is
        assert (one.graph.drop != two.graph.drop).any()
        assert one.evaluation.success_probability != two.evaluation.success_probability


@pytest.mark.parametrize("plan", ["levels", "exact"])
def test_what_is_known_of_the_exchange_is_used(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"channel.dynamic": True, "channel.plan": plan, "channel.levels": 8, "reward.reliability_weight": 3.0}
    one, two = two_exchanges(config_of("best", **changes), "marginal", monkeypatch)
    assert (one.graph.slots != two.graph.slots).any()


def test_the_reference_alone_sees_a_changing_channel() -> None:
    config = config_of("best", **{"channel.dynamic": True})
    drawn = changing_channel.at_exchange(Network.generate(config, 0), config.channel, 0)
    for method in METHODS.values():
        assert (changing_channel.known_to(method, drawn, config.channel) is drawn) == method.reference
        assert changing_channel.known_to(method, drawn, config_of("best").channel) is drawn  # it rests


def test_levels_say_what_is_lost_in_the_mean() -> None:
    config = config_of("best", **{"channel.kind": "gaussian", "channel.dynamic": True, "network.devices": 60})
    drawn = changing_channel.at_exchange(Network.generate(config, 0), config.channel, 0)
    heard = drawn.candidates >= 0
    expected = changing_channel.as_known(drawn, config.channel)
    assert len(np.unique(expected.drop[heard])) == 1
    assert expected.drop[heard][0] == pytest.approx(drawn.drop[heard].mean(), rel=0.02)
    by_level = changing_channel.as_known(drawn, config.with_(channel__plan="levels").channel)
    level = channel.quantise(drawn.rss, config.channel)
    assert (channel.quantise(by_level.rss, config.channel) == level).all()
    for number in range(4):
        links = heard & (level == number)
        assert by_level.drop[links].std() == pytest.approx(0.0, abs=1e-12)
        assert by_level.drop[links].mean() == pytest.approx(drawn.drop[links].mean(), rel=0.05)


def test_more_levels_save_datapoints_where_power_varies_much() -> None:
    """R45: with 0.1 as the variance; with 0.1 as the deviation there is hardly anything to be saved."""
    saved = {}
    for rule in ("deviation", "variance"):
        ends = []
        for levels in (1, 4):
            changes = {"channel.kind": "gaussian", "channel.dynamic": True, "channel.deviation_rule": rule}
            config = preset("paper").with_(**changes, **{"channel.levels": levels})
            found = [
                discover(Network.generate(config, seed), config, seed=seed, method="qlearning") for seed in range(4)
            ]
            ends.append(np.mean([one.evaluation.success_probability for one in found]))
        saved[rule] = ends[1] - ends[0]
    assert saved["variance"] > 0.03 > saved["deviation"]
