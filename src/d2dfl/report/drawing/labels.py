"""What is written on a map, and where: every device by its number or name, and how many of its partitions suffice."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.report.drawing.scene import Array, Arrows, Stage, curves
from d2dfl.terminal import plain, shortened

FONT = "DejaVu Sans"  # which matplotlib brings
LONGEST = 12  # characters of a name beside a circle
LONGEST_ESCAPED = 18  # likewise where the font lacks some: three of them
IN_CIRCLE = 3  # characters that fit into a circle
READABLE = 4.0  # node radius from which anything is written
COUNTED = 60  # devices up to which a small number stands beside a circle; colours tell the rest
NAME, COUNT = 7.5, 5.5  # sizes of what stands beside a circle
WAYS = ((0.7, -0.7), (0, -1), (1, 0), (-0.7, -0.7), (-1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7))  # beside, best first


class Lettering(NamedTuple):
    """What stands in each circle and what beside it: the device, and its partitions at threshold."""

    circle: list[str]
    beside: list[str]
    named_inside: bool  # whether devices are named in their circles; else beside

    def size(self, stage: Stage) -> float:
        """The size of what stands beside a circle, in points; less in narrow panels."""
        return (COUNT if self.named_inside else NAME) * float(np.clip(stage.width / 400, 0.75, 1.0))

    def sentences(self) -> list[str]:
        """What the legend says about it."""
        inside, beside = ("device", "at threshold")[:: 1 if self.named_inside else -1]
        return [f"in a circle: {inside}"] + [f"beside it: {beside}"] * any(self.beside)


def lettering(names: Sequence[str], counts: NDArray[np.int64]) -> Lettering:
    """A device's name, or its number where it has none, is what is read first: in its circle if it fits there."""
    numbers = list(map(str, counts.tolist()))
    shown = list(names) or [str(device) for device in range(len(counts))]
    if not names or max(map(len, shown)) <= IN_CIRCLE:
        return Lettering(shown, numbers if len(numbers) <= COUNTED else [""] * len(numbers), True)
    return Lettering(numbers, shown, False)


def short_name(name: str) -> str:
    """A name as it fits beside a circle."""
    return shortened(plain(name), LONGEST)


def short_names(names: Sequence[str]) -> list[str]:
    """Names as they fit beside circles; those that would be cut to the same letters end with the device's number."""
    short = list(map(short_name, names))
    often = Counter(short)
    return [
        _numbered(plain(name), device) if often[cut] > 1 and len(plain(name)) > LONGEST else cut
        for device, (name, cut) in enumerate(zip(names, short, strict=True))
    ]


def _numbered(name: str, device: int) -> str:
    number = f"… #{device}"
    return name[: LONGEST - len(number)].rstrip() + number


def drawable(names: Sequence[str]) -> list[str]:
    """Short names in characters that the font has; others are written as escapes, cut ones with the device's number."""
    short = short_names(names)
    return [_drawable(plain(name), short[device], device) for device, name in enumerate(names)]


def _drawable(name: str, short: str, device: int) -> str:
    if all(map(_known, name)):
        return short
    pieces = [item if _known(item) else item.encode("unicode_escape").decode() for item in name]
    if sum(map(len, pieces)) <= LONGEST_ESCAPED:
        return "".join(pieces)
    fitting = [piece for place, piece in enumerate(pieces) if sum(map(len, pieces[: place + 1])) <= LONGEST]
    return f"{''.join(fitting)}… #{device}"


@cache
def _known(character: str) -> bool:
    if character.isascii() and character.isprintable():
        return True
    from matplotlib.font_manager import findfont, get_font  # takes a while to load, and seldom is needed

    return bool(get_font(findfont(FONT)).get_char_index(ord(character)))


def beside(stage: Stage, links: Arrows, letters: Lettering) -> Array:
    """[device, 2] centres of texts beside circles: clear of circles and of each other, and of links if that can be."""
    texts, half = letters.beside, _halves(stage, letters)
    lines = curves(stage, links, np.linspace(0, 1, 25)).reshape(-1, 2) if len(links.sender) else np.zeros((0, 2))
    room = np.array([stage.width, stage.height])
    found = np.zeros_like(stage.xy)
    done: list[int] = []
    # Those with the nearest neighbours choose first: they have the least room.
    gaps = np.linalg.norm(stage.xy[:, None] - stage.xy, axis=2) + np.where(np.eye(len(stage.xy)), np.inf, 0.0)
    for device in np.argsort(gaps.min(axis=1, initial=np.inf), kind="stable").tolist():
        if not texts[device]:
            continue
        places = stage.xy[device] + np.array(WAYS) * (stage.radius + 1.0) + np.sign(WAYS) * half[device]
        to = places[:, None]
        covered = np.linalg.norm(np.maximum(np.abs(stage.xy - to) - half[device], 0.0), axis=2) < stage.radius
        covered[:, device] = False
        clash = (np.abs(found[done] - to) < half[done] + half[device]).all(axis=2).sum(axis=1)
        crossed = (np.abs(lines - to) < half[device]).all(axis=2).sum(axis=1)
        outside = ((places - half[device] < 1) | (places + half[device] > room - 1)).any(axis=1)
        costs = 40 * outside + 30 * clash + 20 * covered.sum(axis=1) + np.minimum(0.3 * crossed, 15)
        found[device] = places[int(np.argmin(costs + 0.05 * np.arange(len(WAYS))))]
        done.append(device)
    return found


