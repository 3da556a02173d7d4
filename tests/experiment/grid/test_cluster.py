"""One federation on a Ray cluster of two nodes: the bits of one process, whoever dies."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2dfl import UserError
from d2dfl.config import FederationConfig
from d2dfl.experiment.compare import compare
from d2dfl.experiment.grid.cluster import _stations, check_engine
from d2dfl.federation import SCHEMES
from d2dfl.federation.schemes import Scheme

SCRIPT = Path(__file__).resolve().parent / "two_nodes.py"
# A network and processes of their own: nothing is heard outside, and nothing is left.
APART = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
SERVED = [name for name, scheme in SCHEMES.items() if scheme.groups is not None or scheme.server_step]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened on a cluster; a minute."""
    pytest.importorskip("ray", reason="no Ray: make test EXTRAS=ray,tensorboard")
    alone = (
        shutil.which("unshare") and not subprocess.run([*APART, "true"], capture_output=True, check=False).returncode
    )
    command = [*(APART if alone else []), sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("nodes"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_workers_are_on_both_nodes(found: dict[str, Any]) -> None:
    assert found["where"] == ["127.0.0.2", "127.0.0.3"]


@pytest.mark.parametrize("model", ["mlp", "tiny_conv"])
@pytest.mark.parametrize("rule", ["keep", "reset", "mix"])
@pytest.mark.parametrize("scheme", SERVED)
def test_the_cluster_changes_no_bit(found: dict[str, Any], scheme: str, rule: str, model: str) -> None:
    assert found[f"{scheme}, {rule}, {model}"] is True


def test_run_folders_have_the_same_bytes(found: dict[str, Any]) -> None:
    assert found["a comparison"] is True


@pytest.mark.parametrize(("first", "then"), [("ray", "ray"), ("ray", "local"), ("local", "ray")])
def test_a_cut_run_goes_on_to_the_same_files(found: dict[str, Any], first: str, then: str) -> None:
    assert found[f"cut on {first}, resumed on {then}"] is True


def test_a_worker_that_dies_changes_no_bit(found: dict[str, Any]) -> None:
    assert found["a worker dies"] is True
    assert found["workers after it"] == 1
    assert "worker" in found["marks"], "nobody died"


def test_a_node_that_dies_changes_no_bit(found: dict[str, Any]) -> None:
    assert found["a node dies"] is True
    assert found["nodes after it"] == 1
    assert "node" in found["marks"], "nobody died"
    assert found["after a node died"] is True


def test_work_that_kills_every_worker_ends_in_a_sentence(found: dict[str, Any]) -> None:
    assert found["every worker dies"].startswith("3 workers died over the same part of a round, the last with: ")


def test_schemes_without_a_server_are_refused_before_anything_is_computed() -> None:
    said: list[str] = []
    with pytest.raises(UserError, match="the scheme decentralised cannot train on a cluster"):
        compare(
            {"federation.scheme": "decentralised"},
            ["none"],
            [0],
            engine="ray",
            progress=lambda what, _: said.append(what),
        )
    assert not said
    with pytest.raises(UserError, match="there is no engine 'cloud': the engines are local, ray"):
        compare(None, ["none"], [0], engine="cloud")


def test_what_crosses_every_round_is_said() -> None:
    assert "crosses the network twice" in check_engine("ray", FederationConfig(momentum_rule="keep"))
    assert not check_engine("ray", FederationConfig(momentum_rule="reset"))
    assert not check_engine("ray", FederationConfig(momentum_rule="keep", scheme="fedsgd"))
    assert not check_engine("local", FederationConfig(momentum_rule="keep", scheme="decentralised"))


def test_a_scheme_of_ones_own_says_by_its_groups_whether_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "mine", Scheme("mine", "Mine", SCHEMES["fedavg"].mix, lambda _: 1))
    with pytest.raises(UserError, match="mine cannot train on a cluster"):
        check_engine("ray", FederationConfig(scheme="mine"))
    grouped = Scheme("mine", "Mine", SCHEMES["fedavg"].mix, lambda _: 1, groups=lambda now: np.arange(now.devices))
    monkeypatch.setitem(SCHEMES, "mine", grouped)
    assert not check_engine("ray", FederationConfig(scheme="mine", momentum_rule="reset"))


class Nodes:
    """What Ray says of a cluster."""

    def __init__(self, *resources: dict[str, float]) -> None:
        self.resources = resources

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": str(number), "NodeManagerAddress": f"10.0.0.{number}", "Alive": number < 3, "Resources": own}
            for number, own in enumerate(self.resources)
        ]


def test_one_worker_a_gpu_or_else_one_a_machine() -> None:
    def stations(device: Any, *resources: dict[str, float]) -> list[tuple[str, int, int]]:
        found = _stations(Nodes(*resources), FederationConfig(device=device))
        return [(node["NodeID"], cpus, gpus) for node, cpus, gpus in found]

    mixed = ({"CPU": 4.0}, {"CPU": 8.0, "GPU": 2.0}, {"GPU": 1.0}, {"CPU": 64.0})  # the last one is dead
    assert stations("auto", *mixed) == [("1", 4, 1), ("1", 4, 1), ("2", 1, 1)]
    assert stations("cpu", *mixed) == [("0", 4, 0), ("1", 8, 0)]
    assert stations("auto", {"CPU": 2.0}) == [("0", 2, 0)]
    with pytest.raises(UserError, match="no machine of the Ray cluster offers a GPU"):
        stations("cuda", {"CPU": 2.0})
    with pytest.raises(UserError, match="offer no CPU"):
        stations("auto", {"CPU": 0.0})
