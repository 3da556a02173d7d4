"""What devices know of all others when they begin comes from masked sums over keys that they agreed on."""

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Network
from d2dfl.discovery.protocol.sums import MOST_DATAPOINTS, tell_population, tell_unit
from d2dfl.partition.masked.driver import Transcript
from d2dfl.partition.masked.keys import agreed_devices
from d2dfl.partition.masked.messages import Kind
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph
from d2dfl.partition.masked.words import FixedPoint
from fleets import compiled, fleet_of

pytest.importorskip("cryptography")
CONFIG = config_of("best", **{"discovery.edges": 2, "marginal.messages": 60})


def plan_of(devices: int) -> SumPlan:
    return SumPlan(balanced_tree(devices), mask_graph(devices, 0), 64)


def test_devices_begin_with_what_masked_sums_tell_them_and_find_what_the_compiled_learner_finds() -> None:
    network = Network.generate(CONFIG, 0)
    play, learner, rules = compiled(network, CONFIG, 0)
    fleet = fleet_of(network, CONFIG, 0, learner)
    for device in fleet.devices:
        device.holdings.population = []
    sides, _ = agreed_devices(plan_of(network.devices), b"discovery")
    tell_population(fleet.devices, sides)
    assert all(device.holdings.population == network.population.tolist() for device in fleet.devices)
    fleet.introduce()
    unit, _ = tell_unit(fleet.devices, sides)
    assert unit == pytest.approx(learner.unit[0], rel=1e-9)
    fleet.run(rules)
    assert fleet.slots().tolist() == play.slots.tolist()


@pytest.mark.parametrize("step", [Kind.MASKED, Kind.OPENING])
def test_the_others_learn_their_sum_when_one_vanishes(step: Kind) -> None:
    network = Network.generate(CONFIG, 1)
    _, learner, _ = compiled(network, CONFIG, 1)
    fleet = fleet_of(network, CONFIG, 1, learner)
    sides, _ = agreed_devices(plan_of(network.devices), b"discovery")
    gone = network.devices - 1  # with nobody below it
    tell_population(fleet.devices, sides, {gone: step})
    counted = [name for name in range(network.devices) if step is Kind.OPENING or name != gone]
    counts = network.counts[counted].sum(axis=0)
    for device in fleet.devices[:gone]:
        assert np.allclose(device.holdings.population, counts / counts.sum())


def seen_by_parent(told: Transcript, leaf: int) -> list[int]:
    (message,) = (item for item in told.messages if item.sender == leaf and item.kind is Kind.MASKED)
    return [int(word) for word in message.words]


def test_a_parent_does_not_see_the_counts_of_its_leaf() -> None:
    """Twice the same counts, other words each time, and none of them is a count as devices write it."""
    network = Network.generate(CONFIG, 2)
    _, learner, _ = compiled(network, CONFIG, 2)
    fleet, leaf = fleet_of(network, CONFIG, 2, learner), network.devices - 1
    words = []
    for _ in range(2):
        sides, _ = agreed_devices(plan_of(network.devices), b"discovery")
        words.append(seen_by_parent(tell_population(fleet.devices, sides), leaf))
    assert not set(words[0]) & set(words[1])
    code = FixedPoint(network.devices, MOST_DATAPOINTS, 64)
    plain = {int(word) for word in code.words(network.counts[leaf])}
    assert not plain & {*words[0], *words[1]}
