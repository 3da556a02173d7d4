"""Generated radio signals: the constellations, the channel and the set as a whole (R40)."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from d2dfl.data import radio, waveforms
from d2dfl.data.readers import MODULATIONS
from d2dfl.errors import UserError
from d2dfl.rng import stream

LINEAR = {"BPSK": 2, "QPSK": 4, "8PSK": 8, "PAM4": 4, "QAM16": 16, "QAM64": 64}


@pytest.fixture
def rng() -> np.random.Generator:
    return stream(0, "test")


@pytest.mark.parametrize("name", LINEAR)
def test_a_matched_filter_finds_the_constellation(name: str, rng: np.random.Generator) -> None:
    points = waveforms.constellation(name)
    assert len(points) == LINEAR[name]
    assert np.mean(np.abs(points) ** 2) == pytest.approx(1)
    signal = waveforms.waveform(name, 4, 2048, rng)
    pulse = waveforms.root_raised_cosine()
    # The matched filter is the pulse backwards in time; its peaks are whole symbols apart.
    matched = np.array([np.convolve(row, np.append(pulse, 0)[::-1], mode="valid") for row in signal]) / waveforms.SYMBOL
    received = matched[:, :: waveforms.SYMBOL].ravel()
    distance = np.abs(received[:, None] - points)
    assert distance.min(axis=1).max() < 0.03
    assert set(distance.argmin(axis=1)) == set(range(len(points)))


def test_the_root_raised_cosine_has_unit_energy_and_no_interference() -> None:
    pulse = waveforms.root_raised_cosine()
    both = np.convolve(pulse, pulse) / waveforms.SYMBOL
    at_symbols = both[:: waveforms.SYMBOL]
    middle = int(np.argmax(both)) // waveforms.SYMBOL
    assert at_symbols[middle] == pytest.approx(1, abs=0.01)
    assert np.abs(np.delete(at_symbols, middle)).max() < 0.01


def test_frequency_shift_keying_turns_by_the_right_angle(rng: np.random.Generator) -> None:
    phase = np.unwrap(np.angle(waveforms.waveform("CPFSK", 3, 800, rng)), axis=1)
    steps = np.diff(phase[:, 7 :: waveforms.SYMBOL], axis=1)
    np.testing.assert_allclose(np.abs(steps), np.pi / 2, atol=1e-3)  # index 0.5: a quarter turn a symbol
    turn = np.diff(np.unwrap(np.angle(waveforms.waveform("GFSK", 3, 800, rng)), axis=1), axis=1)
    assert np.abs(turn).max() <= 0.1 + 1e-4
    assert np.abs(turn).max() > 0.095
    assert waveforms.gaussian_pulse().sum() == pytest.approx(waveforms.SYMBOL)


def test_analogue_classes(rng: np.random.Generator) -> None:
    sound = waveforms.speech(300, 256, 200e3, rng)
    assert np.abs(sound.real).max() <= waveforms.LOUDEST + 1e-6
    double = waveforms.waveform("AM-DSB", 50, 256, rng)
    assert np.all(double.imag == 0)
    assert np.all(double.real > 0)
    np.testing.assert_allclose(np.abs(waveforms.waveform("WBFM", 50, 256, rng)), 1, atol=1e-5)
    assert np.all(waveforms.waveform("AM-SSB", 5, 256, rng) == 0)
    single = waveforms.waveform("AM-SSB", 300, 2000, rng, mended=True) - 1
    spectrum = np.abs(np.fft.fft(single * np.hanning(2000), axis=1)) ** 2
    assert spectrum[:, 20:1000].sum() > 100 * spectrum[:, 1000:1980].sum()  # one sideband


def test_interpolation_is_exact_on_a_slow_wave(rng: np.random.Generator) -> None:
    weights = radio._interpolator()
    time = np.arange(radio.KERNEL) - (radio.KERNEL // 2 - 1)
    for frequency in (0.0, 0.02, 0.05):
        wave = np.exp(2j * np.pi * frequency * time)
        exact = np.exp(2j * np.pi * frequency * np.arange(radio.FRACTIONS) / radio.FRACTIONS)
        np.testing.assert_allclose(weights @ wave, exact, atol=0.01)


def test_the_channel_has_the_powers_it_should(rng: np.random.Generator) -> None:
    gains = radio._gains(20_000, rng)
    np.testing.assert_allclose(np.mean(np.abs(gains[0]) ** 2, axis=0), 1, atol=0.03)
    # Rician with K = 4: the first path varies less than a Rayleigh one (whose power has a deviation of 1).
    assert np.std(np.abs(gains[0, :, 0]) ** 2) == pytest.approx(np.sqrt(1 - (4 / 5) ** 2), abs=0.05)
    assert np.abs(gains[1] - gains[0]).max() < 0.02
    silence = np.zeros((2000, radio.LENGTH), dtype=np.complex64)
    for snr in (-20, 0, 18):
        power = np.mean(np.abs(radio.add_noise(silence, snr, rng)) ** 2)
        assert power == pytest.approx(10 ** (-2 * snr / 10), rel=0.02)


def test_offsets_wander_as_a_clipped_random_walk(rng: np.random.Generator) -> None:
    """The closed form for the walk and its sum against a walk that is really walked."""
    step, moments = 0.5, 400
    walks = np.cumsum(step * rng.standard_normal((4000, moments)), axis=1)
    path, total = radio._wander((step, 1e9), 40_000, 2, rng)
    time_square = radio.RUN**2 / 3  # mean of t squared for a uniform t
    assert np.std(path[:, 0]) == pytest.approx(step * np.sqrt(radio.RUN / 2), rel=0.03)
    covariance = step**2 * time_square / 2
    assert np.mean(path[:, 0] * total) == pytest.approx(covariance, rel=0.05)
    walked = np.mean(walks[:, -1] * walks.sum(axis=1)) / (step**2 * moments**2 / 2)
    assert walked == pytest.approx(1, rel=0.1)
    assert np.abs(radio._wander((step, 2.0), 100, 50, rng)[0]).max() <= 2.0


def test_the_set_is_seeded_and_normalised() -> None:
    raw = radio.generate(4, (-4, 10), seed=3)
    assert raw.inputs.shape == (2 * 11 * 4, 2, 128)
    assert raw.inputs.dtype == np.float32
    assert raw.snr_db is not None
    np.testing.assert_allclose(np.hypot(raw.inputs[:, 0], raw.inputs[:, 1]).sum(axis=1), 1, rtol=1e-5)
    cells = raw.targets * 100 + raw.snr_db
    assert np.unique(cells, return_counts=True)[1].tolist() == [4] * 22
    alone = radio.generate(4, (10,), seed=3)
    np.testing.assert_array_equal(raw.inputs[raw.snr_db == 10], alone.inputs)
    assert not np.array_equal(alone.inputs, radio.generate(4, (10,), seed=4).inputs)
    assert len(np.unique(raw.inputs.reshape(len(raw.inputs), -1), axis=0)) == len(raw.inputs)
    with pytest.raises(UserError, match="give at least 1 of each"):
        radio.generate(0)


def test_mending_changes_am_ssb_alone() -> None:
    plain, mended = radio.generate(5, (18,)), radio.generate(5, (18,), mended=True)
    touched = np.any(plain.inputs != mended.inputs, axis=(1, 2))
    np.testing.assert_array_equal(touched, plain.targets == MODULATIONS.index("AM-SSB"))


def features(signals: np.ndarray) -> np.ndarray:
    """What an engineer would look at: moments of the amplitude, turning and powers of the signal."""
    wave = signals[:, 0] + 1j * signals[:, 1]
    wave = wave / np.sqrt(np.mean(np.abs(wave) ** 2, axis=1, keepdims=True))
    turn = np.angle(wave[:, 1:] * wave[:, :-1].conj())
    columns = [np.abs(wave) ** power for power in (1, 4, 6)] + [np.abs(turn), turn**2]
    lines = [np.sort(np.abs(np.fft.fft(wave**power, axis=1)), axis=1)[:, -3:] / 128 for power in (1, 2, 4, 8)]
    return np.column_stack([*(column.mean(axis=1) for column in columns), np.abs(wave).std(axis=1), *lines])


def test_a_classifier_does_well_at_high_snr_and_not_at_low() -> None:
    accuracy = {}
    for snr in (-20, 18):
        train, test = radio.generate(40, (snr,), seed=0), radio.generate(20, (snr,), seed=1)
        forest = RandomForestClassifier(60, random_state=0).fit(features(train.inputs), train.targets)
        accuracy[snr] = float(np.mean(forest.predict(features(test.inputs)) == test.targets))
    assert accuracy[18] > 0.5
    assert accuracy[-20] < 0.25
