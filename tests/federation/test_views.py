"""Random views: shape and range, nothing at strength zero, each part by hand, and who is whose other datapoint."""

import math

import numpy as np
import pytest
import torch
from federations import STILL, close
from torch import Tensor
from torch.nn import functional

from d2dfl.config.sections.learning import Views
from d2dfl.federation.views import NORMAL, STRENGTHS, Strength, drawn_views, draws_for, triplet_rows, triplets

SHAPES = [(1, 8, 8), (3, 32, 32), (2, 20, 12), (2, 128), (1, 40), (2, 1), (6,), (2, 3, 4, 5)]


def inputs_of(shape: tuple[int, ...], number: int = 7) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(size=(number, *shape)).astype(np.float32))


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_views(inputs: Tensor, rng: np.random.Generator, strength: Strength = NORMAL) -> Tensor:
    return drawn_views(inputs, draws_for(inputs.shape[1:], len(inputs), rng), strength)


@pytest.mark.parametrize("shape", SHAPES)
def test_views_keep_shape_and_type_and_repeat_with_the_generator(shape: tuple[int, ...]) -> None:
    inputs = inputs_of(shape)
    before = inputs.clone()
    views = random_views(inputs, draws())
    assert views.shape == inputs.shape
    assert views.dtype == torch.float32
    assert torch.isfinite(views).all()
    assert torch.equal(inputs, before), "the datapoints themselves stay"
    assert torch.equal(views, random_views(inputs, draws()))
    assert not close(views, random_views(inputs, draws(1)))
    assert not close(views, inputs)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_strength_zero_a_view_is_the_datapoint(shape: tuple[int, ...]) -> None:
    inputs = inputs_of(shape)
    assert torch.allclose(random_views(inputs, draws(), STILL), inputs, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (2, 20, 12)])
@pytest.mark.parametrize("strength", [Strength(light=0), Strength(rotation_deg=180, blur=0.2, crop=0.1, light=0)])
def test_without_light_images_stay_within_their_range(shape: tuple[int, ...], strength: Strength) -> None:
    inputs = inputs_of(shape, 50)
    views = random_views(inputs, draws(), strength)
    assert (views.amax(dim=(2, 3)) <= inputs.amax(dim=(2, 3)) + 1e-5).all()
    assert (views.amin(dim=(2, 3)) >= inputs.amin(dim=(2, 3)) - 1e-5).all()
    flat = torch.full((5, *shape), 0.7)
    assert torch.allclose(random_views(flat, draws(), strength), flat), "nothing bleeds in from beyond the border"


def test_a_rotation_turns_around_the_centre() -> None:
    image = torch.zeros(1, 1, 41, 21)
    image[0, 0, 20, 10] = 1.0  # the centre
    image[0, 0, 20, 16] = 2.0  # six to the right of it
    angle = math.radians(90) * (2 * np.random.default_rng(0).random((8, 1), dtype=np.float32)[1, 0] - 1)
    view = random_views(image, draws(), Strength(90, 0, 1, 1, 0))
    rows, columns = torch.meshgrid(torch.arange(41.0), torch.arange(21.0), indexing="ij")
    heavy = view[0, 0] * ((rows - 20).square() + (columns - 10).square() > 9)
    place = torch.stack([(heavy * rows).sum(), (heavy * columns).sum()]) / heavy.sum()
    # A window that is turned one way shows its content turned the other way: pixels keep their distance (also in an
    # image that is not square), and the angle is the one that was drawn.
    assert torch.allclose(place, torch.tensor([20 - 6 * math.sin(angle), 10 + 6 * math.cos(angle)]), atol=0.2)
    assert view[0, 0, 20, 10] == pytest.approx(1.0, abs=1e-4)


def test_a_crop_is_a_part_scaled_up() -> None:
    ramp = torch.linspace(0, 1, 32).expand(200, 1, 32, 32).contiguous()
    views = random_views(ramp, draws(), Strength(0, 0, 0.25, 1, 0))
    spans = (views[:, 0, 0, 30] - views[:, 0, 0, 1]) * 31 / 29
    assert torch.allclose(views[:, 0, 0], views[:, 0, 17], atol=1e-5)
    assert 0.5 - 1e-3 < spans.min() < 0.55, "a quarter of the area is half of a side"
    assert 0.95 < spans.max() < 1 + 1e-3
    assert views.min() < 0.05
    assert views.max() > 0.95, "the part lies anywhere"


