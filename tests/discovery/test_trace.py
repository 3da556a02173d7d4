"""How a discovery went: bounded, the last moment is the result, and nothing changes because somebody listens."""

import numpy as np
import pytest

from d2dfl import Network, discover, preset
from d2dfl.discovery.discover import graph_at
from d2dfl.discovery.methods import METHODS
from d2dfl.discovery.trace import MOST_MOMENTS, Trace

LEARNERS = ("marginal", "qlearning", "bandit", "greedy")
FAST = {"qlearning.steps": 1500, "bandit.steps": 1500, "optimum.starts": 1, "optimum.sweeps": 2}


@pytest.mark.parametrize("method", [name for name in METHODS if name != "gcn"])
@pytest.mark.parametrize("changes", [{}, {"discovery.action": "partition"}, {"discovery.edge_mode": "sequence"}])
def test_listening_changes_nothing_and_the_last_moment_is_the_result(method: str, changes: dict[str, object]) -> None:
    config = preset("best").with_(**{"network.devices": 7, "discovery.edges": 2, **FAST, **changes})
    network = Network.generate(config, 3)
    trace = Trace()
    alone = discover(network, config, seed=5, method=method)
    heard = discover(network, config, seed=5, method=method, trace=trace)
    assert np.array_equal(alone.graph.slots, heard.graph.slots)
    assert np.array_equal(alone.graph.allocated, heard.graph.allocated)
    assert (alone.messages, alone.message_bits, alone.steps) == (heard.messages, heard.message_bits, heard.steps)
    last = graph_at(network, config, method, trace.moments[-1].stages)
    assert np.array_equal(last.slots, heard.graph.slots)
    assert np.array_equal(last.allocated, heard.graph.allocated)
    assert trace.moments[-1].share == 1.0
    assert trace.moments[-1].messages == heard.messages  # those with which what moves is agreed on included


@pytest.mark.parametrize("method", LEARNERS)
def test_learners_tell_more_than_the_end(method: str) -> None:
    config = preset("best").with_(**{"network.devices": 9, "discovery.edges": 1, **FAST})
    trace = Trace()
    discover(Network.generate(config, 0), config, method=method, trace=trace)
    assert 3 <= len(trace.moments) <= MOST_MOMENTS
    assert trace.moments[0].stages[0].max() == -1  # it begins without a link
    shares = [moment.share for moment in trace.moments]
    assert shares == sorted(shares)
    assert [moment.messages for moment in trace.moments] == sorted(moment.messages for moment in trace.moments)
    different = {moment.stages[-1].tobytes() for moment in trace.moments}
    assert len(different) > 2


def test_a_temperature_falls() -> None:
    config = preset("best").with_(**{"network.devices": 9, "marginal.cycle": 500})  # one cooling
    trace = Trace()
    discover(Network.generate(config, 0), config, method="marginal", trace=trace)
    heat = [moment.temperature for moment in trace.moments[1:]]
    assert all(value is not None for value in heat)
    assert heat == sorted(heat, key=lambda value: -float(value or 0))
    assert float(heat[0] or 0) > 4 * float(heat[-1] or 0)


def test_moments_stay_few_and_the_first_and_last_ones_stay() -> None:
    trace = Trace()
    hear = trace.stage(0, 1)
    for number in range(10_000):
        hear(np.full((2, 1), number, dtype=np.int32), number / 10_000, None, float(number))
    assert MOST_MOMENTS / 3 < len(trace.moments) <= MOST_MOMENTS
    assert trace.moments[0].share < 0.03
    gaps = np.diff([moment.share for moment in trace.moments])
    assert gaps.max() < 4 * np.median(gaps)
    trace.settle(np.full((2, 1), 7, dtype=np.int32), 10_000.0, 1.0)
    assert trace.moments[-1].share == 1.0


def test_what_is_told_is_kept_though_the_learner_goes_on() -> None:
    trace = Trace()
    hear, slots = trace.stage(0, 1), np.zeros((2, 1), dtype=np.int32)
    hear(slots, 0.1, None, 1.0)
    slots[:] = 5
    assert trace.moments[0].stages[0].max() == 0
