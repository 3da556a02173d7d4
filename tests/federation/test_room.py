"""Rows that do not fit into memory live in a file, and the numbers are the same."""

from pathlib import Path
from typing import Any

import pytest
import torch
from federations import FAST, federation, tiny

from d2dfl import UserError
from d2dfl.federation import IN_MEMORY, FederationConfig, Room, State, room_for, start, train
from d2dfl.federation.models import mlp

GIB = float(1 << 30)


def in_a_file(rows: torch.Tensor, folder: Path) -> bool:
    """Whether rows lie in a file of this folder: what the system says of their addresses."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= rows.data_ptr() < last:
            return str(folder) in line
    return False


@pytest.mark.parametrize(("scheme", "rule"), [("decentralised", "mix"), ("fedavg", "keep"), ("decentralised", "keep")])
def test_rows_in_a_file_give_the_same_bits(tmp_path: Path, scheme: str, rule: Any) -> None:
    data = federation()
    settings = FederationConfig(**{**FAST, "rounds": 4}, scheme=scheme, momentum_rule=rule)
    plain = start(tiny, data, settings)
    train(tiny, data, settings, state=plain)
    room = Room(tmp_path)
    filed = start(tiny, data, settings, room=room)
    assert in_a_file(filed.memory["momentum"], tmp_path)
    assert not in_a_file(plain.memory["momentum"], tmp_path)
    train(tiny, data, FederationConfig(**{**FAST, "rounds": 2}, scheme=scheme, momentum_rule=rule), state=filed)
    filed.save(tmp_path / "state")
    again = State.load(tmp_path / "state", room=room)  # and a run that was cut goes on in a file
    assert in_a_file(again.memory["momentum"], tmp_path)
    train(tiny, data, settings, state=again)
    assert torch.equal(plain.params, again.params)
    assert torch.equal(plain.memory["momentum"], again.memory["momentum"])
    assert plain.curves == again.curves
    assert [path.name for path in tmp_path.iterdir()] == ["state"], "the file of rows has no name"


def test_where_rows_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = 250_000  # a row is a megabyte
    keep, reset = FederationConfig(), FederationConfig(momentum_rule="reset")
    alone = FederationConfig(scheme="decentralised", momentum_rule="reset")
    monkeypatch.setattr("d2dfl.memory.free_bytes", lambda: 4 * GIB)
    disk = [100 * GIB]
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": disk[0]}))
    assert room_for(parameters, 100_000_000, reset) == IN_MEMORY, "one model, whatever the number of devices"
    assert room_for(parameters, 2000, keep, tmp_path) == IN_MEMORY
    filed = room_for(parameters, 10_000, keep, tmp_path)
    assert filed.folder == tmp_path
    assert filed.sentence == (
        "10,000 devices that keep a momentum of 250,000 parameters each need 9.3 GiB, of which 4.0 are free in memory: "
        f"they are kept in a file in {tmp_path}"
    )
    disk[0] = 20 * GIB
    with pytest.raises(
        UserError, match=r"need 9.3 GiB of memory, of which 4.0 are free, and with checkpoints 28 of 20 on"
    ):
        room_for(parameters, 10_000, keep, tmp_path)
    with pytest.raises(UserError, match="keep a model of 250,000 parameters .* or a scheme with a server"):
        room_for(parameters, 10_000, alone)
    with pytest.raises(UserError, match="a model and a momentum .* set federation.momentum_rule=reset, take fewer"):
        room_for(parameters, 10_000, FederationConfig(scheme="decentralised"))
    assert room_for(parameters, 3000, keep) == IN_MEMORY, "without a folder all that is free"


def test_rows_in_memory_need_a_disk_for_their_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, keep = 250_000, FederationConfig()
    monkeypatch.setattr("d2dfl.memory.free_bytes", lambda: 40 * GIB)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 15 * GIB}))
    assert room_for(parameters, 8_000, keep, tmp_path) == IN_MEMORY
    assert room_for(parameters, 10_000, keep) == IN_MEMORY, "nothing is saved"
    with pytest.raises(
        UserError, match=r"need 9.3 GiB of memory, and on the disk 19 for checkpoints, of which 15 are free: set "
    ):
        room_for(parameters, 10_000, keep, tmp_path)
    saved = 9_310_000_000  # a run that was cut left a checkpoint there, which the next but one replaces
    assert room_for(parameters, 10_000, keep, tmp_path, saved) == IN_MEMORY


def test_rows_that_nobody_writes_take_no_place(tmp_path: Path) -> None:
    """A terabyte of rows, of which one is written."""
    rows = Room(tmp_path).rows(1 << 20, 1 << 18)
    rows[12345] = 1.0
    assert float(rows[12345].sum()) == 1 << 18
    assert not list(tmp_path.iterdir())


def test_a_start_checks_nothing_itself_and_takes_the_room() -> None:
    state = start(mlp, federation(), FederationConfig(**FAST))
    assert state.params.shape[0] == 1
    assert len(state.memory["momentum"]) == 5
