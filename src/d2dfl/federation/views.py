"""Random views of inputs, for contrastive losses (R37): what may change in a datapoint without changing what it shows.

Images [n, channels, height, width] are blurred, turned, cut to a part that is scaled up again, and lit otherwise.
Signals [n, 2, samples] are turned in phase, smoothed, and cut to a part that is resampled. Anything else is a vector of
features: noise is added, and some features are set to zero, their mean. All n views are made at once, from few draws;
views of several devices too, each from its own generator.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from d2dfl.config.sections.learning import Views


@dataclass(frozen=True)
class Strength:
    """How far a view may be from its datapoint. Every draw is uniform between nothing and this much."""

    rotation_deg: float = 15.0  # images, to either side
    blur: float = 0.035  # images: standard deviation, as a share of the shorter side (1 pixel of 28)
    crop: float = 0.5  # smallest part of an image's area, or of a signal's time, that is kept
    stretch: float = 4 / 3  # images: largest ratio of sides of the part that is kept, before it is scaled up
    # R37 has no light; where all three of a triplet are transformed, brightness tells an anchor's views from the other's.
    light: float = 0.5  # images: brightness, in deviations, and logarithm of the contrast, to either side
    phase: float = 1.0  # signals: phase rotation, as a share of a full turn
    smoothing: float = 1.0  # signals: standard deviation, in samples
    jitter: float = 0.3  # vectors: standard deviation of the noise, not drawn; features are standardised
    masking: float = 0.3  # vectors: probability that a feature is set to zero, not drawn


NORMAL = Strength()
# R42: the text names rotation and blur (Appendix C: crops), nothing else.
STRENGTHS: dict[Views, Strength] = {"literal": Strength(light=0), "all": NORMAL}


Draws = NDArray[np.float32]  # [number, n, ...] all that is random about n views


def draws_for(shape: Sequence[int], number: int, rng: np.random.Generator) -> Draws:
    """What views of `number` inputs of this shape need: uniform numbers each, or noise as large as the inputs."""
    if len(shape) in _UNIFORM:
        return rng.random((_UNIFORM[len(shape)], number), dtype=np.float32)
    noise = rng.standard_normal((number, *shape), dtype=np.float32)
    return np.stack([noise, rng.random((number, *shape), dtype=np.float32)])


def drawn_views(inputs: Tensor, draws: Draws, strength: Strength) -> Tensor:
    """The view of each of the inputs [n, ...] that the draws say."""
    view = _KINDS.get(inputs.ndim - 1, vector_views)
    return view(inputs, torch.from_numpy(draws).to(inputs.device), strength)


def image_views(images: Tensor, draws: Tensor, strength: Strength = NORMAL) -> Tensor:
    """Blur, random rotation, random resized crop and random light."""
    side = min(images.shape[2:])
    blur, turn, area, stretch, right, down, contrast, brightness = draws
    blurred = _blurred(images, blur, strength.blur * side, axes=(2, 3))
    angle = math.radians(strength.rotation_deg) * (2 * turn - 1)
    area = 1 - (1 - strength.crop) * area
    ratio = strength.stretch ** (2 * stretch - 1)
    views = _resampled(blurred, angle, (area * ratio).sqrt(), (area / ratio).sqrt(), right, down)
    light = strength.light * (2 * torch.stack([contrast, brightness]) - 1).view(2, -1, 1, 1, 1)
    return views * light[0].exp() + light[1]


def signal_views(signals: Tensor, draws: Tensor, strength: Strength = NORMAL) -> Tensor:
    """Phase rotation (of two channels, in-phase and quadrature), smoothing and random resampled cut."""
    phase, blur, part, right = draws
    if signals.shape[1] == 2:
        angle = 2 * math.pi * strength.phase * phase.view(-1, 1)
        inphase, quadrature = signals.unbind(1)
        signals = torch.stack(
            [angle.cos() * inphase - angle.sin() * quadrature, angle.sin() * inphase + angle.cos() * quadrature], dim=1
        )
    rows = signals.unsqueeze(2)  # an image of one row
    rows = _blurred(rows, blur, strength.smoothing, axes=(3,))
    nothing, whole = torch.zeros_like(part), torch.ones_like(part)
    return _resampled(rows, nothing, 1 - (1 - strength.crop) * part, whole, right, nothing).squeeze(2)


def vector_views(vectors: Tensor, draws: Tensor, strength: Strength = NORMAL) -> Tensor:
    """Gaussian noise, and some features set to zero."""
    noise, chance = draws.unbind()
    return (vectors + strength.jitter * noise) * (chance >= strength.masking)


def triplets(inputs: Tensor, rng: np.random.Generator, strength: Strength, views: Views) -> Tensor:
    """Anchor, positive and negative [3, n, ...] of inputs [n, ...] (Section III, the loss without labels).

        literal: d, F(d), d'        all: F(d), G(d), H(d')

    d' is another datapoint, drawn at random; F, G and H are random transformations, each datapoint's its own. To the
    letter the negative of one is the anchor of another, and need not go through the encoder again: anchors and
    positives [2, n, ...] come in such an order that the negative of each is the next anchor.
    """
    return triplet_rows(inputs.unsqueeze(0), [rng], strength, views)[0]


def triplet_rows(inputs: Tensor, rngs: Sequence[np.random.Generator], strength: Strength, views: Views) -> Tensor:
    """The same for inputs [row, n, ...] of several devices at once, each from its own generator: [row, 3, n, ...]."""
    rows, number, *shape = inputs.shape
    literal = views == "literal"
    others, draws = np.empty((rows, number), dtype=np.int64), []
    for row, rng in enumerate(rngs):
        ring = rng.permutation(number)  # each datapoint's other one is its successor on a random ring
        others[row, np.arange(number) if literal else ring] = ring if literal else np.roll(ring, -1)
        draws.append(draws_for(shape, number if literal else 3 * number, rng))
    places = torch.from_numpy(others + number * np.arange(rows)[:, None]).to(inputs.device)
    another, drawn = inputs.flatten(0, 1)[places], np.concatenate(draws, axis=1)
    if literal:
        return torch.stack([another, drawn_views(another.flatten(0, 1), drawn, strength).view_as(another)], dim=1)
    flat = torch.cat([inputs, inputs, another], dim=1).flatten(0, 1)
    return drawn_views(flat, drawn, strength).view(rows, 3, number, *shape)


_KINDS: dict[int, Callable[[Tensor, Tensor, Strength], Tensor]] = {2: signal_views, 3: image_views}
_UNIFORM = {2: 4, 3: 8}  # uniform numbers that a view of a signal and of an image takes


def _blurred(images: Tensor, shares: Tensor, largest: float, axes: tuple[int, ...]) -> Tensor:
    """Gaussian blur along some axes, of each image with its own share of the largest standard deviation.

    A weighted sum of shifted images: on a CPU this is faster than a convolution with a kernel for each image.
    """
    reach = math.ceil(2 * largest)
    if not reach:
        return images
    offsets = torch.arange(-reach, reach + 1, device=images.device)
    kernels = torch.exp(-0.5 * (offsets / (shares * largest).clamp_min(1e-6).unsqueeze(1)).square())
    kernels = (kernels / kernels.sum(dim=1, keepdim=True)).view(len(images), -1, 1, 1, 1)
    for axis in axes:
        length = images.shape[axis]
        border = (reach, reach, 0, 0) if axis == 3 else (0, 0, reach, reach)
        padded = functional.pad(images, border, mode="replicate")
        images = kernels[:, 0] * padded.narrow(axis, 0, length)
        for place in range(1, 2 * reach + 1):
            images = images.addcmul(kernels[:, place], padded.narrow(axis, place, length))
    return images


def _resampled(images: Tensor, angle: Tensor, wide: Tensor, high: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """Cut a turned window out of each image and scale it to the whole size, bilinearly.

    wide[n] and high[n] are the window's sides as shares of the image's, right[n] and down[n] in [0, 1] where it lies.
    Beyond the border the image goes on as a mirror would show it.
    """
    aspect = images.shape[2] / images.shape[3]
    wide, high = wide.clamp(max=1), high.clamp(max=1)
    across = [wide * angle.cos(), -high * angle.sin() * aspect, (1 - wide) * (2 * right - 1)]
    along = [wide * angle.sin() / aspect, high * angle.cos(), (1 - high) * (2 * down - 1)]
    maps = torch.stack([torch.stack(across, dim=1), torch.stack(along, dim=1)], dim=1)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
