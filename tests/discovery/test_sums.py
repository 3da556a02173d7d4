"""What devices know of all others when they begin comes from masked sums over keys that they agreed on.

Here devices of discovery and their sides of the sums stand side by side; peers do the same in peer/negotiation/sums.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Network
from d2dfl.discovery.methods.agreed import LARGEST_GAIN
from d2dfl.discovery.protocol.device import Device
from d2dfl.partition.masked.device import MaskedDevice
from d2dfl.partition.masked.driver import Transcript, run_sum
from d2dfl.partition.masked.keys import agreed_devices
from d2dfl.partition.masked.messages import Kind
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph
from d2dfl.partition.masked.words import FixedPoint
from fleets import compiled, fleet_of

pytest.importorskip("cryptography", reason="no cryptography: pip install 'd2dfl[peer]'")
CONFIG = config_of("best", **{"discovery.edges": 2, "marginal.messages": 60})
MOST_DATAPOINTS = 2.0**32  # of one label at one device
COUNTS, GAINS = 0, 1  # numbers of the sums


def tell_population(
    devices: Sequence[Device], sides: Sequence[MaskedDevice], silent: Mapping[int, Kind] | None = None
) -> Transcript:
    """Everybody learns the share of each label among all devices that are counted in. `silent`: who vanishes at which step."""
    code = FixedPoint(len(devices), MOST_DATAPOINTS, sides[0].plan.bits)
    words = [code.words(device.holdings.counts) for device in devices]
    told = run_sum(sides, COUNTS, words, silent)
    for device, outcome in zip(devices, told.outcomes, strict=True):
        if outcome is not None and outcome.words is not None:
            counts = code.numbers(outcome.words)
            device.holdings.population = (counts / max(float(counts.sum()), 1.0)).tolist()
    return told


def tell_unit(
    devices: Sequence[Device], sides: Sequence[MaskedDevice], silent: Mapping[int, Kind] | None = None
) -> tuple[float | None, Transcript]:
    """The mean over devices of what each expects of its best link, once they are introduced; None where the sum failed."""
    code = FixedPoint(len(devices), LARGEST_GAIN, sides[0].plan.bits)
    words = [code.words(np.array([min(device.best_alone(), LARGEST_GAIN)])) for device in devices]
    told = run_sum(sides, GAINS, words, silent)
    outcome = next((item for item in told.outcomes if item is not None and item.words is not None), None)
    if outcome is None or outcome.words is None:
        return None, told
    return float(code.numbers(outcome.words)[0]) / len(outcome.present), told


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
