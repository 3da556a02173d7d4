"""Features: what they forget, what they keep, and which inputs they are for."""

import numpy as np
import pytest

from d2dfl import UserError, preset
from d2dfl.data.datasets import load
from d2dfl.experiment.setting import setting_of
from d2dfl.partition.features import BINS, features_of, gradients, spectrum, suited
from d2dfl.partition.propagation import choose_labelled, pseudo_labels


def signals(number: int = 5, time: int = 64) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((number, 2, time)).astype(np.float32)


def test_spectra_forget_phase_time_carrier_and_power() -> None:
    one = signals()
    wave = one[:, 0] + 1j * one[:, 1]
    turned = 3.0 * np.roll(wave, 7, axis=1) * np.exp(1j * (0.4 + 2 * np.pi * 5 / 64 * np.arange(64)))
    other = np.stack([turned.real, turned.imag], axis=1).astype(np.float32)
    assert np.allclose(spectrum(one), spectrum(other), atol=1e-5)
    assert not np.allclose(spectrum(one[:2]), spectrum(one[2:4]), atol=1e-3)
    assert spectrum(one).shape == (5, 128)


def test_the_square_shows_a_carrier_that_a_modulation_hides() -> None:
    """Two phases: the spectrum is flat, that of the square is one line. Four phases: no line in either."""
    draws = np.random.default_rng(1)
    lines = []
    for phases in (2, 4):
        wave = np.exp(2j * np.pi * draws.integers(0, phases, 64) / phases)
        rows = spectrum(np.stack([wave.real, wave.imag])[None].astype(np.float32))
        lines.append((rows[0, 63], rows[0, 127]))  # the largest of each
    assert lines[0][1] > 0.99 > 0.6 > lines[0][0]
    assert max(lines[1]) < 0.6


def test_gradients_by_hand() -> None:
    """A ramp to the right has one direction everywhere, one downwards the direction across."""
    ramp = np.broadcast_to(np.arange(8.0, dtype=np.float32), (1, 1, 8, 8))
    right, down = (gradients(picture).reshape(3, 3, 4, BINS) for picture in (ramp, ramp.swapaxes(2, 3)))
    assert (right[..., 1:] == 0).all()
    assert (right[..., 0] > 0).all()
    middle = down.sum(axis=(0, 1, 2))
    assert set(np.flatnonzero(middle > 1e-6)) == {4, 5}  # 90 degrees of 180, between two of nine
    assert middle[4] == pytest.approx(middle[5], rel=1e-5)
    assert np.allclose((right**2).sum(axis=(2, 3)), 1.0, atol=1e-2)  # blocks of length 1
    assert np.allclose(gradients(ramp * 50 + 3), gradients(ramp), atol=1e-2)  # light and contrast are forgotten


def test_what_suits_and_what_does_not() -> None:
    assert [suited(shape) for shape in ((2, 128), (3, 32, 32), (1, 8, 8), (1, 4, 4), (13,))] == [
        "spectrum",
        "gradients",
        "gradients",
        "raw",
        "raw",
    ]
    assert (features_of("auto", signals()) == spectrum(signals())).all()
    assert features_of("raw", signals()).shape == (5, 128)
    with pytest.raises(UserError, match="spectrum is for signals"):
        features_of("spectrum", np.zeros((2, 1, 8, 8), dtype=np.float32))
    with pytest.raises(UserError, match="gradients is for pictures of 8 x 8"):
        features_of("gradients", signals())


@pytest.mark.parametrize("paradigm", ["semi", "unsupervised"])
def test_a_paradigm_projects_features(paradigm: str) -> None:
    config = preset("best", paradigm).with_(
        network__devices=4, data__samples=60, partition__components=6, partition__clusters=4, partition__features="auto"
    )
    setting = setting_of(config, 0, load("digits"))
    told = [message for message in setting.partitioning.messages if message.what == "mean"]
    assert told[0].values == 9 * 4 * BINS
    with pytest.raises(UserError, match=r"take partition.features=raw"):
        setting_of(config.with_(privacy__epsilon=1.0), 0, load("digits"))


def test_balanced_accuracy_counts_each_label_the_same() -> None:
    """Nine of one label and one of another, which is taken for the first: 0.9 right, half of the labels."""
    targets = np.array([0] * 11 + [1] * 2)
    places = np.concatenate([np.zeros((11, 1)), np.array([[9.0], [0.1]])])
    labelled = np.zeros(13, dtype=bool)
    labelled[[0, 1, 11]] = True
    found = pseudo_labels([places], targets, [np.arange(13)], 2, labelled=labelled, neighbours=1)
    assert found.accuracy[0] == pytest.approx(0.9)
    assert found.balanced[0] == pytest.approx(0.5)
    everything = choose_labelled(targets, [np.arange(13)], 1.0, 0)
    assert np.isnan(pseudo_labels([places], targets, [np.arange(13)], 2, labelled=everything).balanced[0])
