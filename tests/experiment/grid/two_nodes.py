"""A Ray cluster of two nodes on this machine, and what happens on it; test_cluster.py runs it and reads what it prints.

A process of its own, in a network of its own where that can be made: nodes of a cluster listen on all addresses there are.
"""

import fcntl
import json
import os
import secrets
import signal
import socket
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "federation")]

from federations import FAST, federation, tiny_conv  # noqa: E402  # after the settings and the path

from comparisons import compared, contents, small  # noqa: E402  # after the settings and the path
from d2dfl import UserError  # noqa: E402  # after the settings and the path
from d2dfl.experiment.grid.cluster import RayCluster, cluster_for  # noqa: E402  # after the settings and the path
from d2dfl.federation import FederationConfig, start, train_many  # noqa: E402  # after the settings and the path
from d2dfl.federation.models import mlp  # noqa: E402  # after the settings and the path

SIZES = (9, 20, 0, 13, 5, 8, 8, 30, 0, 3, 11, 2)
HEAD, OTHER = "127.0.0.2", "127.0.0.3"


@contextmanager
def cluster() -> Iterator[Any]:
    """Two nodes with a CPU each, which end with this."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:  # in a new network even loopback is off
        fcntl.ioctl(handle, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        os.environ |= {
            "RAY_TMPDIR": folder,  # else it would be the cluster of everybody on this machine
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",  # Ray's word for addresses other than 127.0.0.1
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        (Path(folder) / "ray").mkdir()
        import ray
        from ray.cluster_utils import Cluster

        size = 150_000_000
        head = {"num_cpus": 1, "node_ip_address": HEAD, "include_dashboard": False, "object_store_memory": size}
        nodes = Cluster(initialize_head=True, head_node_args=head)
        nodes.add_node(num_cpus=1, node_ip_address=OTHER, object_store_memory=size)
        try:
            ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
            yield ray
        finally:
            ray.shutdown()
            nodes.shutdown()


class Mortal(nn.Sequential):
    """A model whose first step on the other node calls something, once."""

    def __init__(self, wound: Callable[[], None], mark: Path, wide: int, outputs: int) -> None:
        super().__init__(nn.Flatten(), nn.Linear(wide, 5), nn.Tanh(), nn.Linear(5, outputs))
        self.wound, self.mark = wound, mark

    def forward(self, inputs: Tensor) -> Tensor:
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized() and ray.util.get_node_ip_address() == OTHER:
            self.wound_once()
        return super().forward(inputs)

    def wound_once(self) -> None:
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return
        self.wound()


def end_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_node() -> None:
    """The node is its raylet, the parent of its workers."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    os._exit(1)


def trained(factory: Any, place: RayCluster | None, tell: Any = None, **changes: Any) -> Any:
    """All that a training leaves, as bytes."""
    shape = (1, 6, 6) if factory is tiny_conv else (6,)
    data = [federation(sizes=SIZES, seed=seed, shape=shape) for seed in (0, 3)]
    settings = FederationConfig(**{**FAST, "participation": 0.8, **changes})
    states = [start(factory, one, settings, seed) for seed, one in enumerate(data)]
    runs = [(one, seed) for seed, one in enumerate(data)]
    train_many(factory, runs, settings, progress=tell or (lambda _: None), states=states, cluster=place)
    arrays = [held.numpy() for state in states for held in (state.params, *state.memory.values())]
    return [array.tobytes() for array in arrays], [vars(state.curves) for state in states]


def dying(place: RayCluster | None, wound: Callable[[], None], mark: Path) -> Any:
    """The same with a model that takes its worker along."""
    return trained(lambda shape, outputs: Mortal(wound, mark, int(np.prod(shape)), outputs), place)


def sentence(call: Callable[[], Any]) -> str:
    try:
        call()
    except UserError as error:
        return str(error)
    return "nothing was refused"


def always(place: RayCluster) -> str:
    """A model that kills every worker."""

    class Deadly(Mortal):
        def forward(self, inputs: Tensor) -> Tensor:
            end_worker()
            return inputs

    return sentence(
        lambda: trained(lambda shape, outputs: Deadly(end_worker, Path(), int(np.prod(shape)), outputs), place)
    )


def comparison(folder: Path) -> Iterator[tuple[str, bool]]:
    """Run folders: near and far, and cut and resumed on the other engine."""
    config = small(**{"federation.momentum_rule": "mix", "federation.interval": 2, "federation.model": "cnn-lite"})
    compared(folder / "near", config, seeds=[0])
    files = contents(folder / "near")
    compared(folder / "far", config, seeds=[0], engine="ray")
    yield "a comparison", contents(folder / "far") == files

    def cut(what: str, share: float) -> None:
        if what == "train" and share > 0.5:
            raise InterruptedError

    for first, then in (("ray", "ray"), ("ray", "local"), ("local", "ray")):
        name = folder / f"{first}-{then}"
        try:
            compared(name, config, seeds=[0], progress=cut, engine=first)
        except InterruptedError:
            left = bool(list(name.glob("checkpoints/*")))
        compared(name, config, seeds=[0], again="resume", engine=then)
        yield f"cut on {first}, resumed on {then}", left and contents(name) == files


def main(folder: Path) -> None:
    found: dict[str, Any] = {}
    torch.set_num_threads(1)
    with cluster() as ray:
        found.update(comparison(folder))
        with cluster_for("ray", FederationConfig()) as place:
            on_cluster(found, place, ray, folder)
    print(json.dumps(found), flush=True)


def on_cluster(found: dict[str, Any], place: Any, ray: Any, folder: Path) -> None:
    """One cluster after the other, the last of which loses a node."""
    assert isinstance(place, RayCluster)
    for scheme in ("fedavg", "fedprox", "fedsgd", "semi-decentralised"):
        for rule in ("keep", "reset", "mix"):
            for factory in (mlp, tiny_conv):
                changes = {"scheme": scheme, "momentum_rule": rule}
                same = trained(factory, place, **changes) == trained(factory, None, **changes)
                found[f"{scheme}, {rule}, {factory.__name__}"] = same
    found["where"] = sorted(member.where for member in place.living)
    found["every worker dies"] = always(place)
    place.enlist()
    plain = dying(None, end_worker, folder / "never")
    found["a worker dies"] = dying(place, end_worker, folder / "worker") == plain
    found["workers after it"] = len(place.living)
    place.enlist()
    found["a node dies"] = dying(place, end_node, folder / "node") == plain
    alive = [node for node in ray.nodes() if node["Alive"]]
    found["nodes after it"], found["marks"] = (
        len(alive),
        sorted(path.name for path in folder.glob("*") if path.is_file()),
    )
    found["after a node died"] = trained(mlp, place) == trained(mlp, None)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
