"""Radio signals like RadioML 2016.10a, made on this machine (R40): 11 modulations, 2 x 128, SNR -20 to 18 dB.

Symbols and sounds come from `waveforms`; here they pass a channel and are cut into windows. Differences
from the original: the sound is synthetic, bits are random instead of a whitened text, and every window has
a channel of its own, where the original drew one channel for the whole set. Results on these signals are
results on generated data.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from d2dfl.config import RadioSignalsConfig
from d2dfl.config.needs import radio_bytes
from d2dfl.data.files import Copied
from d2dfl.data.readers import MODULATIONS, Raw
from d2dfl.data.waveforms import SAMPLE_RATE_HZ, SYMBOL, waveform
from d2dfl.errors import UserError
from d2dfl.memory import check_memory
from d2dfl.progress import silent
from d2dfl.rng import stream

SNRS = tuple(range(-20, 20, 2))
LENGTH = 128  # samples in a window
RATE_OFFSET_HZ = (0.01, 50.0)  # standard deviation of a step, largest value
CARRIER_OFFSET_HZ = (0.01, 500.0)
DOPPLER_HZ = 1.0
SINUSOIDS = 8  # that make up the fading of a path
LINE_OF_SIGHT = 4.0  # Rician factor K of the first path
DELAYS = np.array([0.0, 0.9, 1.7])  # samples
MAGNITUDES = np.array([1.0, 0.8, 0.3])
TAPS = 8
RUN = 80_000  # samples in a transmission of the original, over which its offsets wander off
KERNEL = 8  # samples that interpolation looks at, at a fraction of a sample
FRACTIONS = 128
BLOCK = 500  # windows made at once


def generated(settings: RadioSignalsConfig, seed: int, progress: Copied) -> Raw:
    """The set that the settings describe."""
    snrs = [snr for snr in SNRS if settings.lowest_snr_db <= snr <= settings.highest_snr_db]
    if not snrs:
        raise UserError(
            f"radio.lowest_snr_db cannot be {settings.lowest_snr_db}: "
            f"give an even number up to radio.highest_snr_db, {settings.highest_snr_db}"
        )
    check_memory(radio_bytes(settings), f"{settings.per_cell:,} signals a cell need", "lower radio.per_cell")
    return generate(settings.per_cell, snrs, seed, mended=settings.mended, progress=progress)


def generate(
    per_cell: int,
    snrs: Sequence[int] = SNRS,
    seed: int = 0,
    *,
    mended: bool = False,
    progress: Copied = silent,
) -> Raw:
    """`per_cell` windows of every modulation at every signal-to-noise ratio.

    A cell depends on the seed, its modulation and its SNR alone: fewer SNRs change nothing in the others.
    """
    if per_cell < 1 or not snrs:
        raise UserError(f"cannot generate {per_cell} radio signals at {len(snrs)} SNRs: give at least 1 of each")
    cells = [(index, snr) for snr in snrs for index in range(len(MODULATIONS))]
    inputs = np.empty((len(cells), per_cell, 2, LENGTH), dtype=np.float32)
    for number, (index, snr) in enumerate(cells):
        progress("generating radio signals", number, len(cells))
        rng = stream(seed, "radio", MODULATIONS[index], f"{snr} dB")
        for start in range(0, per_cell, BLOCK):
            part = inputs[number, start : start + BLOCK]
            part[:] = windows(MODULATIONS[index], len(part), snr, rng, mended)
    progress("generating radio signals", len(cells), len(cells))
    labels, ratios = (np.repeat(np.array(column, dtype=np.int64), per_cell) for column in zip(*cells, strict=True))
    return Raw(inputs.reshape(-1, 2, LENGTH), labels, snr_db=ratios)


def windows(modulation: str, count: int, snr_db: float, rng: np.random.Generator, mended: bool) -> NDArray[np.float32]:
    """Received windows [count, 2, 128], each scaled so that the sum of its magnitudes is 1."""
    clean = waveform(modulation, count, LENGTH + TAPS + SYMBOL + KERNEL, rng, mended)
    received = add_noise(fade(shift_carrier(resample(clean, rng), rng), rng), snr_db, rng)
    received /= np.abs(received).sum(axis=1, keepdims=True)
    return np.stack([received.real, received.imag], axis=1)


def resample(clean: NDArray[np.complex64], rng: np.random.Generator) -> NDArray[np.complex64]:
    """Start at a random sample of a symbol, and read with a clock that is slightly off."""
    samples = LENGTH + TAPS - 1
    offset_hz, drift = _wander(RATE_OFFSET_HZ, len(clean), samples, rng)
    start = (drift / SAMPLE_RATE_HZ) % 1.0 + rng.integers(0, SYMBOL, len(clean))
    position = start[:, None] + np.arange(samples) + np.cumsum(offset_hz, axis=1) / SAMPLE_RATE_HZ
    step = np.maximum(np.rint(position * FRACTIONS).astype(np.int64), 0)
    nearby = sliding_window_view(clean, KERNEL, axis=1)[np.arange(len(clean))[:, None], step // FRACTIONS]
    return np.asarray(np.einsum("wsk,wsk->ws", nearby, _interpolator()[step % FRACTIONS]))


def _interpolator() -> NDArray[np.float32]:
    """Weights [fraction of a sample, nearby sample]: a windowed sinc."""
    middle = KERNEL // 2 - 1
    distance = np.arange(FRACTIONS)[:, None] / FRACTIONS + middle - np.arange(KERNEL)
    return np.asarray(np.sinc(distance) * np.cos(np.pi * distance / KERNEL) ** 2, dtype=np.float32)


def shift_carrier(signal: NDArray[np.complex64], rng: np.random.Generator) -> NDArray[np.complex64]:
    """Turn the signal by a carrier frequency that is slightly off."""
    offset_hz, drift = _wander(CARRIER_OFFSET_HZ, len(signal), signal.shape[1], rng)
    turns = (drift[:, None] + np.cumsum(offset_hz, axis=1)) / SAMPLE_RATE_HZ
    return np.asarray(signal * np.exp(2j * np.pi * turns), dtype=np.complex64)


def fade(signal: NDArray[np.complex64], rng: np.random.Generator) -> NDArray[np.complex64]:
    """Three paths, 0, 0.9 and 1.7 samples late, each fading by itself, the first with line of sight."""
    delay = MAGNITUDES[:, None] * np.sinc(np.arange(TAPS) - DELAYS[:, None])
    paths = sliding_window_view(signal, TAPS, axis=1)[:, :, ::-1] @ delay.T.astype(np.float32)
    # A gain moves by about 1 % in a window: between its two ends a straight line is exact enough.
    first, last = _gains(len(signal), rng)
    along = np.linspace(0, 1, LENGTH)[:, None]
    gain = first[:, None] * (1 - along) + last[:, None] * along
    return np.asarray(np.einsum("wsp,wsp->ws", paths, gain.astype(np.complex64)))


def add_noise(signal: NDArray[np.complex64], snr_db: float, rng: np.random.Generator) -> NDArray[np.complex64]:
    """White noise of amplitude 10^(-SNR/10): the original takes the ratio of powers for one of amplitudes."""
    noise = rng.standard_normal((*signal.shape, 2), dtype=np.float32) @ np.array([1, 1j], dtype=np.complex64)
    return np.asarray(signal + noise * np.float32(10 ** (-snr_db / 10) / np.sqrt(2)))


def _wander(
    limits: tuple[float, float], count: int, samples: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A frequency that takes random steps from 0: its path in a window, and its sum up to the window's start.

    The window starts at a random moment t of the transmission. There, a walk W with steps s and its sum S are
    Gaussian: W = s sqrt(t) z, and S given W has mean t W / 2 and variance s^2 t^3 / 12.
    """
    step, largest = limits
    time = rng.uniform(0, RUN, count)
    start = step * np.sqrt(time) * rng.standard_normal(count)
    total = time / 2 * start + step * np.sqrt(time**3 / 12) * rng.standard_normal(count)
    path = start[:, None] + step * np.cumsum(rng.standard_normal((count, samples)), axis=1)
    return np.clip(path, -largest, largest), total