def test_a_stretch_changes_the_ratio_of_the_sides() -> None:
    ramp = torch.linspace(0, 1, 32)
    across, along = ramp.expand(300, 1, 32, 32).contiguous(), ramp[:, None].expand(300, 1, 32, 32).contiguous()
    strength = Strength(0, 0, 0.3, 2, 0)
    wide = random_views(across, draws(), strength)[:, 0, 0]
    high = random_views(along, draws(), strength)[:, 0, :, 0]
    ratios = (wide[:, 30] - wide[:, 1]) / (high[:, 30] - high[:, 1])
    assert 0.5 - 1e-3 < ratios.min() < 0.6
    assert 1.7 < ratios.max() < 2 + 1e-3


def test_blur_equals_a_gaussian_convolution() -> None:
    images = inputs_of((3, 16, 16), 4)
    strength = Strength(0, 0.1, 1, 1, 0)
    views = random_views(images, draws(), strength)
    deviations = np.random.default_rng(0).random((8, 4), dtype=np.float32)[0] * 0.1 * 16
    for image, view, deviation in zip(images, views, deviations, strict=True):
        offsets = torch.arange(-4, 5)
        kernel = torch.exp(-offsets.square() / (2 * float(deviation) ** 2))
        kernel = torch.outer(kernel, kernel) / kernel.sum() ** 2
        padded = functional.pad(image.unsqueeze(1), (4, 4, 4, 4), mode="replicate")
        assert torch.allclose(functional.conv2d(padded, kernel[None, None]).squeeze(1), view, atol=1e-5)


def test_light_is_one_factor_and_one_shift_of_an_image() -> None:
    images = inputs_of((3, 8, 8), 200)
    views = random_views(images, draws(), Strength(0, 0, 1, 1, light=0.5))
    flat, seen = images.flatten(1), views.flatten(1)
    factors = seen.std(dim=1) / flat.std(dim=1)
    shifts = seen.mean(dim=1) - factors * flat.mean(dim=1)
    assert torch.allclose(seen, factors[:, None] * flat + shifts[:, None], atol=1e-4)
    assert math.exp(-0.5) - 1e-3 < factors.min() < 0.63
    assert 1.6 < factors.max() < math.exp(0.5) + 1e-3
    assert -0.5 - 1e-3 < shifts.min() < -0.48
    assert 0.48 < shifts.max() < 0.5 + 1e-3


def test_a_phase_rotation_keeps_the_envelope() -> None:
    signals = inputs_of((2, 64), 30)
    views = random_views(signals, draws(), Strength(crop=1, phase=1, smoothing=0))
    assert torch.allclose(views.square().sum(1), signals.square().sum(1), rtol=1e-3, atol=1e-4)
    turned = torch.view_as_complex(views.movedim(1, -1).contiguous()) / torch.view_as_complex(
        signals.movedim(1, -1).contiguous()
    )
    angles = turned.mean(dim=1).angle()
    assert torch.allclose(turned, torch.polar(torch.ones(30), angles)[:, None].expand(30, 64), atol=2e-2)
    assert angles.max() - angles.min() > 4
    alone = inputs_of((1, 64), 30)
    assert torch.allclose(random_views(alone, draws(), Strength(crop=1, smoothing=0)), alone, atol=1e-5)


def test_a_signal_is_cut_and_resampled_in_time() -> None:
    ramp = torch.linspace(0, 1, 128).expand(200, 2, 128).contiguous()
    views = random_views(ramp, draws(), Strength(crop=0.5, phase=0, smoothing=0))
    spans = (views[:, 0, 126] - views[:, 0, 1]) * 127 / 125
    assert 0.5 - 1e-3 < spans.min() < 0.52
    assert 0.98 < spans.max() < 1 + 1e-3
    assert torch.equal(views[:, 0], views[:, 1])


