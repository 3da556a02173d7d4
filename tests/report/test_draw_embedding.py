"""Pictures of embeddings: files that open, that repeat, and classes that stay apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from d2dfl import UserError
from d2dfl.report.drawing.embedding import COLOURS, MOST, draw_embeddings, in_the_plane

NAMES = ("sandal", "sneaker", "boot")


def clouds(apart: float, number: int = 90) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(0)
    labels = np.arange(number) % 3
    return (apart * np.eye(8)[labels] + draws.normal(size=(number, 8))).astype(np.float32), labels


@pytest.mark.parametrize(("suffix", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_panels_in_every_format_are_the_same_file_twice(tmp_path: Path, suffix: str, head: bytes) -> None:
    near, labels = clouds(0.5)
    far, _ = clouds(20.0)
    paths = [tmp_path / f"{name}.{suffix}" for name in ("one", "two")]
    for path in paths:
        draw_embeddings([("no exchange", near), ("ours", far)], labels, NAMES, path)
    assert paths[0].read_bytes().startswith(head)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if suffix == "png":
        height, width, _ = imread(paths[0]).shape
        assert width > 1.8 * height, "panels stand side by side"


def test_classes_that_are_apart_stay_apart_and_scale_means_nothing() -> None:
    far, labels = clouds(30.0)
    places = in_the_plane(far.astype(np.float64), seed=3)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).all()
    assert np.array_equal(places, in_the_plane(far.astype(np.float64), seed=3))
    huge = in_the_plane(far * 1e20, seed=3)
    assert np.isfinite(huge).all()
    np.fill_diagonal(distances, 0)
    own = np.linalg.norm(huge[:, None] - huge[None], axis=2) + np.diag(np.full(len(huge), np.inf))
    assert (labels[own.argmin(axis=1)] == labels).all()


def test_poor_embeddings_are_drawn_too(tmp_path: Path) -> None:
    labels = np.arange(12) % 3
    line = np.arange(12.0)[:, None]
    draw_embeddings([("collapsed", np.ones((12, 8))), ("a line", line)], labels, NAMES, tmp_path / "poor.png")
    draw_embeddings([("four", line[:4])], labels[:4], NAMES, tmp_path / "four.png")
    for name, panels in (("poor.png", 2), ("four.png", 1)):
        height, width, _ = imread(tmp_path / name).shape
        assert width > 1.5 * height if panels == 2 else width < 1.5 * height  # a panel each, side by side
    for embeddings in (np.ones((12, 8)), line, line[:4]):
        places = in_the_plane(embeddings, seed=0)
        assert places.shape == (len(embeddings), 2)
        assert np.isfinite(places).all()


def test_many_points_are_thinned_and_many_classes_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def count(embeddings: np.ndarray, _seed: int) -> np.ndarray:
        seen.append(len(embeddings))
        return embeddings[:, :2]

    monkeypatch.setattr("d2dfl.report.drawing.embedding.in_the_plane", count)
    number = MOST + 500
    draws = np.random.default_rng(0)
    names = [str(label) for label in range(len(COLOURS) + 1)]
    draw_embeddings(
        [("a", draws.normal(size=(number, 8)))], draws.integers(len(names), size=number), names, tmp_path / "many.png"
    )
    assert seen == [MOST]
    assert len(set(COLOURS)) == 10


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"path": "picture.jpg"}, "ends in .png, .svg, .pdf"),
        ({"panels": []}, "at least one panel"),
        ({"panels": [("ours", np.zeros((3, 8)))]}, "'ours' have the shape (3, 8): give one row for each of the 12"),
        ({"panels": [("ours", np.full((12, 8), np.nan))]}, "'ours' hold values that are not numbers"),
        ({"labels": np.full(12, 3)}, "labels run from 3 to 3: give whole numbers from 0 to 2"),
        ({"labels": np.zeros(2, dtype=int)}, "cannot place 2 datapoints"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    given = {"panels": [("ours", np.ones((12, 8)))], "labels": np.arange(12) % 3, "path": "picture.png", **changes}
    with pytest.raises(UserError) as error:
        draw_embeddings(given["panels"], given["labels"], NAMES, tmp_path / given["path"])
    assert sentence in str(error.value)
    assert not list(tmp_path.iterdir())