def cluster_places(stage: Stage, links: Arrows, letters: Lettering) -> Array:
    """[cluster, 2] the highest free spot beside each hull, or the one with most room where everything is taken."""
    lines = curves(stage, links, np.linspace(0, 1, 25)).reshape(-1, 2)
    along = np.linspace(-1, 1, 13)[:, None, None] * [1, 0] * _halves(stage, letters)
    words = (beside(stage, links, letters) + along)[:, [bool(text) for text in letters.beside]].reshape(-1, 2)
    taken = np.concatenate([stage.xy, words, lines])
    reach = np.repeat([stage.radius + 5.0, 9.0, 7.5], [len(stage.xy), len(words), len(lines)])
    found = np.zeros((len(stage.hulls), 2))
    for index, own in enumerate(stage.hulls):
        outward = own - own.mean(axis=0)
        spots = own + 7.0 * outward / np.linalg.norm(outward, axis=1, keepdims=True)
        free = ((spots > 9) & (spots < np.array([stage.width, stage.height]) - 9)).all(axis=1)
        for hull in stage.hulls:  # a name inside another hull would name that one
            free &= ~_inside(hull, spots)
        room = (np.linalg.norm(spots[:, None] - taken, axis=2) - reach).min(axis=1)
        worth = np.where(free & (room > 0), spots[:, 1], room - 1e4 * (1 + ~free))
        found[index] = spots[worth.argmax()]
        taken, reach = np.vstack([taken, found[index]]), np.append(reach, 14.0)
    return found


def _inside(hull: Array, spots: Array) -> NDArray[np.bool_]:
    """Which spots lie in a convex outline: on the same side of all its edges."""
    along = np.roll(hull, -1, axis=0) - hull
    to = spots[:, None] - hull
    side = along[:, 0] * to[:, :, 1] - along[:, 1] * to[:, :, 0]
    return np.asarray((side > 0).all(axis=1) | (side < 0).all(axis=1))


def _halves(stage: Stage, letters: Lettering) -> Array:
    """[device, 2] about half the width and height of what stands beside its circle."""
    size = letters.size(stage)
    return np.array([[0.34 * size * len(text), 0.6 * size] for text in letters.beside]).reshape(-1, 2)


def level_cuts(partitions: int, low: float, high: float) -> tuple[int, int]:
    """From how many partitions a middle and a high level begin: shares of all, and different where that can be."""
    middle = max(1, int(np.ceil(low * partitions - 1e-9)))
    top = max(int(np.ceil(high * partitions - 1e-9)), middle + 1)
    return min(middle, max(partitions, 1)), min(top, max(partitions, 1))


def level_texts(cuts: tuple[int, int], partitions: int) -> tuple[str, str, str]:
    """What a legend calls the levels between these cuts."""
    middle, top = cuts
    lowest = "none" if middle == 1 else f"{middle - 1} or fewer"
    between = str(middle) if top - middle <= 1 else f"{middle} to {top - 1}"
    highest = f"all {partitions}" if top == partitions else f"{top} or more"
    return f"{lowest} of {partitions}", between, highest


def node_cuts(partitions: int) -> tuple[int, int]:
    """The cuts for partitions at threshold: 4 and 5 of 10, as the paper's Fig. 4 has them."""
    return level_cuts(partitions, 0.4, 0.5)


def link_cuts(partitions: int) -> tuple[int, int]:
    """The cuts for partitions trusted over a link: 3 and 5 of 10."""
    return level_cuts(partitions, 0.3, 0.5)


def level(numbers: Any, cuts: tuple[int, int]) -> NDArray[np.int64]:
    """0, 1 or 2."""
    return np.asarray(np.digitize(numbers, cuts), dtype=np.int64)


def faintness(links: int) -> float:
    """Opacity of links: where there are many, each is faint."""
    return round(float(np.clip((60 / max(links, 1)) ** 0.5, 0.35, 1.0)), 2)