def test_vectors_get_noise_and_lose_features() -> None:
    vectors = torch.full((4000, 5), 3.0)
    views = random_views(vectors, draws(), Strength(jitter=0.2, masking=0.4))
    kept = views[views != 0]
    assert 1 - len(kept) / views.numel() == pytest.approx(0.4, abs=0.02)
    assert float(kept.std()) == pytest.approx(0.2, abs=0.01)
    assert float(kept.mean()) == pytest.approx(3.0, abs=0.01)


def rows_among(chosen: Tensor, inputs: Tensor) -> list[int]:
    """Which of the inputs each one is, bit for bit; -1: none."""
    same = (chosen.flatten(1)[:, None] == inputs.flatten(1)).all(dim=2)
    return [int(row.nonzero()[0]) if row.any() else -1 for row in same]


def parts_of(views: Tensor) -> Tensor:
    """Anchor, positive and negative; to the letter the negative of each is the next anchor."""
    return views if len(views) == 3 else torch.stack([views[0], views[1], views[0].roll(-1, dims=0)])


@pytest.mark.parametrize("views", ["literal", "all"])
@pytest.mark.parametrize("number", [2, 3, 10])
def test_a_triplet_is_two_views_of_one_and_one_of_another(number: int, views: Views) -> None:
    inputs = inputs_of((6,), number)
    seen = set()
    for seed in range(60):
        anchor, positive, negative = parts_of(triplets(inputs, draws(seed), STILL, views))
        assert torch.equal(anchor, positive)
        owns, others = rows_among(anchor, inputs), rows_among(negative, inputs)
        assert sorted(owns) == sorted(others) == list(range(number))
        assert all(other != own for own, other in zip(owns, others, strict=True))
        seen |= set(zip(owns, others, strict=True))
    assert len(seen) == number * (number - 1), "any other datapoint may be the negative"


@pytest.mark.parametrize("shape", SHAPES)
def test_to_the_letter_only_the_positive_is_transformed(shape: tuple[int, ...]) -> None:
    inputs = inputs_of(shape, 40)
    anchor, positive, negative = parts_of(triplets(inputs, draws(), STRENGTHS["literal"], "literal"))
    owns, others = rows_among(anchor, inputs), rows_among(negative, inputs)
    assert sorted(owns) == sorted(others) == list(range(40)), "R42: anchor and negative are datapoints as they are"
    assert all(own != other for own, other in zip(owns, others, strict=True))
    assert not any(close(view, own) for view, own in zip(positive, anchor, strict=True))
    after_ring = draws()
    after_ring.permutation(40)
    assert torch.equal(positive, random_views(anchor, after_ring, STRENGTHS["literal"])), "F(d), of d itself"


def test_ours_transforms_all_three() -> None:
    inputs = inputs_of((1, 8, 8), 40)
    parts = triplets(inputs, draws(), NORMAL, "all")
    assert all(rows_among(part, inputs) == [-1] * 40 for part in parts)
    assert not close(parts[0], parts[1])
    assert triplets(inputs_of((1, 8, 8), 1), draws(), NORMAL, "all").shape == (3, 1, 1, 8, 8)


def test_the_text_knows_no_light() -> None:
    images = inputs_of((1, 8, 8), 50)
    anchor, positive = triplets(images, draws(), STRENGTHS["literal"], "literal")
    assert (positive.amax(dim=(2, 3)) <= anchor.amax(dim=(2, 3)) + 1e-5).all()
    assert STRENGTHS["all"].light > 0


@pytest.mark.parametrize("views", ["literal", "all"])
def test_views_of_several_devices_at_once_are_those_of_each(views: Views) -> None:
    inputs = torch.stack([inputs_of((1, 8, 8), 5), 2 * inputs_of((1, 8, 8), 5)])
    together = triplet_rows(inputs, [draws(3), draws(4)], STRENGTHS[views], views)
    for row, seed in enumerate((3, 4)):
        assert close(together[row], triplets(inputs[row], draws(seed), STRENGTHS[views], views))
