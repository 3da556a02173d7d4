"""What is written on maps: whose circle it is can be read, names do not cover each other, and colours fit any number of classes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import example, plotly_arguments
from matplotlib.path import Path as Outline

from d2dfl import Network, discover, preset, share
from d2dfl.experiment.findings.maps import layer_of, map_of
from d2dfl.report.drawing.labels import (
    _inside,
    beside,
    cluster_places,
    drawable,
    faintness,
    lettering,
    level,
    level_texts,
    link_cuts,
    node_cuts,
    short_names,
)
from d2dfl.report.drawing.map_stage import map_stage
from d2dfl.report.drawing.picture import graph_figure
from d2dfl.report.drawing.scene import _hull, links_of, stage_of
from d2dfl.report.page.map_data import map_data
from d2dfl.report.page.widgets import map_widget


def test_levels_are_those_of_the_paper_for_ten_classes() -> None:
    assert level(np.array([0, 3, 4, 5, 10]), node_cuts(10)).tolist() == [0, 0, 1, 2, 2]
    assert level(np.array([0, 2, 3, 4, 5, 10]), link_cuts(10)).tolist() == [0, 0, 1, 1, 2, 2]
    assert level_texts(node_cuts(10), 10) == ("3 or fewer of 10", "4", "5 or more")
    assert level_texts(link_cuts(10), 10) == ("2 or fewer of 10", "3 to 4", "5 or more")


@pytest.mark.parametrize(
    ("classes", "texts"),
    [
        (2, ("none of 2", "1", "all 2")),
        (3, ("1 or fewer of 3", "2", "all 3")),
        (100, ("39 or fewer of 100", "40 to 49", "50 or more")),
    ],
)
def test_levels_fit_the_number_of_classes(classes: int, texts: tuple[str, ...], tmp_path: Path) -> None:
    assert level_texts(node_cuts(classes), classes) == texts
    assert set(level(np.arange(classes + 1), node_cuts(classes)).tolist()) == {0, 1, 2}
    assert set(level(np.arange(classes + 1), link_cuts(classes)).tolist()) == {0, 1, 2}
    assert level(np.array([0, classes]), node_cuts(classes)).tolist() == [0, 2]
    config = preset("best").with_(
        **{"network.devices": 6, "network.partitions": classes, "network.labels_per_device": 1}
    )
    found = discover(Network.generate(config, 0), config, method="closest")
    figure = found.plot(tmp_path / "graph.html")
    legends = [text.get_text() for artist in figure.axes[0].artists for text in getattr(artist, "texts", [])]
    assert set(texts) <= set(legends)
    assert set(texts) <= {trace.get("name") for trace in plotly_arguments((tmp_path / "graph.html").read_text())[0]}
    widget = str(map_widget([map_of("Map", found.network, [layer_of("Closest", found)])], {"closest": 0}))
    assert all(text in widget for text in level_texts(link_cuts(classes), classes))


def test_a_device_is_what_is_read_first() -> None:
    counts = np.array([4, 5, 6])
    numbers = lettering([], counts)
    assert (numbers.circle, numbers.beside) == (["0", "1", "2"], ["4", "5", "6"])
    assert numbers.sentences() == ["in a circle: device", "beside it: at threshold"]
    named = lettering(["hall", "attic", "a"], counts)
    assert (named.circle, named.beside) == (["4", "5", "6"], ["hall", "attic", "a"])
    assert named.sentences() == ["in a circle: at threshold", "beside it: device"]
    stage = stage_of(example()[0], 400.0)
    assert named.size(stage) > numbers.size(stage) > numbers.size(stage_of(example()[0], 216.0))
    assert lettering(["a", "b", "c"], counts).named_inside
    crowd = lettering([], np.arange(100))
    assert crowd.sentences() == ["in a circle: device"]
    assert not any(crowd.beside)


def test_what_the_font_lacks_is_written_as_escapes() -> None:
    assert drawable(["hall", "日本", "日-3", "日本語屋の店", "a very long name"]) == [
        "hall",
        "\\u65e5\\u672c",
        "\\u65e5-3",
        "\\u65e5\\u672c… #3",
        "a very…name",
    ]


def test_names_that_would_be_cut_alike_keep_their_device_apart() -> None:
    names = ["station 1 in the north", "station 2 in the north", "hall", "a very long name"]
    assert short_names(names) == ["station… #0", "station… #1", "hall", "a very…name"]
    assert drawable(names) == short_names(names)
    thousands = short_names([f"a name that is long, {n}, like others" for n in range(2000)])
    assert len(set(thousands)) == 2000
    assert max(map(len, thousands)) <= 12


def test_a_page_tells_devices_apart_whose_names_begin_and_end_alike() -> None:
    config = preset("best").with_(**{"network.devices": 4})
    network = Network.generate(config, seed=0)
    network = replace(network, device_names=tuple(f"station {n} in the north" for n in range(4)))
    found = discover(network, config, seed=0, method="closest")
    data, _ = map_data(map_of("", network, [layer_of("", found)]), {"closest": 0})
    assert len(set(data["labels"])) == 4


def test_names_of_the_example_do_not_cover_each_other() -> None:
    """The ten cameras of docs/own-data.md."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    loss = np.random.default_rng(0).uniform(0, 0.2, (10, 10))
    result = share(X, y, [f"camera {digit}" for digit in y], links=loss, trust="full", method="closest")
    figure = graph_figure(result.discovery.network, result.graph, result.discovery.evaluation)
    names = [text for text in figure.axes[0].texts if text.get_text().startswith("camera")]
    assert len(names) == 10
    boxes = [text.get_window_extent() for text in names]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    stage = stage_of(result.discovery.network, 400.0)
    half = np.array([[box.width, box.height] for box in boxes]) / 2 - 1
    centres = np.array([text.get_position() for text in names])
    circles = stage.xy + (centres - beside_of(result)).mean(axis=0)
    gaps = np.linalg.norm(np.maximum(np.abs(circles[:, None] - centres) - half, 0), axis=2)
    assert (gaps > 0.8 * stage.radius).all()


