"""Channel, clusters, trust, thresholds, and networks of one's own."""

from pathlib import Path

import numpy as np
import pytest
from small_networks import small

from d2dfl import Network, UserError
from d2dfl.data.shares import label_shares, whole_parts
from d2dfl.network import channel, trust
from d2dfl.network.clusters import dense
from d2dfl.network.network import label_skewed_counts, thresholds
from networks import unreliable_pair


def test_drop_probability_at_the_papers_figures() -> None:
    assert np.allclose(channel.drop_probability([0.55, 0.05], 0.8, 0.02), [0.0266, 0.2566], atol=1e-4)
    assert channel.drop_probability(0.0, 0.8, 0.02) == 1.0


@pytest.mark.parametrize("kind", ["path-loss", "gaussian", "physical", "harsh"])
def test_channels_give_probabilities(kind: str) -> None:
    network = Network.generate(small(**{"channel.kind": kind, "network.devices": 30, "channel.shadowing_db": 4.0}), 2)
    assert ((network.drop >= 0) & (network.drop <= 1)).all()
    assert network.drop.std() > 0
    if kind in ("path-loss", "gaussian"):
        assert network.drop.min() >= 0.0265
        assert network.drop.max() <= 0.2567


def test_path_loss_falls_with_distance() -> None:
    network = Network.generate(small(), 0)
    distance = np.linalg.norm(network.positions[network.candidates] - network.positions[:, None], axis=2)
    order = distance.argsort(axis=1)
    assert (np.diff(np.take_along_axis(network.drop, order, axis=1), axis=1) >= 0).all()


def test_physical_units_by_hand() -> None:
    config = small(**{"channel.kind": "physical", "channel.noise_figure_db": 0.0}).channel
    power = channel.received_power(
        np.array([[0.0, 0.0], [100.0, 0.0]]), np.array([[1], [0]], dtype=np.int32), config, 0
    )
    # Friis at 2.4 GHz, 10 dBm, 100 m: 10 - 80.05 dB = -70.05 dBm
    assert np.allclose(10 * np.log10(power) + 30, -70.05, atol=0.01)
    assert np.isclose(10 * np.log10(channel.noise_power(config)) + 30, -113.98, atol=0.01)  # kTB at 1 MHz


def test_a_table_that_the_channel_does_not_read_is_refused(tmp_path: Path) -> None:
    """It had no effect, and nobody was told."""
    with pytest.raises(UserError, match=r"channel\.file names rss\.csv, which channel\.kind=path-loss does not read"):
        Network.generate(small(**{"channel.file": "rss.csv"}), 0)


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "rss.csv"
    table = np.random.default_rng(0).uniform(0.1, 0.5, (8, 8))
    np.savetxt(file, table, delimiter=",")
    network = Network.generate(small(**{"channel.kind": "csv", "channel.file": str(file)}), 0)
    assert np.allclose(dense(network.candidates, network.rss, 0.0)[0, 1:], table[0, 1:])
    for bad in ("1,2\n3\n", "1,x\n2,3\n", "1,2,3\n4,5,6\n", "1,-2\n3,4\n"):
        file.write_text(bad)
        with pytest.raises(UserError):
            channel.read_csv(file)
    with pytest.raises(UserError, match="there is no file"):
        channel.read_csv(tmp_path / "missing.csv")


def test_quantised_levels() -> None:
    config = small(**{"channel.levels": 5}).channel
    assert channel.quantise([0.05, 0.149, 0.151, 0.55, 0.9, 0.0], config).tolist() == [0, 0, 1, 4, 4, 0]


def test_one_power_for_all_is_one_level_and_limits_are_in_order() -> None:
    one = small(**{"channel.lowest": 0.3, "channel.highest": 0.3, "channel.dynamic": True})
    assert channel.quantise([0.3, 0.1], one.channel).tolist() == [0, 0]
    assert (Network.generate(one, 0).rss == 0.3).all()
    with pytest.raises(UserError, match="channel.lowest"):
        Network.generate(small(**{"channel.lowest": 0.9}), 0)


def test_the_second_number_of_the_normal_distribution_has_two_readings() -> None:
    wide = {"channel.kind": "gaussian", "channel.mean": 5.0, "channel.highest": 10.0, "network.devices": 60}
    for rule, deviation in (("deviation", 0.1), ("variance", 0.1**0.5)):
        network = Network.generate(small(**wide, **{"channel.deviation_rule": rule}), 0)
        assert network.rss[network.candidates >= 0].std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("devices", [2, 25, 60])
@pytest.mark.parametrize("reliability", [0.0, 0.04, 0.08, 1.0])
def test_every_pair_inside_a_cluster_is_reliable(devices: int, reliability: float) -> None:
    network = Network.generate(
        small(**{"network.devices": devices, "channel.reliability": reliability, "channel.shadowing_db": 3.0}),
        1,
    )
    assert unreliable_pair(network, network.cluster, reliability) is None
    worst = np.maximum(dense(network.candidates, network.drop, 1.0), dense(network.candidates, network.drop, 1.0).T)
    for group in range(len(network.budget)):
        members = np.nonzero(network.cluster == group)[0]
        pairs = worst[np.ix_(members, members)][~np.eye(len(members), dtype=bool)]
        assert (pairs <= reliability).all()


