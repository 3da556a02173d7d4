"""Folders of devices as the commands make them, for tests."""

import json
from pathlib import Path

import numpy as np
import pytest

from calling import call
from d2dfl.peer.home import Home
from d2dfl.peer.transports.zenoh import free_ports


def shard(folder: Path, start: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "one.npz", inputs=np.arange(12.0).reshape(6, 2) + start, targets=np.array([0, 1, 2, 0, 1, 2]))


def device(monkeypatch: pytest.MonkeyPatch, name: str, port: int) -> Home:
    """A device that was approved and has joined."""
    home = Path(name)
    shard(home / "data")
    init = ["peer", "init", "--name", name, "--data", "data", "--labels", "cat,dog,fox", "--home", name]
    assert call(monkeypatch, *init, "--listen", f"127.0.0.1:{port}") == 0
    print_ = Home(home).key().fingerprint.hex()
    assert call(monkeypatch, "fleet", "approve", f"{name}/{name}.request", "--fingerprint", print_[:12]) == 0
    assert call(monkeypatch, "peer", "join", f"fleet/{name}.admission", "--home", name) == 0
    return Home(home)


def grant(home: Home, to: Home, labels: str = '["cat", "dog"]', number: int = 100) -> None:
    text = f'[[grant]]\nto = "{to.key().fingerprint.hex()}"\nlabels = {labels}\nnumber = {number}\nuntil = 2099-01-01\n'
    (home.folder / "policy.toml").write_text(text)


def write_graph(amounts: list[list[float]], edges: list[list[int]]) -> None:
    Path("graph.json").write_text(json.dumps({"edges": edges, "expected_datapoints": amounts}))


def broken(monkeypatch: pytest.MonkeyPatch) -> Home:
    home = device(monkeypatch, "kitchen", *free_ports(1))
    write_graph([], [])
    return home