def beside_of(result: Any) -> np.ndarray:
    network, graph = result.discovery.network, result.graph
    stage = stage_of(network, 400.0)
    most = float(graph.allocated.sum(axis=2).max())
    letters = lettering(network.device_names, result.discovery.evaluation.labels_satisfied)
    return beside(stage, links_of(network, graph, stage, most), letters)


def test_a_hundred_devices_have_small_circles_faint_links_and_named_hulls() -> None:
    network, graph, evaluation = example(100)
    stage = stage_of(network, 400.0)
    assert 4.0 <= stage.radius < 7.0
    assert faintness(200) < 0.6 < faintness(60) == 1.0
    texts = [text.get_text() for text in graph_figure(network, graph, evaluation).axes[0].texts]
    assert {f"C{name}" for name in range(len(stage.hulls))} <= set(texts)
    assert {str(device) for device in range(100)} <= set(texts)
    links = links_of(network, graph, stage, 1.0)
    places = cluster_places(stage, links, lettering([], evaluation.labels_satisfied))
    assert ((places > 0) & (places < [stage.width, stage.height])).all()


def test_own_links_have_a_map_on_the_page_too() -> None:
    draws = np.random.default_rng(0)
    y = draws.integers(0, 3, 120)
    names = np.array(["attic", "cellar", "hall", "kitchen"])
    result = share(
        draws.normal(size=(120, 4)), y, names[y], devices=list(names), links=draws.random((4, 4)) / 3, trust="full"
    )
    assert result.discovery.network.positions is None
    drawn = map_of("Seed 0", result.discovery.network, [layer_of("Ours", result.discovery)])
    assert drawn.unit == ""
    assert map_stage(drawn, 400.0).points_per_m == 0
    data = json.loads(
        str(map_widget([drawn], {"marginal": 0})).partition('application/json">')[2].partition("</script>")[0]
    )["maps"][0]
    assert data["labels"] == list(names)
    assert not data["inside"]
    assert len(data["places"]) == 4
    assert data["scale"] is None


def test_a_spot_is_inside_as_matplotlib_says() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        hull = _hull(generator.uniform(0, 100, (generator.integers(1, 8), 2)), 9.0)
        spots = generator.uniform(-20, 120, (200, 2))
        assert (_inside(hull, spots) == Outline(hull).contains_points(spots)).all()
        assert (_inside(hull[::-1], spots) == _inside(hull, spots)).all()
