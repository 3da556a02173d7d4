"""Modulated radio signals at complex baseband, before any channel (R40).

Every function makes many windows at once: [window, sample]. Digital classes carry random bits; the analogue
ones carry a synthetic sound, since no recording ships with this package (`speech`).
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

SYMBOL = 8  # samples a symbol
ROLL_OFF = 0.35  # of the root-raised cosine; also the bandwidth-time product of GFSK
SPAN = 12  # symbols over which a root-raised cosine is cut
GFSK_SENSITIVITY = 0.1  # radians a sample
CPFSK_INDEX = 0.5
SAMPLE_RATE_HZ = 200e3
FM_RATE_HZ = 220.5e3  # the FM transmitter's rate, five times that of its sound
FM_DEVIATION_HZ = 75e3
LOUDEST = 0.5  # the original halves its sound before it modulates


def constellation(name: str) -> NDArray[np.complex128]:
    """The symbols of a linear modulation, with a mean power of 1."""
    if name in ("QPSK", "8PSK"):
        size = 4 if name == "QPSK" else 8
        return np.asarray(np.exp(2j * np.pi * (np.arange(size) + 0.5) / size))
    size = {"BPSK": 2, "PAM4": 4, "QAM16": 4, "QAM64": 8}[name]
    levels = np.arange(1 - size, size, 2).astype(np.complex128)
    points = (levels[:, None] + 1j * levels).ravel() if name.startswith("QAM") else levels
    return np.asarray(points / np.sqrt(np.mean(np.abs(points) ** 2)))


def root_raised_cosine() -> NDArray[np.float64]:
    """Samples of the pulse over `SPAN` symbols, peak in the middle. With t in symbols and roll-off b:

    h(t) = (sin(pi t (1-b)) + 4 b t cos(pi t (1+b))) / (pi t (1 - (4 b t)**2))
    """
    b = ROLL_OFF
    # Nudged off t = 0, where the quotient is 0/0.
    t = (np.arange(SPAN * SYMBOL) - SPAN * SYMBOL // 2) / SYMBOL + 1e-9
    return np.asarray(
        (np.sin(np.pi * t * (1 - b)) + 4 * b * t * np.cos(np.pi * t * (1 + b))) / (np.pi * t * (1 - (4 * b * t) ** 2))
    )


def gaussian_pulse() -> NDArray[np.float64]:
    """The frequency pulse of GFSK: one symbol long, smoothed by a Gaussian of four symbols."""
    t = (np.arange(4 * SYMBOL) - 2 * SYMBOL) / SYMBOL
    smooth = np.exp(-0.5 * (t * 2 * np.pi * ROLL_OFF) ** 2 / np.log(2))
    pulse = np.convolve(smooth / smooth.sum(), np.ones(SYMBOL))
    return np.append(pulse, 0.0)  # to a whole number of symbols


def shape(symbols: NDArray[np.complex128], pulse: NDArray[np.float64]) -> NDArray[np.complex64]:
    """One pulse for each symbol, 8 samples apart: s[8q + r] = sum over m of a[q - m] * pulse[8m + r]."""
    taps = pulse.reshape(-1, SYMBOL)
    recent = sliding_window_view(symbols, len(taps), axis=1)[:, :, ::-1]
    return np.asarray((recent @ taps).reshape(len(symbols), -1), dtype=np.complex64)


def speech(windows: int, samples: int, rate_hz: float, rng: np.random.Generator) -> NDArray[np.complex64]:
    """Moments of a synthetic speech-like sound, as an analytic signal: the real part is the sound.

    A moment is a pause (1 in 5), a hiss (1 in 5: partials between 2 and 8 kHz), or a voiced sound:
    harmonics of a pitch between 85 and 255 Hz that fall with 1/h and rise near three formants. Loudness
    varies over 30 dB.
    """
    harmonic = np.arange(1, 41)
    frequency = rng.uniform(85, 255, (windows, 1)) * harmonic
    centre = rng.uniform([300, 900, 2400], [800, 2300, 3200], (windows, 3))
    distance = (frequency[:, None] - centre[:, :, None]) / 60.0
    amplitude = (1 / (1 + distance**2)).sum(axis=1) + 0.05
    amplitude /= harmonic
    phase = 2 * np.pi * rng.random((windows, 1)) * harmonic  # where in the pitch period the window starts
    sort = rng.random(windows)
    hiss = sort < 0.2
    frequency[hiss] = rng.uniform(2000, 8000, (hiss.sum(), harmonic.size))
    amplitude[hiss] = 1.0
    phase[hiss] = rng.uniform(0, 2 * np.pi, (hiss.sum(), harmonic.size))
    peak = LOUDEST * 10 ** (-rng.uniform(0, 30, windows) / 20)
    peak[sort > 0.8] = 1e-3
    amplitude *= (peak / amplitude.sum(axis=1))[:, None]
    time = np.arange(samples) / rate_hz
    angle = (2 * np.pi * frequency[:, :, None] * time + phase[:, :, None]).astype(np.float32)
    small = amplitude.astype(np.float32)
    real, imaginary = (np.einsum("wp,wpt->wt", small, wave(angle)) for wave in (np.cos, np.sin))
    return np.asarray(real + 1j * imaginary, dtype=np.complex64)


def waveform(
    name: str, windows: int, samples: int, rng: np.random.Generator, mended: bool = False
) -> NDArray[np.complex64]:
    """Windows of a modulation, at least `samples` long. The digital ones start at the edge of a symbol.

    AM-SSB is silent unless `mended`: in RadioML 2016.10a a carrier of frequency zero was a sine, which is 0.
    """
    symbols = -(-samples // SYMBOL) + SPAN
    if name in ("GFSK", "CPFSK"):
        bits = 2.0 * rng.integers(0, 2, (windows, symbols)) - 1
        step = gaussian_pulse() * GFSK_SENSITIVITY if name == "GFSK" else np.full(SYMBOL, np.pi * CPFSK_INDEX / SYMBOL)
        return _turn(shape(bits.astype(np.complex128), step).real)
    if name == "WBFM":
        sound = speech(windows, samples, FM_RATE_HZ, rng).real
        return _turn(2 * np.pi * FM_DEVIATION_HZ / FM_RATE_HZ * sound)
    if name == "AM-DSB":
        return np.asarray(1 + speech(windows, samples, SAMPLE_RATE_HZ, rng).real, dtype=np.complex64)
    if name == "AM-SSB":
        if mended:
            return 1 + speech(windows, samples, SAMPLE_RATE_HZ, rng)
        return np.zeros((windows, samples), dtype=np.complex64)
    points = constellation(name)
    return shape(points[rng.integers(0, len(points), (windows, symbols))], root_raised_cosine())


def _turn(radians_a_sample: NDArray[np.floating]) -> NDArray[np.complex64]:
    """A carrier of constant amplitude that turns by so much from sample to sample."""
    return np.exp(1j * np.cumsum(radians_a_sample, axis=1)).astype(np.complex64)