def test_large_networks_grow_clusters_greedily_and_keep_the_promise() -> None:
    network = Network.generate(small(**{"network.devices": 2500, "channel.slots": 16}), 0)
    assert network.slots == 16
    assert unreliable_pair(network, network.cluster, 0.05) is None
    assert len(network.budget) < 2000  # it does put devices together
    assert network.candidates.min() >= 0
    assert (network.candidates != np.arange(2500)[:, None]).all()


def test_unreliable_pair_is_found() -> None:
    network = Network.generate(small(), 0)
    assert unreliable_pair(network, np.zeros(8, dtype=np.int32), 0.03) is not None


def test_devices_on_one_spot_do_not_hear_themselves() -> None:
    near = channel.hear(np.zeros((50, 2)), 5)
    assert (near != np.arange(50)[:, None]).all()


def test_trust_rules() -> None:
    candidates = channel.hear(np.random.default_rng(0).random((30, 2)), 0)
    make = {
        rule: trust.make(rule, candidates, 10, 3)
        for rule in ("random:0.5", "rows:0.5", "columns:0.5", "block:1", "full", "none", "random:0")
    }
    assert abs(make["random:0.5"].mean() - 0.5) < 0.03
    assert make["full"].all()
    assert not make["none"].any()
    assert not make["random:0"].any()
    closed_rows = ~make["rows:0.5"].any(axis=2)
    assert abs(closed_rows.mean() - 0.5) < 0.06
    assert abs(make["rows:0.5"][~closed_rows].mean() - 0.5) < 0.03  # R27: the rest keeps its density
    table = np.zeros((30, 30, 10), dtype=bool)
    table[candidates, np.arange(30)[:, None]] = make["columns:0.5"]
    assert (table.any(axis=1).sum(axis=1) == 5).all()  # each transmitter closes exactly half of its columns
    widths = make["block:1"].sum(axis=2)
    assert widths.max() <= 4
    assert (widths >= 1).mean() > 0.9
    for bad in ("nope", "random:x", "random:2", "rows:-1", "insecure:1.1", "missing.npy"):
        with pytest.raises(UserError):
            trust.make(bad, candidates, 10, 0)


@pytest.mark.parametrize("rule", ["block", "rows:0.5", "columns:0.5", "insecure:0.5"])
def test_what_structure_leaves_open_keeps_the_density_of_the_random_rule(rule: str) -> None:
    """R27: or rules would differ by how much they trust as well as by where."""
    candidates = channel.hear(np.random.default_rng(0).random((60, 2)), 0)
    found = trust.make(rule, candidates, 10, 3)
    table = np.zeros((60, 60, 10), dtype=bool)
    table[candidates, np.arange(60)[:, None]] = found  # [transmitter, receiver, partition]
    others = ~np.eye(60, dtype=bool)[:, :, None]
    left_open = {
        "block": np.zeros_like(table),
        "rows:0.5": table.any(axis=2, keepdims=True),
        "columns:0.5": table.any(axis=1, keepdims=True),
        "insecure:0.5": table.any(axis=(0, 2))[None, :, None],
    }[rule]
    if rule == "block":  # where its blocks lie
        left_open[candidates, np.arange(60)[:, None]] = trust.make("block:1", candidates, 10, 3)
    assert not (table & ~left_open).any()
    assert table[np.broadcast_to(left_open & others, table.shape)].mean() == pytest.approx(0.5, abs=0.02)


def test_insecure_receivers_are_closed_by_everybody() -> None:
    """Section III, R46: a row of zeros in every transmitter's matrix, at the same receivers."""
    candidates = channel.hear(np.random.default_rng(0).random((30, 2)), 0)
    closed = ~trust.make("insecure:0.4", candidates, 10, 3).any(axis=2)  # [receiver, slot]
    assert closed.all(axis=1).sum() == 12
    assert closed[~closed.all(axis=1)].mean() < 0.01
    other = ~trust.make("insecure:0.4", candidates, 10, 4).any(axis=2)
    assert (other.all(axis=1) != closed.all(axis=1)).any()


def test_counts_are_exact() -> None:
    assert label_shares(3).tolist() == [0.7, pytest.approx(0.2), pytest.approx(0.1)]
    assert whole_parts(10, np.array([1 / 3, 1 / 3, 1 / 3])).tolist() == [4, 3, 3]
    counts = label_skewed_counts(40, 10, 3, 1200, 0)
    assert (np.sort(counts, axis=1)[:, -3:] == [120, 240, 840]).all()
    assert ((counts > 0).sum(axis=1) == 3).all()
    assert (label_skewed_counts(40, 10, 1, 7, 0).max(axis=1) == 7).all()
    with pytest.raises(UserError, match="only 2 partitions"):
        label_skewed_counts(4, 2, 3, 10, 0)
    assert (thresholds(counts, "iid") == 120).all()
    assert (thresholds(counts, "0.05") == 60).all()
    for bad in ("x", "-1", "2", "nan"):
        with pytest.raises(UserError, match="network.threshold"):
            thresholds(counts, bad)
