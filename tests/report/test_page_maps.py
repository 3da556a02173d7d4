"""The map of the page in a real browser: moments, links by device, cluster and weight, seeds, methods side by side, colours."""

import csv
import dataclasses
import re
from pathlib import Path

import pytest
from reading import choose, count, demo_page, downloaded, written

import demo_findings as demo
from browser import NEEDED, Tab, chromium
from d2dfl.report.findings import Findings

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page(tmp_path_factory.mktemp("tools"))


def test_a_map_shows_moments_and_says_which_numbers_are_expected(tab: Tab, report: Path) -> None:
    tab.open(report)
    layer = demo.device_map().layers[0]
    expected = sum(sum(link.amounts) for link in layer.links)
    went = sum(link.went[0] for link in layer.links)
    said = tab.text(".inspector")
    assert f"Datapoints sent, expected {expected:,.0f} as it went {went:,.0f}" in said
    assert count(tab, ".link") == len(layer.links)
    tab.click(".map-controls [value=before]")
    assert count(tab, ".link") == 0
    counts = "[...document.querySelectorAll('.node .count')].map((it) => Number(it.textContent))"
    assert tab.run(counts) == [3] * 25
    tab.click(".map-controls [value=went]")
    assert count(tab, ".link") == len(layer.links)
    tab.hover("[data-kind=device]", 7)
    assert f"partitions at threshold, as it went distance to i.i.d. {demo.device_map().distance[7]:.2f} →" in tab.text(
        ".inspector"
    )
    assert f"score on its own labels {layer.scores[7]:.3f}" in tab.text(".inspector")


def test_links_are_chosen_by_device_cluster_and_weight(tab: Tab, report: Path) -> None:
    tab.open(report)
    item = demo.device_map()
    links, cluster = item.layers[0].links, item.cluster
    choose(tab, ".map-controls label:nth-of-type(2) select", "d7")
    assert count(tab, ".link") == sum(7 in (link.transmitter, link.receiver) for link in links)
    choose(tab, ".map-controls label:nth-of-type(2) select", "c1")
    touching = [link for link in links if 1 in (cluster[link.transmitter], cluster[link.receiver])]
    assert count(tab, ".link") == len(touching)
    choose(tab, ".map-controls label:nth-of-type(2) select", "")
    choose(tab, ".least input", "200")
    strong = sum(sum(link.amounts) >= 200 for link in links)
    assert 0 < strong < len(links)
    assert count(tab, ".link") == strong
    assert tab.text(".least output") == f"200 datapoints: {strong} of {len(links)} links"
    tab.click(".map-controls .check input")
    pairs = {(cluster[link.transmitter], cluster[link.receiver]) for link in links}
    between = {pair for pair in pairs if pair[0] != pair[1]}
    assert count(tab, ".bundle") == count(tab, ".link") == len(between)
    tab.run("document.querySelector('.bundle .hit').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))")
    assert re.match(r"Cluster C\d → cluster C\d Links \d+ ", tab.text(".inspector"))
    sent = dict.fromkeys(between, 0.0)
    for link in links:
        pair = (cluster[link.transmitter], cluster[link.receiver])
        if pair in sent:
            sent[pair] += sum(link.amounts)
    choose(tab, ".least input", "400")
    strong = sum(amount >= 400 for amount in sent.values())
    assert 0 < strong < len(between)
    assert count(tab, ".bundle") == strong
    assert tab.text(".least output").startswith(f"400 datapoints: {strong} of {len(between)} arrows; ")
    tab.click(".map-controls .check input")
    assert count(tab, ".link") == len(links)


