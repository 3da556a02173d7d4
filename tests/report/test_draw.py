"""Pictures: every format is valid, the same input gives the same bytes, odd networks are drawn too."""

import base64
import dataclasses
import hashlib
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from drawn import check, example, plotly_arguments
from scipy.spatial.distance import pdist

from d2dfl import __version__
from d2dfl.errors import UserError
from d2dfl.report.drawing.picture import SUFFIXES, _figure, draw_graph, draw_row, graph_figure
from d2dfl.report.drawing.scene import Scene, curves, layout, links_of, stage_of


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_graph_in_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph{suffix}"
    draw_graph(*example(), path, title="Most trusted", subtitle="12 devices")
    check(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [1, 3, 7])
def test_methods_side_by_side(tmp_path: Path, suffix: str, count: int) -> None:
    network, graph, evaluation = example()
    path = tmp_path / f"row{suffix}"
    draw_row(network, [(f"method {index}", graph, evaluation) for index in range(count)], path)
    check(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    network, graph, evaluation = example()
    state = np.random.get_state()[1].tolist()  # noqa: NPY002  # the global state is what is tested
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        draw_graph(dataclasses.replace(network, positions=None), graph, evaluation, path, title="twice")
    assert first.read_bytes() == second.read_bytes()
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002  # the global state is what is tested


@pytest.mark.parametrize("name", ["graph.gif", "graph", "graph.png.txt"])
def test_an_unknown_suffix_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    network, graph, evaluation = example()
    with pytest.raises(UserError, match=r"\.png, \.svg, \.pdf, \.html"):
        draw_graph(network, graph, evaluation, tmp_path / name)
    with pytest.raises(UserError, match=r"\.png, \.svg, \.pdf, \.html"):
        draw_row(network, [("a", graph, evaluation)], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to draw"):
        draw_row(example()[0], [], tmp_path / "row.png")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize(("devices", "links"), [(1, False), (2, True), (12, False)])
def test_few_devices_and_no_links(tmp_path: Path, suffix: str, positions: bool, devices: int, links: bool) -> None:
    network, graph, evaluation = example(devices, links)
    if not positions:
        network = dataclasses.replace(network, positions=None)
    path = tmp_path / f"graph{suffix}"
    draw_graph(network, graph, evaluation, path)
    check(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_300_devices(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph{suffix}"
    draw_graph(*example(300), path, title="many")
    check(path)


@pytest.mark.parametrize("factor", [[1, 0], [0, 1], [0, 0], [1e-7, 1e-7], [1e7, 1e7]])
def test_devices_on_a_line_on_a_spot_or_at_any_scale(tmp_path: Path, factor: list[float]) -> None:
    network, graph, evaluation = example()
    assert network.positions is not None
    network = dataclasses.replace(network, positions=network.positions * factor)
    draw_graph(network, graph, evaluation, tmp_path / "graph.png")
    check(tmp_path / "graph.png")
    assert pdist(stage_of(network, 400.0).xy).min() > 2 * stage_of(network, 400.0).radius


def test_titles_are_text_and_not_markup(tmp_path: Path) -> None:
    network, graph, evaluation = example()
    title = "$x_1 </script><b>" + "long " * 50
    for suffix in SUFFIXES:
        path = tmp_path / f"graph{suffix}"
        draw_row(network, [(title, graph, evaluation), ("b\nc", graph, evaluation)], path)
        check(path)
    assert "&lt;/script&gt;" in plotly_arguments((tmp_path / "graph.html").read_text())[1]["title"]["text"]


def test_a_readers_own_style_changes_nothing(tmp_path: Path) -> None:
    import matplotlib

    draw_graph(*example(), tmp_path / "plain.svg")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": "other"}):
        draw_graph(*example(), tmp_path / "styled.svg")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "styled.svg").read_bytes()


def test_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        draw_graph(*example(), tmp_path / "missing" / "graph.png")


def test_the_page_holds_the_data_and_loads_nothing(tmp_path: Path) -> None:
    network, graph, evaluation = example()
    path = tmp_path / "graph.html"
    draw_graph(network, graph, evaluation, path, title="Most trusted")
    page = path.read_text()
    assert not re.search(r"<(script|img|iframe|link)[^>]*\b(src|href)\s*=(?!\"data:)", page)
    traces, _ = plotly_arguments(page)
    devices, links = traces[-1], next(trace for trace in traces if trace.get("hoverinfo") == "text")
    assert len(devices["x"]) == network.devices
    sender, receiver = graph.edges[0]
    sent = graph.allocated[receiver, 0].sum()
    words = devices["hovertext"][receiver]
    assert f"{evaluation.labels_satisfied[receiver]} of {network.partitions} labels satisfied" in words
    assert f"device {sender} sends it {sent:,.1f}".removesuffix(".0") in words
    partition = int(graph.allocated[receiver, 0].argmax())
    assert f"partition {partition}: " in words
    assert f"<b>Device {sender} → device {receiver}</b>" in links["text"][0]
    assert f"loss probability {graph.drop[receiver, 0]:.1%}" in links["text"][0]


def test_the_words_below_a_picture_are_whole() -> None:
    network, graph, evaluation = example()
    many = dataclasses.replace(
        evaluation, datapoints_moved=29_867.0, datapoints_lost=1_256.0, success_probability=0.958
    )
    words = [text.get_text() for text in graph_figure(network, graph, many).axes[0].texts]
    assert any(text.endswith("29,867 datapoints moved, 1,256 lost (4.2%)") for text in words)


def test_devices_are_called_by_their_names(tmp_path: Path) -> None:
    """Long ones are cut; what the font lacks is written as an escape, without a warning."""
    network, graph, evaluation = example()
    names = ("kitchen", "\u6f22\u5b57", "a\x1b[31m", *(f"sensor-of-floor-{n}" for n in range(3, network.devices)))
    named = dataclasses.replace(network, device_names=names)
    words = [text.get_text() for text in graph_figure(named, graph, evaluation, "", tmp_path / "g.png").axes[0].texts]
    assert {"kitchen", "\\u6f22\\u5b57", "a\\x1b[31m", "sensor-…or-4"} <= set(words)
    draw_graph(named, graph, evaluation, tmp_path / "g.html")
    traces, _ = plotly_arguments((tmp_path / "g.html").read_text())
    assert traces[-2]["text"][:2] == ["<b>kitchen</b>", "<b>\u6f22\u5b57</b>"]
    assert "<b>Device kitchen</b>" in traces[-1]["hovertext"][0]


def test_no_title_is_part_of_a_script(tmp_path: Path) -> None:
    network, graph, evaluation = example()
    titles = ["plain", "</script><script>window.pwned=1</script>", "half \udc80 a character"]
    pages = []
    for title in titles:
        draw_graph(network, graph, evaluation, tmp_path / "graph.html", title=title, subtitle=title)
        pages.append((tmp_path / "graph.html").read_text(encoding="utf-8"))
    policies, scripts = (
        [re.findall(pattern, page, re.DOTALL) for page in pages]
        for pattern in (r'http-equiv="Content-Security-Policy" content="(.*?)"', r"<script>(.*?)</script>")
    )
    assert policies[0] == policies[1] == policies[2]
    assert scripts[0] == scripts[1] == scripts[2]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts[0]]
    assert re.findall(r"script-src (.*?);", unescape(policies[0][0])) == [" ".join(f"'sha256-{it}'" for it in digests)]
    assert len(digests) == 2
    assert policies[0][0].startswith("default-src &#x27;none&#x27;; ")
    assert f'<meta name="generator" content="d2dfl {__version__}">' in pages[0]


@pytest.mark.parametrize("count", [2, 6])
def test_the_page_switches_between_methods(tmp_path: Path, count: int) -> None:
    network, graph, evaluation = example()
    path = tmp_path / "row.html"
    draw_row(network, [(f"method {index}", graph, evaluation) for index in range(count)], path)
    traces, layout_ = plotly_arguments(path.read_text())
    (menu,) = layout_["updatemenus"]
    shown = np.array([button["args"][0]["visible"] for button in menu["buttons"]])
    assert shown.shape == (count, len(traces))
    assert shown[0].tolist() == [trace.get("visible", True) for trace in traces]
    own = shown.sum(axis=0)
    assert set(own.tolist()) == {1, count}  # a trace belongs to one method, or to all
    assert [button["label"] for button in menu["buttons"]] == [f"method {index}" for index in range(count)]


def test_positions_from_losses_are_near_the_true_ones() -> None:
    network = example(60)[0]
    assert network.positions is not None
    assert np.corrcoef(pdist(layout(network)), pdist(network.positions))[0, 1] > 0.95


def test_links_know_trust_and_run_from_sender_to_receiver() -> None:
    network, graph, _ = example()
    stage = stage_of(network, 400.0)
    most = float(graph.allocated.sum(axis=2).max())
    links = links_of(network, graph, stage, most)
    for index, (sender, receiver) in enumerate(graph.edges):
        slot = network.candidates[receiver].tolist().index(sender)
        assert links.trusted[index] == network.trust[receiver, slot].sum()
    ends = curves(stage, links, np.array([0.0, 1.0]))
    np.testing.assert_allclose(ends[:, 0], stage.xy[[pair[0] for pair in graph.edges]])
    np.testing.assert_allclose(ends[:, 1], stage.xy[[pair[1] for pair in graph.edges]])
    amounts = links.amount.sum(axis=1)
    assert (np.argsort(links.width, kind="stable") == np.argsort(amounts, kind="stable")).all()


def test_hulls_hold_their_members() -> None:
    network = example(40)[0]
    stage = stage_of(network, 400.0)
    for name, hull in enumerate(stage.hulls):
        along = np.roll(hull, -1, axis=0) - hull
        for x, y in stage.xy[network.cluster == name]:
            side = along[:, 0] * (y - hull[:, 1]) - along[:, 1] * (x - hull[:, 0])
            assert (side / np.linalg.norm(along, axis=1) > stage.radius).all()


def test_static_pictures_show_the_numbers_of_devices() -> None:
    network, graph, evaluation = example()
    stage = stage_of(network, 400.0)
    figure = _figure([Scene("", network, evaluation, stage, links_of(network, graph, stage, 1.0))], "", 1.0)
    shown = [text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold" and text.get_text()]
    assert shown == [str(device) for device in range(12)]
    beside = [text.get_text() for text in figure.axes[0].texts if text.get_fontsize() == 5.5]
    assert beside == [str(count) for count in evaluation.labels_satisfied]


def test_graphs_and_networks_draw_themselves(tmp_path: Path) -> None:
    network, graph, _ = example()
    figure = graph.plot(network, tmp_path / "graph.png")
    network.plot(str(tmp_path / "network.svg"))
    for name in ("graph.png", "network.svg"):
        check(tmp_path / name)
    assert sum(len(axes.patches) + len(axes.collections) for axes in figure.axes) > sum(
        len(axes.patches) + len(axes.collections) for axes in network.plot().axes
    )
    with pytest.raises(UserError, match="12 devices and the network 5"):
        graph.plot(example(5)[0])
    with pytest.raises(UserError, match="network is a str: give the graph's Network"):
        graph.plot("graph.png")
