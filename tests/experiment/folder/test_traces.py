"""Recorded discoveries in a run folder: small, read back as they were, and refused when damaged."""

import json
from pathlib import Path

import numpy as np
import pytest

from d2dfl import Config, Network, discover, preset
from d2dfl.discovery.discover import graph_at
from d2dfl.discovery.trace import Trace
from d2dfl.errors import UserError
from d2dfl.experiment.folder import traces
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.folder.traces import load_traces, save_traces


def kept(folder: Path, config: Config, method: str = "marginal") -> Trace:
    """A run folder with one recorded discovery."""
    trace = Trace()
    discover(Network.generate(config, 1), config, seed=1, method=method, trace=trace)
    with run_folder(folder, RunPlan("graph", config.to_toml(), {"method": method, "seed": 1})):
        save_traces([trace], config, folder)
    return trace


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("marginal", {}),
        ("qlearning", {"qlearning.steps": 900, "discovery.edges": 2}),
        ("marginal", {"discovery.action": "partition"}),
        ("closest", {"channel.slots": 4, "discovery.edges": 2}),
    ],
)
def test_a_discovery_comes_back_moment_by_moment(tmp_path: Path, method: str, changes: dict[str, object]) -> None:
    config = preset("best").with_(**{"network.devices": 8, **changes})
    trace = kept(tmp_path / "run", config, method)
    (found,) = load_traces(tmp_path / "run")
    assert (found.trace.method, found.trace.seed, found.config) == (method, 1, config)
    assert len(found.trace.moments) == len(trace.moments)
    assert trace.network is not None
    assert found.trace.network is not None
    for ours, theirs in zip(trace.moments, found.trace.moments, strict=True):
        assert (ours.share, ours.messages, ours.temperature) == (theirs.share, theirs.messages, theirs.temperature)
        one = graph_at(trace.network, config, method, ours.stages)
        other = graph_at(found.trace.network, config, method, theirs.stages)
        assert one.edges == other.edges  # slots may have other numbers in a file
        assert np.allclose(sorted(one.allocated.sum(axis=(1, 2))), sorted(other.allocated.sum(axis=(1, 2))))


def test_a_long_one_is_thinned_to_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_CHANGES", 60)
    config = preset("best").with_(**{"network.devices": 8})
    trace = kept(tmp_path / "run", config)
    (found,) = load_traces(tmp_path / "run")
    assert 2 <= len(found.trace.moments) < len(trace.moments)
    assert found.trace.moments[-1].share == 1.0
    content = json.loads((tmp_path / "run" / "traces" / "marginal-seed-1.json").read_text())
    assert sum(len(one["links"]) for one in content["moments"]) <= 60


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    config = preset("best").with_(**{"network.devices": 6})
    for name in ("a", "b"):
        kept(tmp_path / name, config)
    for file in ("marginal-seed-1.json", "network-1-marginal.npz"):
        assert (tmp_path / "a" / "traces" / file).read_bytes() == (tmp_path / "b" / "traces" / file).read_bytes()


DAMAGES = {
    "format": lambda content: content.update(format=9),
    "a path": lambda content: content.update(network="../network-1-marginal.npz"),
    "no network": lambda content: content.update(network="network-7.npz"),
    "a receiver that is not there": lambda content: content["moments"][0]["links"].append([0, 99, 0, 1]),
    "a negative place": lambda content: content["moments"][0]["links"].append([0, -1, 0, 1]),
    "nobody hears that one": lambda content: content["moments"][0]["links"].append([0, 0, 0, 0]),
    "a text": lambda content: content["moments"][0].update(share="all"),
    "names": lambda content: content.update(devices=[1, 2]),
    "too many": lambda content: content.update(moments=content["moments"] * 200),
    "a list": lambda content: content.clear(),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: str) -> None:
    kept(tmp_path / "run", preset("best").with_(**{"network.devices": 6}))
    path = tmp_path / "run" / "traces" / "marginal-seed-1.json"
    content = json.loads(path.read_text())
    DAMAGES[damage](content)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError):
        load_traces(tmp_path / "run")


def test_a_folder_without_any_says_so(tmp_path: Path) -> None:
    config = preset("best")
    with run_folder(tmp_path / "run", RunPlan("graph", config.to_toml(), {"method": "closest", "seed": 0})):
        pass
    with pytest.raises(UserError, match="no recorded discovery"):
        load_traces(tmp_path / "run")
    with pytest.raises(UserError, match="not a run folder"):
        load_traces(tmp_path)