def test_methods_stand_side_by_side_and_every_seed_is_there(tab: Tab, report: Path) -> None:
    tab.open(report)
    layers = demo.device_map().layers
    tab.click(".map .side")
    assert count(tab, ".panel svg") == len(layers)
    assert count(tab, ".link") == sum(len(layer.links) for layer in layers)
    tab.hover(".panel:nth-child(2) [data-kind=device]", 3)
    assert layers[1].title in tab.text(".inspector h4")
    assert count(tab, ".node.chosen") == len(layers)  # the same device everywhere
    tab.click(".map .side")
    assert count(tab, ".panel svg") == 1
    choose(tab, ".map-head select", "1")
    other = demo.comparison().maps[1].layers[0]
    assert count(tab, ".link") == len(other.links)
    assert f"{sum(sum(link.amounts) for link in other.links):,.0f}" in tab.text(".inspector")


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_colours_tell_devices_apart_with_any_number_of_classes(tab: Tab, tmp_path: Path, classes: int) -> None:
    item, devices = demo.device_map(), 25
    names = tuple(f"class {number}" for number in range(classes))
    held = [
        [float((device + 1) * (number <= device * classes // devices)) for number in range(classes)]
        for device in range(devices)
    ]
    rows = tuple(map(tuple, held))
    share = tuple(round(1 - device / devices, 3) for device in range(devices))
    satisfied = tuple(device * (classes + 1) // devices for device in range(devices))
    layer = dataclasses.replace(
        item.layers[0], links=(), after=rows, satisfied=satisfied, distance=share, went=(), went_distance=()
    )
    drawn = dataclasses.replace(
        item, partitions=names, before=rows, threshold=rows, layers=(layer,), distance=tuple([1.0] * devices)
    )
    tab.open(written(tmp_path, Findings("map", "Map", maps=(drawn,))))
    shades = "new Set([...document.querySelectorAll('.node')].map((it) => it.getAttribute('class'))).size"
    assert tab.run(shades) == 5
    choose(tab, ".map-controls label select", "share")
    assert tab.run(shades) >= 2
    assert tab.text(".shades h5") == "Share of partitions at threshold"
    choose(tab, ".map-controls label select", "score")
    assert tab.run(shades) >= 4


def test_names_of_clusters_stand_above_the_links(tab: Tab, report: Path) -> None:
    """Links of a live view come and go where a name is."""
    tab.open(report)
    after = "document.querySelector('.link').compareDocumentPosition(document.querySelector('svg text.cluster')) & 4"
    assert tab.run(after)


@pytest.mark.parametrize("devices", [3, 46, 100, 200])
def test_a_map_of_any_number_of_devices_is_on_the_page(tab: Tab, tmp_path: Path, devices: int) -> None:
    item = dataclasses.replace(
        demo.device_map(devices), devices=tuple(f"station {number}" for number in range(devices))
    )
    tab.open(written(tmp_path, Findings("map", "Map", maps=(item,))))
    assert count(tab, ".node") == devices
    assert "station 2" in tab.run("document.querySelector('.map-controls').textContent")
    tab.run("document.querySelectorAll('[data-kind=device]')[2].focus()")
    tab.settle()
    assert tab.text(".inspector").startswith("Device station 2 ")


def test_long_names_of_classes_are_told_apart(tab: Tab, tmp_path: Path) -> None:
    item = demo.device_map()
    names = tuple(f"a class with a long name {number}" for number in range(len(item.partitions)))
    tab.open(written(tmp_path, Findings("map", "Map", maps=(dataclasses.replace(item, partitions=names),))))
    tab.run("document.querySelectorAll('[data-kind=device]')[0].focus()")
    tab.settle()
    cells = "[...document.querySelectorAll('.inspector .counts th')]"
    shown = tab.run(f"{cells}.map((it) => it.textContent)")
    assert len(set(shown)) == len(shown) > 5
    assert tab.run(f"{cells}.every((it) => it.scrollWidth <= it.clientWidth)")


def test_what_stands_beside_a_flat_map_is_seen_whole(tab: Tab, tmp_path: Path) -> None:
    item = demo.device_map(4)
    places = tuple((300.0 * number, 10.0 * (number % 2)) for number in range(4))
    flat = dataclasses.replace(item, positions=places, layers=item.layers[:2])
    tab.open(written(tmp_path, Findings("map", "Map", maps=(flat,))))
    beside = "document.querySelector('.inspector')"
    assert tab.run(f"{beside}.scrollHeight - {beside}.clientHeight") <= 0


def test_of_many_devices_each_shows_its_colour(tab: Tab, tmp_path: Path) -> None:
    """A rim as broad as that of a large device would leave nothing of a small one."""
    tab.open(written(tmp_path, Findings("map", "Map", maps=(demo.device_map(300),))))
    face = "getComputedStyle(document.querySelector('.node circle.face'))"
    radius, rim = tab.run(f"[parseFloat({face}.r), parseFloat({face}.strokeWidth)]")
    assert 0 < rim <= 0.21 * radius


def test_a_single_map_says_what_it_is(tab: Tab, tmp_path: Path) -> None:
    found = Findings("map", "Map", maps=(demo.device_map(6, title="Seed 3"),))
    tab.open(written(tmp_path, found))
    assert tab.text(".map figcaption").startswith("Who sends to whom, seed 3")


@pytest.mark.parametrize("unit", ["m", ""])
def test_no_device_stands_on_the_scale(tab: Tab, tmp_path: Path, unit: str) -> None:
    item = demo.device_map(3)
    places = ((0.0, 0.0), (0.0, 900.0), (700.0, 900.0))
    layer = dataclasses.replace(item.layers[-1], links=())
    tab.open(
        written(
            tmp_path,
            Findings("map", "Map", maps=(dataclasses.replace(item, positions=places, layers=(layer,), unit=unit),)),
        )
    )
    boxes = "[...document.querySelectorAll('%s')].map((it) => { const b = it.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    for left, top, right, bottom in tab.run(boxes % "svg .scale"):
        for a, b, c, d in tab.run(boxes % ".node .face, .node text"):
            assert c <= left or a >= right or d <= top or b >= bottom


def test_a_map_of_several_networks_says_that_it_shows_one(tab: Tab, report: Path, tmp_path: Path) -> None:
    tab.open(report)
    words = "of one network, {}; a mean of the tables is over all seeds"
    first, second = (item.title for item in demo.comparison().maps)
    assert words.format(first) in tab.text(".inspector")
    choose(tab, ".map-head select", "1")
    assert words.format(second) in tab.text(".inspector")
    tab.open(written(tmp_path, Findings("map", "Map", maps=(demo.device_map(6),))))
    assert "one network" not in tab.text(".inspector")


def test_what_is_saved_of_a_map_says_of_which_network_and_holds_what_is_shown(
    tab: Tab, report: Path, tmp_path: Path
) -> None:
    tab.open(report)
    found = demo.comparison().maps
    names = set()
    for number, item in enumerate(found):
        choose(tab, ".map-head select", str(number))
        folder = tmp_path / str(number)
        folder.mkdir()
        path = downloaded(tab, folder, ".map .offers button", 1)
        names.add(path.name)
        assert len(path.read_text().splitlines()) == 1 + len(item.layers[0].links)
    assert len(names) == 2  # the second does not overwrite the first, and each can be told from the other
    tab.click(".map-head .side")
    folder = tmp_path / "side"
    folder.mkdir()
    rows = list(csv.reader(downloaded(tab, folder, ".map .offers button", 1).read_text().splitlines()))
    assert {row[0] for row in rows[1:]} == {layer.title for layer in found[-1].layers if layer.links}
    assert len(rows) == 1 + sum(len(layer.links) for layer in found[-1].layers)


def test_arrows_between_clusters_are_not_kept_for_a_network_of_one_cluster(tab: Tab, tmp_path: Path) -> None:
    many = demo.device_map(title="many")
    one = dataclasses.replace(many, title="one", cluster=(0,) * len(many.cluster))
    tab.open(written(tmp_path, Findings("map", "Map", maps=(many, one))))
    tab.click(".map-controls .check input")
    assert count(tab, ".bundle") > 0
    choose(tab, ".map-head select", "1")
    assert count(tab, ".map-controls .check") == 0  # nothing to choose
    assert count(tab, ".link") == len(one.layers[0].links)