def _gains(count: int, rng: np.random.Generator) -> NDArray[np.complex128]:
    """Gain [start or end, window, path] by a sum of sinusoids that arrive from all around, mean power 1."""
    n, paths = np.arange(1, SINUSOIDS + 1), len(DELAYS)
    arrival = (2 * np.pi * n - np.pi + rng.uniform(-np.pi, np.pi, (count, paths, 1))) / (4 * SINUSOIDS)
    psi, phi = rng.uniform(-np.pi, np.pi, (2, count, paths, SINUSOIDS))
    sight, angle = rng.uniform(-np.pi, np.pi, (2, count))
    gains = []
    for time in (0.0, LENGTH / SAMPLE_RATE_HZ):
        turn = 2 * np.pi * DOPPLER_HZ * time
        waves = np.cos(psi + turn * np.cos(arrival)) + 1j * np.sin(phi + turn * np.cos(arrival))
        gain = waves.sum(axis=2) / np.sqrt(SINUSOIDS)
        direct = np.exp(1j * (sight + turn * np.cos(angle)))
        gain[:, 0] = (np.sqrt(LINE_OF_SIGHT) * direct + gain[:, 0]) / np.sqrt(LINE_OF_SIGHT + 1)
        gains.append(gain)
    return np.array(gains)
