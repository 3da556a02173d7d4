"""What a device computes of each input before the common subspace is sought (beyond the paper).

Distances between raw values say little where what they mean moves about: a signal's carrier phase and symbol times are
random in every window, a digit's colour and light in every picture. Each device computes features by itself: nothing is
told, and no number is fitted to data.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from d2dfl.config.sections.learning import Features
from d2dfl.errors import UserError

Rows = NDArray[np.float32]  # [n, value]
CELLS, BINS = 4, 9  # gradients: cells along a side of the picture, directions in a cell
FAINT = 1e-3  # added to a squared length, so that a flat part of a picture stays near 0


def raw(inputs: NDArray[np.float32]) -> Rows:
    """The values themselves, as in the text."""
    return inputs.reshape(len(inputs), -1)


def spectrum(inputs: NDArray[np.float32]) -> Rows:
    """Signals [n, 2, time]: sorted magnitudes of the spectra of z and of its square, each of length 1.

    Sorting forgets the carrier's frequency, magnitudes forget phase and time; squaring shows carriers that a modulation
    hides.
    """
    signal = inputs[:, 0] + 1j * inputs[:, 1]
    parts = [np.sort(np.abs(np.fft.fft(wave, axis=1)), axis=1) for wave in (signal, signal**2)]
    lengths = [np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-30) for part in parts]
    return np.concatenate(
        [part / length for part, length in zip(parts, lengths, strict=True)], axis=1, dtype=np.float32
    )


def gradients(inputs: NDArray[np.float32]) -> Rows:
    """Pictures [n, channel, row, column]: histograms of oriented gradients (Dalal and Triggs 2005).

    The mean over channels has a gradient at each pixel. Each of CELLS x CELLS cells adds up their lengths by direction,
    without sign, shared by the two nearest of BINS; each block of 2 x 2 cells is scaled to length 1.
    """
    grey = inputs.mean(axis=1)
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, :, 1:-1] = grey[:, :, 2:] - grey[:, :, :-2]
    down[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    length, place = np.hypot(across, down), np.mod(np.arctan2(down, across), np.pi) / np.pi * BINS
    below = np.floor(place)
    share = place - below
    tall, wide = grey.shape[1] // CELLS, grey.shape[2] // CELLS
    cells = np.empty((len(grey), CELLS, CELLS, BINS), dtype=np.float32)
    for number in range(BINS):
        part = length * ((below % BINS == number) * (1 - share) + ((below + 1) % BINS == number) * share)
        part = part[:, : CELLS * tall, : CELLS * wide].reshape(-1, CELLS, tall, CELLS, wide)
        cells[..., number] = part.sum(axis=(2, 4))
    corners = (cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:])
    blocks = np.concatenate(corners, axis=-1)
    blocks /= np.sqrt(np.sum(blocks**2, axis=-1, keepdims=True) + FAINT)
    return blocks.reshape(len(blocks), -1)


KINDS: dict[str, Callable[[NDArray[np.float32]], Rows]] = {"raw": raw, "spectrum": spectrum, "gradients": gradients}


def suited(shape: Sequence[int]) -> str:
    """What suits inputs of this shape."""
    if len(shape) == 2 and shape[0] == 2:
        return "spectrum"
    return "gradients" if _is_picture(shape) else "raw"


def features_of(name: Features, inputs: NDArray[np.float32]) -> Rows:
    """rows[n, feature] of inputs[n, ...]."""
    shape = inputs.shape[1:]
    kind = suited(shape) if name == "auto" else name
    if kind == "spectrum" and not (len(shape) == 2 and shape[0] == 2):
        raise UserError(
            f"partition.features=spectrum is for signals of 2 x time values, not for inputs of shape {shape}"
        )
    if kind == "gradients" and not _is_picture(shape):
        raise UserError(
            f"partition.features=gradients is for pictures of {2 * CELLS} x {2 * CELLS} pixels or more, not for inputs of shape {shape}"
        )
    return KINDS[kind](inputs)


def _is_picture(shape: Sequence[int]) -> bool:
    return len(shape) == 3 and min(shape[1:]) >= 2 * CELLS
