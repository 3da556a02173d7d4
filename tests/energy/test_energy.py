"""Joules: radios and charges by hand, and the ledger of whole runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from d2dfl import Config, Network, UserError, preset
from d2dfl.config import EnergyConfig
from d2dfl.discovery.methods import IID
from d2dfl.energy.ledger import Ledger, Meter
from d2dfl.energy.purposes import BEFORE, PURPOSES, TRAINING
from d2dfl.energy.radios import RADIOS, radio_of
from d2dfl.experiment.cells.values import energy
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.pipeline import PreparedCell, federated, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation import Curves, FederationConfig, train
from d2dfl.federation.models import mlp

torch.set_num_threads(1)

# 0-1: 30 m, 0-2: 40 m, 1-2: 50 m. Mean 40 m, so the server is 120 m away.
POSITIONS = np.array([[0.0, 0], [30, 0], [0, 40]])
UP_J, DOWN_J = 1.49e-6, 50e-9  # a bit to the server: 50e-9 + 100e-12 * 120**2, and from it


def three(drop: object = 0.0) -> Network:
    loss = np.broadcast_to(np.asarray(drop, dtype=float), (3, 3))
    return Network.from_arrays(
        counts=np.ones((3, 1)), threshold=np.ones((3, 1)), trust=np.ones((3, 3, 1)), drop=loss, positions=POSITIONS
    )


def small(**changes: object) -> Config:
    base = {
        "network.devices": 3,
        "data.samples": 40,
        "data.allocation": "labels:2",
        "network.trust": "full",
        "marginal.messages": 50,
        "partition.components": 4,
        "partition.clusters": 4,
    }
    return preset("best").with_(**{**base, **changes})


def ready(method: str, **changes: object) -> PreparedCell:
    config = small(**changes)
    setting = setting_of(config, 0, data_set(config, 0))
    item = prepare(config, setting, method)
    return replace(item, setting=replace(setting, network=replace(setting.network, positions=POSITIONS)))


def test_first_order_by_hand() -> None:
    radio = RADIOS["first-order"]
    assert radio.send_j(1000, 10) == pytest.approx(6e-5)  # 1000 * (50e-9 + 100e-12 * 100)
    assert radio.receive_j(1000, 10) == pytest.approx(5e-5)  # 1000 * 50e-9


def test_two_slope_by_hand() -> None:
    radio = RADIOS["two-slope"]
    assert radio.send_j(1000, 50) == pytest.approx(7.5e-5)  # 1000 * (50e-9 + 10e-12 * 2500)
    assert radio.send_j(1000, 100) == pytest.approx(1.8e-4)  # 1000 * (50e-9 + 0.0013e-12 * 1e8)
    assert radio.receive_j(1000, 100) == pytest.approx(5e-5)
    crossover_m = (10 / 0.0013) ** 0.5  # 87.7
    assert radio.send_j(1, crossover_m - 1e-9) == pytest.approx(radio.send_j(1, crossover_m + 1e-9))


def test_shannon_by_hand() -> None:
    # 100 m: loss 40 + 30 * 2 = 100 dB, so 20 - 100 = -80 dBm arrive; noise -168 + 60 = -108 dBm: 28 dB, 630.96.
    # log2(631.96) = 9.3037 Mbit/s: (0.1 + 0.1) W / 9.3037e6 = 21.497 nJ, 0.1 / 9.3037e6 = 10.748 nJ.
    assert RADIOS["shannon"].send_j(1, 100) == pytest.approx(21.497e-9, rel=1e-4)
    assert RADIOS["shannon"].receive_j(1, 100) == pytest.approx(10.748e-9, rel=1e-4)
    # Signal 30 W / 10 m, noise 1e-6 W/Hz * 1 MHz: ratio 3, 2 bit/s/Hz. A megabit takes 0.5 s at 30.5 W and 0.5 W.
    constants = EnergyConfig(
        transmit_power_w=30, circuit_power_w=0.5, noise_dbm_hz=-30, loss_at_1_m_db=0, loss_exponent=1
    )
    radio = radio_of(constants, "shannon")
    assert radio.send_j(1e6, 10) == pytest.approx(15.25)
    assert radio.receive_j(1e6, 10) == pytest.approx(0.25)
    assert radio.send_j(1e6, 0) == radio.send_j(1e6, 1), "nobody is nearer than a metre"


def test_fixed_power_by_hand() -> None:
    for metres in (1, 1000):
        assert RADIOS["fixed-power"].send_j(1000, metres) == pytest.approx(2e-4)  # 0.2 W for a millisecond
        assert RADIOS["fixed-power"].receive_j(1000, metres) == pytest.approx(1e-4)


@pytest.mark.parametrize("name", RADIOS)
def test_what_all_radios_have_in_common(name: str) -> None:
    radio, metres = RADIOS[name], np.array([0.0, 1, 10, 87, 88, 500, 1e5])
    for spent in (radio.send_j(7.0, metres), radio.receive_j(7.0, metres) + 0 * metres):
        assert (spent > 0).all()
        assert np.isfinite(spent).all()
        assert (np.diff(spent) >= 0).all(), "further is not cheaper"
    assert radio.send_j(np.array([0.0, 14.0]), 30.0) == pytest.approx([0, 2 * float(radio.send_j(7.0, 30.0))])
    assert (radio.send_j(1.0, metres) >= radio.receive_j(1.0, metres)).all()


def test_each_end_pays_for_itself_over_the_true_distance() -> None:
    meter = Meter.of(three(), EnergyConfig())
    spent = meter.between_j(np.array([0, 0, 2]), np.array([1, 2, 1]), np.array([1000.0, 10.0, 1.0]))
    # 0 sends 1000 bits over 30 m (140 nJ) and 10 over 40 m (210 nJ); 1 hears 1001; 2 hears 10, sends 1 over 50 m (300 nJ)
    assert spent == pytest.approx([142.1e-6, 50.05e-6, 0.8e-6])
    assert meter.up_j(np.array([0.0, 1, 2])) == pytest.approx([0, UP_J, 2 * UP_J])
    assert meter.down_j(np.array([0.0, 1, 2])) == pytest.approx([0, DOWN_J, 2 * DOWN_J])
    nearer = Meter.of(three(), EnergyConfig(server_factor=1.0))
    assert nearer.up_j(np.ones(3)) == pytest.approx(210e-9)  # 50e-9 + 100e-12 * 40**2


def test_control_messages_are_sent_until_they_arrive() -> None:
    drop = [[0, 0.5, 0.2], [0, 0, 0.5], [0, 1, 0]]  # [receiver, transmitter]; 2 does not hear 1
    meter = Meter.of(three(drop), EnergyConfig())
    # Both ends of a bit: 190, 260, 350 nJ over 30, 40, 50 m. Device 0: half its share to 1, where questions
    # are sent 4 times and answers twice, half to 2, 1.5625 and 1.25 times: (3 * 190 + 1.40625 * 260) / 2. Device 1: (190 + 3 * 350) / 2.
    # Device 2 has one link: 260.
    assert meter.talk_j(3000.0) == pytest.approx([467.8125e-6, 620e-6, 260e-6])
    deaf = Meter.of(three([[0, 0, 1], [0, 0, 1], [1, 1, 0]]), EnergyConfig())
    assert deaf.talk_j(2000.0) == pytest.approx([190e-6, 190e-6, 0]), "who has no link says nothing"
    hopeless = Meter.of(three(1 - 1e-12), EnergyConfig())
    assert hopeless.talk_j(3.0)[0] == pytest.approx(100 * 225e-9), "and gives up after 100 times"


def test_distances_of_a_network_without_positions_are_alike() -> None:
    meter = Meter.of(replace(three(), positions=None), EnergyConfig())
    # 100 m: 50e-9 + 100e-12 * 100**2 = 1.05e-6; the server at 300 m: 9.05e-6
    assert meter.between_j(np.array([0]), np.array([2]), np.ones(1)) == pytest.approx([1.05e-6, 0, 50e-9])
    assert meter.up_j(np.ones(3)) == pytest.approx(9.05e-6)


def test_models_are_charged_round_by_round() -> None:
    item = ready("none")
    # 10 parameters of 32 bits. Round 1: 0 and 2 upload, everybody downloads. Round 2: 0 -> 1 twice, 2 -> 1 once.
    curves = Curves(
        uploads=[[1, 0, 1], [0, 0, 0]], downloads=[[1, 1, 1], [0, 0, 0]], links=[[], [(0, 1, 2), (2, 1, 1)]]
    )
    book = energy(item, curves, 10)
    up, down = 320 * UP_J, 320 * DOWN_J
    assert book.rounds_j[0] == pytest.approx(np.array([[up, down, 0], [0, down, 0], [up, down, 0]]))
    between = [640 * 140e-9, 960 * 50e-9, 320 * 300e-9]  # 30 m, listening to three models, 50 m
    assert book.rounds_j[1] == pytest.approx(np.array([[0, 0, joules] for joules in between]))
    assert book.until(0) == 0, "with all labels known, no exchange costs nothing before training"
    assert book.until(1) == pytest.approx(2 * up + 3 * down)
    assert book.until(2) == book.until() == pytest.approx(2 * up + 3 * down + sum(between))
    half = energy(ready("none", **{"energy.parameter_bits": 16}), curves, 10)
    assert half.until() == pytest.approx(book.until() / 2)


def test_every_attempt_of_a_datapoint_is_charged() -> None:
    item = ready("uniform", **{"exchange.attempts": 3, "channel.kind": "harsh"})
    assert item.exchanged is not None
    assert sum(transfer.transmissions for transfer in item.exchanged.transfers) > item.exchanged.moved > 0
    bits = 8 * (64 + 1)  # 8 x 8 pixels and a label
    expected = np.zeros(3)
    for transfer in item.exchanged.transfers:
        gap = POSITIONS[transfer.transmitter] - POSITIONS[transfer.receiver]
        expected[transfer.transmitter] += transfer.transmissions * bits * (50e-9 + 100e-12 * (gap @ gap))
        expected[transfer.receiver] += transfer.transmissions * bits * 50e-9
    assert energy(item, Curves(), 10).before_j[:, BEFORE.index("datapoints")] == pytest.approx(expected)


@pytest.mark.parametrize("paradigm", ["supervised", "semi", "unsupervised"])
@pytest.mark.parametrize("method", ["none", IID])
def test_without_an_exchange_only_partitioning_costs_before_training(paradigm: str, method: str) -> None:
    spent = energy(ready(method, **{"partition.paradigm": paradigm}), Curves(), 10).by_purpose()
    assert list(spent) == list(PURPOSES)
    assert [name for name, joules in spent.items() if joules] == ([] if paradigm == "supervised" else ["partition"])


def test_partitioning_goes_through_the_server() -> None:
    item = ready("none", **{"partition.paradigm": "semi"})
    # up: sum and count (65), 4 components of 64; down: mean and 4 components. 32 bits each.
    expected = 32 * ((65 + 256) * UP_J + (64 + 256) * DOWN_J)
    assert energy(item, Curves(), 10).before_j[:, 0] == pytest.approx(expected)


@pytest.mark.parametrize("radio", RADIOS)
def test_a_learner_pays_for_its_messages(radio: str) -> None:
    item = ready("marginal")
    assert item.discovery is not None
    spent = energy(item, Curves(), 10, radio)
    meter = Meter.of(item.setting.network, EnergyConfig(), radio)
    assert spent.before_j[:, 1] == pytest.approx(meter.talk_j(item.discovery.message_bits))
    assert (spent.before_j[:, 1] > 0).all()
    chosen = ready("marginal", **{"energy.radio": radio})
    assert energy(chosen, Curves(), 10).until() == spent.until(), "the configuration's radio is the default"


@pytest.mark.parametrize("scheme", ["fedavg", "fedsgd", "decentralised", "semi-decentralised"])
def test_the_ledger_of_a_training_with_a_straggler(scheme: str) -> None:
    item = ready("closest", **{"partition.paradigm": "semi"})
    settings = FederationConfig(scheme=scheme, rounds=3, interval=2, subset=3, stragglers=1)
    curves = train(mlp, federated(item.setting.config, item, data_set(item.setting.config, 0)), settings)
    up, down, between = energy(item, curves, 100).rounds_j.sum(axis=0).T
    straggler = int(
        np.argmin(np.sum(curves.uploads, axis=0) + np.bincount([s for s, *_ in curves.links[0]], minlength=3))
    )
    bits = 3200
    if scheme in ("fedavg", "fedsgd"):
        assert up == pytest.approx([0 if device == straggler else 3 * bits * UP_J for device in range(3)])
        assert down == pytest.approx(3 * bits * DOWN_J)
        assert not between.any()
    else:
        # All three are neighbours, and one subset: the straggler hears two models and sends none, the others send
        # theirs to two and hear one; once a round, in the semi-decentralised scheme 4 times.
        times = 3 if scheme == "decentralised" else 12
        one, other = (device for device in range(3) if device != straggler)
        squares = {frozenset((0, 1)): 900, frozenset((0, 2)): 1600, frozenset((1, 2)): 2500}
        to_both = [
            2 * 50e-9 + 100e-12 * sum(squares[frozenset((device, to))] for to in range(3) if to != device)
            for device in (one, other)
        ]
        assert between[straggler] == pytest.approx(times * bits * 2 * 50e-9)
        assert between[[one, other]] == pytest.approx([times * bits * (joules + 50e-9) for joules in to_both])
        assert up.sum() == pytest.approx(0 if scheme == "decentralised" else 3 * bits * UP_J)
        assert up[straggler] == 0
        assert down == pytest.approx(0 if scheme == "decentralised" else 3 * bits * DOWN_J)


@given(
    before=arrays(float, (4, len(BEFORE)), elements=st.floats(0, 10)),
    rounds=arrays(float, st.tuples(st.integers(0, 5), st.just(4), st.just(len(TRAINING))), elements=st.floats(0, 10)),
)
def test_all_sums_agree(before: np.ndarray, rounds: np.ndarray) -> None:
    book = Ledger(before, rounds)
    course = [book.until(done) for done in range(len(rounds) + 1)]
    assert course == sorted(course)
    assert course[0] == pytest.approx(before.sum())
    assert course[-1] == book.until() == pytest.approx(before.sum() + rounds.sum())
    for done in (0, len(rounds), None):
        assert sum(book.by_purpose(done).values()) == pytest.approx(book.by_device(done).sum())
        assert book.by_device(done).sum() == pytest.approx(book.until() if done is None else course[done])
    for wrong in (-1, len(rounds) + 1):
        with pytest.raises(UserError, match="the ledger has"):
            book.until(wrong)


def test_wrong_settings_are_found_before_anything_is_trained() -> None:
    with pytest.raises(UserError, match="the radios are first-order, two-slope, shannon, fixed-power"):
        ready("none", **{"energy.radio": "steam"})
    with pytest.raises(UserError, match="the radios are"):
        energy(ready("none"), Curves(), 10, "steam")
    for text in ("energy.value_bits=0", "energy.multipath_pj_bit_m4=0", "energy.server_factor=-1"):
        with pytest.raises(UserError, match="cannot be"):
            Config().with_texts([text])
