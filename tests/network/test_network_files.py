"""Networks from arrays and files of one's own, and back."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_network import small

from d2dfl import Network, UserError
from d2dfl.network.clusters import dense
from d2dfl.network.files import load_network, save_network
from d2dfl.network.links import links_file


def test_trust_from_file(tmp_path: Path) -> None:
    file = tmp_path / "trust.npy"
    table = np.random.default_rng(0).integers(0, 2, (8, 8, 10))
    np.save(file, table)
    network = Network.generate(small(**{"network.trust": str(file)}), 0)
    assert (network.trust[2, 0] == table[2, network.candidates[2, 0]]).all()
    for bad in (table[:, :, :3], table * 2):
        np.save(file, bad)
        with pytest.raises(UserError):
            Network.generate(small(**{"network.trust": str(file)}), 0)
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError):  # never unpickled
        Network.generate(small(**{"network.trust": str(file)}), 0)


@pytest.mark.parametrize("suffix", ["npz", "json"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"channel.slots": 3}, {"network.devices": 1}, {"network.devices": 1100, "channel.slots": 4}],
)
def test_a_saved_network_comes_back(tmp_path: Path, suffix: str, changes: dict[str, object]) -> None:
    network = Network.generate(small(**changes), 4)
    network = replace(network, label_distance=np.ones((network.partitions, network.partitions)))
    file = tmp_path / f"net.{suffix}"
    save_network(network, file)
    again = load_network(file)
    assert (dense(again.candidates, again.drop, 1.0) == dense(network.candidates, network.drop, 1.0)).all()
    for name in ("counts", "threshold", "cluster", "budget", "positions", "label_distance"):
        assert (getattr(again, name) == getattr(network, name)).all()
    for receiver in range(min(network.devices, 8)):
        trusted = [
            dict(zip(one.candidates[receiver].tolist(), one.trust[receiver].tolist(), strict=True))
            for one in (network, again)
        ]
        assert trusted[0] == trusted[1]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_trust_in_a_file_that_does_not_say_its_order_is_refused(tmp_path: Path, suffix: str) -> None:
    """Files of earlier versions had the transmitter first: who may have what would be turned round silently."""
    file = tmp_path / f"net.{suffix}"

    def write(**changes: object) -> None:
        given = {name: np.asarray(value) for name, value in arrays(**changes).items()}
        if suffix == "npz":
            np.savez(file, **given)
        else:
            file.write_text(json.dumps({name: value.tolist() for name, value in given.items()}))

    write()
    for read in (load_network, links_file):
        with pytest.raises(UserError, match="does not say in which order: write format=2"):
            read(file)
    for bad in (1, 3, 2.0, [2, 2], True):
        write(format=bad)
        with pytest.raises(UserError, match="has the format"):
            load_network(file)
    believed = np.zeros((3, 3, 2))
    believed[0, 1, 1] = 1  # 1 lets 0 have its second partition
    write(format=2, trust=believed)
    for network in (load_network(file), links_file(file).around(np.ones((3, 2)), small(), 0)):
        receiver, slot, partition = (places.tolist() for places in np.nonzero(network.trust))
        assert (receiver, network.candidates[receiver, slot].tolist(), partition) == ([0], [1], [1])
    slots = {"candidates": [[1], [0], [0]], "trust": np.ones((3, 1, 2)), "drop": np.full((3, 1), 0.1)}
    write(**slots)  # slots always were the receiver's
    assert load_network(file).trust.all()


def arrays(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "counts": np.array([[10.0, 0], [0, 10], [5, 5]]),
        "threshold": np.full((3, 2), 4.0),
        "trust": np.ones((3, 3, 2)),
        "drop": np.full((3, 3), 0.1),
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not None}


def test_drop_and_trust_are_receiver_first() -> None:
    drop = np.full((3, 3), 0.1)
    drop[0, 1] = 0.4
    believed = np.zeros((3, 3, 2))
    believed[0, 1, 1] = 1
    network = Network.from_arrays(**arrays(drop=drop, trust=believed))
    assert network.drop[0].tolist() == [0.4, 0.1]
    assert network.drop[1].tolist() == [0.1, 0.1]
    assert network.trust[0].tolist() == [[False, True], [False, False]]
    assert not network.trust[1:].any()


def test_a_certain_loss_is_not_heard_and_the_diagonal_is_ignored() -> None:
    drop = np.full((3, 3), 0.1)
    drop[0, 1] = 1.0
    drop[1] = 1.0
    np.fill_diagonal(drop, np.nan)
    network = Network.from_arrays(**arrays(drop=drop))
    assert network.candidates.tolist() == [[2, -1], [-1, -1], [0, 1]]
    assert network.drop[0].tolist() == [0.1, 1.0]
    by_power = Network.from_arrays(**arrays(drop=None, rss=[[9, 0, 0.3], [0.3, 9, 0.3], [0.3, 0.3, 9]]))
    assert by_power.candidates[0].tolist() == [2, -1]


BAD = {
    "counts": [
        np.full((3, 2), -1.0),
        np.full((3, 2), np.nan),
        np.zeros(3),
        [[1, 2], [3]],
        "text",
        np.zeros((0, 2)),
    ],
    "threshold": [np.zeros((2, 2)), np.full((3, 2), -1.0), np.full((3, 2), np.inf)],
    "trust": [np.full((3, 3, 2), 0.5), np.ones((3, 2)), np.ones((3, 3, 3))],
    "drop": [
        np.full((3, 3), 1.5),
        np.full((3, 3), -0.1),
        np.zeros((2, 2)),
        np.array([[0, np.nan, 0], [0, 0, 0], [0, 0, 0]]),
        None,
    ],
    "rss": [np.ones((3, 3))],
    "positions": [np.zeros((3, 3)), np.full((3, 2), np.nan)],
    "cluster": [[0, 1], [0, 0, 2], [0.5, 0, 0]],
    "budget": [[1.0]],
    "label_distance": [np.zeros((3, 3)), -np.ones((2, 2)), [[0, 1], [2, 0]], [[0, np.nan], [np.nan, 0]]],
    "candidates": [[[0], [1], [2]], [[5], [0], [0]], [[1, 1], [0, 2], [0, 1]], [[1], [0]]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_arrays_are_named_in_one_sentence(name: str, value: object) -> None:
    with pytest.raises(UserError) as caught:
        Network.from_arrays(**arrays(**{name: value}))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    good = {name: np.asarray(value).tolist() for name, value in arrays().items()}
    for content in (
        "",
        "[1]",
        "{",
        json.dumps({**good, "surprise": 1}),
        json.dumps({"counts": good["counts"]}),
        "[" * 5000,
    ):
        file.write_text(content)
        with pytest.raises(UserError):
            load_network(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError):
        load_network(file)
    archive = tmp_path / "net.npz"
    archive.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(UserError):
        load_network(archive)
    np.savez(archive, **{**arrays(), "counts": np.array([{}], dtype=object)})
    with pytest.raises(UserError):
        load_network(archive)
    for missing in ("nothing.npz", "nothing.json", "net.txt"):
        with pytest.raises(UserError):
            load_network(tmp_path / missing)
    with pytest.raises(UserError):
        save_network(Network.from_arrays(**arrays()), tmp_path / "folder" / "net.npz")
    with pytest.raises(UserError):
        save_network(Network.from_arrays(**arrays()), tmp_path / "net.txt")
