"""A recorded trace in place of the draws of a changing channel."""

from pathlib import Path

import numpy as np
import pytest

from d2dfl import Config, Network, discover
from d2dfl.discovery.changing_channel import as_known, at_exchange
from d2dfl.discovery.discover import warm_up
from d2dfl.errors import UserError
from d2dfl.network.traces import read_trace, traced_power


@pytest.fixture
def trace(tmp_path: Path, config: Config) -> Path:
    """Two moments: first devices with even numbers are heard well, then those with odd ones."""
    devices = config.network.devices
    loss = np.full((2, devices, devices), 0.02)
    loss[0, :, 1::2] = loss[1, :, ::2] = 0.6
    np.savez(tmp_path / "trace.npz", loss=loss, seconds=np.array([0.0, 30.0]))
    return tmp_path / "trace.npz"


def replayed(config: Config, trace: Path, **more: object) -> Config:
    return config.with_(**{"channel.dynamic": True, "channel.trace": str(trace), **more})


def test_the_exchange_is_at_one_of_the_recorded_moments(config: Config, trace: Path) -> None:
    config = replayed(config, trace)
    network = Network.generate(config, 0)
    moments = set()
    for seed in range(20):
        now = at_exchange(network, config.channel, seed)
        odd = network.candidates % 2 == 1
        first = bool((now.drop[odd] > 0.5).all())
        assert np.allclose(now.drop, np.where(odd == first, 0.6, 0.02))
        assert np.allclose(as_known(now, config.channel).drop, 0.31)  # what one can know: the mean of each link
        by_level = replayed(config, trace, **{"channel.plan": "levels"}).channel
        assert np.allclose(as_known(now, by_level).drop, now.drop)  # a link of this level was always like this
        moments.add(first)
    assert moments == {True, False}


@pytest.mark.parametrize("method", ["marginal", "qlearning", "closest", "optimum"])
def test_methods_discover_on_a_recording(config: Config, trace: Path, method: str) -> None:
    config = replayed(config, trace, **{"qlearning.steps": 200, "marginal.messages": 60})
    network = Network.generate(config, 1)
    one, two = (discover(network, config, seed=3, method=method) for _ in range(2))
    assert one.graph.slots.tolist() == two.graph.slots.tolist()
    assert set(np.round(one.graph.drop[one.graph.slots >= 0], 6)) <= {0.02, 0.6}


def test_powers_lose_what_was_recorded(config: Config, trace: Path) -> None:
    config = replayed(config, trace)
    network = Network.generate(config, 0)
    for moment, power in enumerate(traced_power(config.channel, network.candidates)):
        lost = network.with_drop(power, config.channel).drop
        wanted = read_trace(trace)[moment][np.arange(network.devices)[:, None], network.candidates]
        assert np.allclose(lost, wanted)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"seconds": np.zeros(2)}, "holds no trace"),
        ({"loss": np.zeros((2, 3))}, "holds no trace"),
        ({"loss": np.zeros((0, 3, 3))}, "holds no trace"),
        ({"loss": np.zeros((2, 3, 3), dtype=int)}, "holds no trace"),
        ({"loss": np.full((2, 3, 3), 1.5)}, "losses that are none"),
        ({"loss": np.full((2, 3, 3), np.nan)}, "losses that are none"),
        ({"loss": np.zeros((2, 3, 3))}, "was recorded with 3 devices"),
    ],
)
def test_a_bad_trace_is_one_sentence(tmp_path: Path, config: Config, arrays: dict, reason: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    config = replayed(config, tmp_path / "bad.npz")
    with pytest.raises(UserError, match=reason):
        discover(Network.generate(config, 0), config)


def test_a_missing_trace_is_one_sentence(tmp_path: Path, config: Config) -> None:
    config = replayed(config, tmp_path / "none.npz")
    with pytest.raises(UserError, match="none.npz"):
        discover(Network.generate(config, 0), config)


def test_a_method_is_compiled_ahead_whatever_was_recorded(config: Config, trace: Path) -> None:
    """The tiny network for it has three devices, the recording as many as the user's."""
    assert config.network.devices != 3
    warm_up("marginal", replayed(config, trace))
