"""Links of a user's own, around whatever the devices hold."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from d2dfl import Network, UserError, preset
from d2dfl.network.files import save_network
from d2dfl.network.links import Links, checked_table, checked_trust, links_file

CONFIG = preset("best").with_(**{"network.devices": 4, "network.partitions": 3, "network.trust": "full"})
COUNTS = np.array([[9.0, 0, 3], [0, 9, 3], [6, 6, 0], [0, 0, 0]])
DROP = np.array([[0, 0.1, 1.0, 0.2], [0.3, 0, 0.4, 0.5], [0.6, 0.7, 0, 0.8], [0.9, 0.25, 0.35, 0]])


def loss(network: Network, receiver: int, transmitter: int) -> float | None:
    (slot,) = np.nonzero(network.candidates[receiver] == transmitter)
    return float(network.drop[receiver, slot[0]]) if len(slot) else None


def test_a_table_is_receiver_first_and_a_loss_of_one_is_no_link() -> None:
    network = Links({"drop": DROP}).around(COUNTS, CONFIG, 0)
    assert loss(network, 0, 2) is None
    assert loss(network, 2, 0) == 0.6
    assert loss(network, 3, 1) == 0.25
    assert (network.counts == COUNTS).all()
    assert network.threshold[2].tolist() == [4.0] * 3
    assert network.trust[network.candidates >= 0].all()


def test_trust_is_receiver_first_too() -> None:
    trust = np.zeros((4, 4, 3), dtype=bool)
    trust[1, 0, 2] = True  # 0 lets 1 have its rows of class 2
    network = Links({"drop": DROP}, trust=checked_trust(trust)).around(COUNTS, CONFIG, 0)
    receiver, slot, partition = np.nonzero(network.trust)
    assert (receiver.tolist(), network.candidates[receiver, slot].tolist(), partition.tolist()) == ([1], [0], [2])
    flat = np.zeros((4, 4))
    flat[1, 0] = 1
    alike = Links(trust=checked_trust(flat)).around(COUNTS, CONFIG, 0)
    assert np.nonzero(alike.trust.any(axis=2))[0].tolist() == [1]
    assert alike.trust.sum() == 3


def test_without_links_the_network_is_generated() -> None:
    generated, plain = Links().around(COUNTS, CONFIG, 5), Network.around(COUNTS, CONFIG, 5)
    assert (generated.drop == plain.drop).all()
    assert (generated.trust == plain.trust).all()


def test_received_power_becomes_losses() -> None:
    power = np.full((4, 4), 0.3)
    network = Links({"rss": power}).around(COUNTS, CONFIG, 0)
    channel = CONFIG.channel
    expected = 1 - np.exp(-(2**channel.rate - 1) * channel.noise_power / 0.3)
    assert network.drop[network.candidates >= 0] == pytest.approx(expected)


def test_a_whole_network_around_other_counts_keeps_links_and_trust_alone() -> None:
    other = Network.generate(CONFIG.with_(**{"network.trust": "random:0.5"}), 3)
    network = Links(network=other).around(COUNTS, CONFIG, 0)
    assert (network.drop == other.drop).all()
    assert (network.trust == other.trust).all()
    assert network.threshold[0].tolist() == [4.0] * 3
    assert (
        Links(network=other, rule=True).around(COUNTS, CONFIG, 0).trust == (other.candidates >= 0)[:, :, None]
    ).all()
    mine = replace(other, threshold=np.full((4, 3), 2.0))
    assert (Links(network=mine).around(mine.counts, CONFIG, 0).threshold == 2.0).all()
    with pytest.raises(UserError, match="3 partitions and the data 2"):
        Links(network=other).around(COUNTS[:, :2], CONFIG, 0)


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_a_network_file_is_a_links_file(tmp_path: Path, suffix: str) -> None:
    network = replace(Network.generate(CONFIG, 3), threshold=np.full((4, 3), 2.0))
    path = tmp_path / f"network.{suffix}"
    save_network(network, path)
    links = links_file(path)
    assert links.devices == 4
    assert links.trusted
    same = links.around(network.counts, CONFIG, 0)
    assert (same.threshold == 2.0).all()
    assert same.drop[same.candidates >= 0].sum() == pytest.approx(network.drop[network.candidates >= 0].sum())
    assert (links.around(COUNTS, CONFIG, 0).threshold[0] == 4.0).all(), "thresholds were meant for other data"


def test_a_file_of_links_alone(tmp_path: Path) -> None:
    np.savez(tmp_path / "links.npz", drop=DROP, threshold=np.full((4, 3), 1.0))
    links = links_file(tmp_path / "links.npz")
    assert not links.trusted
    network = links.around(COUNTS, CONFIG, 0)
    assert (network.threshold == 1.0).all()
    assert loss(network, 1, 3) == 0.5


def test_what_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    files = {
        "both": ({"drop": DROP, "rss": DROP}, "holds drop and rss"),
        "neither": ({"positions": DROP}, "holds no links: give drop or rss"),
        "flat": ({"drop": DROP[0]}, "links of the shape"),
    }
    for name, (arrays, says) in files.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
        with pytest.raises(UserError, match=says):
            links_file(tmp_path / f"{name}.npz")
    (tmp_path / "ragged.json").write_text(json.dumps({"drop": [[0, 1], [0]]}))
    with pytest.raises(UserError, match="ragged.json: drop is not a regular array"):
        links_file(tmp_path / "ragged.json")
    np.savez(tmp_path / "dbm.npz", rss=np.full((4, 4), -70.0))
    with pytest.raises(UserError, match="dbm.npz: rss holds -70: give received power in a linear unit"):
        links_file(tmp_path / "dbm.npz").around(COUNTS, CONFIG, 0)
    with pytest.raises(UserError, match="links has 4 devices and the data 3"):
        Links({"drop": DROP}).around(COUNTS[:3], CONFIG, 0)
    with pytest.raises(UserError, match="trust has 5 devices and the data 4"):
        Links(trust=checked_trust(np.ones((5, 5)))).around(COUNTS, CONFIG, 0)
    with pytest.raises(UserError, match="trust has 2 partitions and the data 3"):
        Links(trust=checked_trust(np.ones((4, 4, 2)))).around(COUNTS, CONFIG, 0)
    with pytest.raises(UserError, match="trust holds values other than 0 and 1"):
        checked_trust(np.full((2, 2), 0.5))
    with pytest.raises(UserError, match=r"trust has the shape \(2, 3\): give \[receiver, transmitter\], or"):
        checked_trust(np.ones((2, 3)))
    with pytest.raises(UserError, match="links holds 1.5: give probabilities"):
        checked_table("links", [[0, 1.5], [0, 0]], 1.0, "give probabilities")
    with pytest.raises(UserError, match="links has the shape"):
        checked_table("links", [[0, 0.5, 1]], 1.0, "")
