"""Maps with very many links in a real browser: what is shown first, and arrows between clusters."""

import dataclasses
from pathlib import Path

import pytest
from reading import choose, count, written

import demo_findings as demo
from browser import NEEDED, Tab, chromium
from contrast import CONTRAST
from d2dfl.report.findings import Findings

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)


def crowded() -> Findings:
    """Everybody sends to four others: a hairball."""
    item = demo.device_map()
    links = item.layers[0].links
    more = [
        dataclasses.replace(link, receiver=(link.receiver + step) % 25, amounts=tuple(a + step for a in link.amounts))
        for step in range(1, 5)
        for link in links
        if (link.receiver + step) % 25 != link.transmitter
    ]
    layer = dataclasses.replace(item.layers[0], links=tuple(more))
    return Findings("crowd", "Crowd", maps=(dataclasses.replace(item, layers=(layer,)),))


def test_of_very_many_links_the_strongest_are_shown_first(tab: Tab, tmp_path: Path) -> None:
    found = crowded()
    tab.open(written(tmp_path, found))
    links = len(found.maps[0].layers[0].links)
    assert links > 120
    assert 0 < count(tab, ".link") <= 60
    assert f"of {links} links" in tab.text(".least output")
    choose(tab, ".least input", "0")
    assert count(tab, ".link") == links


def test_the_last_stop_of_the_slider_shows_what_carries_most(tab: Tab, tmp_path: Path) -> None:
    found = crowded()
    layer = found.maps[0].layers[0]
    kinds = len(layer.links[0].amounts)
    links = [dataclasses.replace(link, amounts=(3.4,) + (0.0,) * (kinds - 1)) for link in layer.links]
    most = (dataclasses.replace(links[0], amounts=(14.6,) + (0.0,) * (kinds - 1)), *links[1:])
    item = dataclasses.replace(found.maps[0], layers=(dataclasses.replace(layer, links=most),))
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(item,))))
    choose(tab, ".least input", "1000")  # a browser stops at the largest
    assert count(tab, ".link") == 1


def test_links_that_carry_alike_are_all_shown(tab: Tab, tmp_path: Path) -> None:
    found = crowded()
    item = found.maps[0]
    links = item.layers[0].links
    alike = (4.0, *(0.0 for _ in links[0].amounts[1:]))
    same = [dataclasses.replace(link, amounts=alike) for link in links]
    same[0] = dataclasses.replace(links[0], amounts=(5.0, *alike[1:]))
    few = dataclasses.replace(item.layers[0], title="few", links=tuple(same[1:11]))
    layers = (dataclasses.replace(item.layers[0], links=tuple(same)), few)
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(dataclasses.replace(item, layers=layers),))))
    assert 0 < count(tab, ".bundle") == count(tab, ".link") <= 20
    tab.click(".map-controls .check input")
    assert count(tab, ".link") == len(links)  # not the one that carries 5
    tab.click(".map [role=tab]", 1)
    assert count(tab, ".link") == 10


@pytest.mark.parametrize(("strong", "alike", "links", "bundled"), [(30, 60, 30, False), (20, 60, 80, True)])
def test_what_many_links_carry_is_left_out_where_enough_are_left(
    tab: Tab, tmp_path: Path, strong: int, alike: int, links: int, bundled: bool
) -> None:
    """The strongest 50 reach among those that carry the same; with all of these it would be a tangle."""
    found = crowded()
    item = found.maps[0]
    layer, nothing = item.layers[0], tuple(0.0 for _ in item.partitions[1:])
    amounts = [9.0] * strong + [5.0] * alike
    same = [
        dataclasses.replace(link, amounts=(amount, *nothing))
        for link, amount in zip(layer.links, amounts, strict=False)
    ]
    changed = dataclasses.replace(item, layers=(dataclasses.replace(layer, links=tuple(same)),))
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(changed,))))
    assert (count(tab, ".bundle") > 0) == bundled
    if bundled:
        tab.click(".map-controls .check input")
    assert count(tab, ".link") == links


def test_a_method_with_few_weak_links_shows_half_of_them(tab: Tab, tmp_path: Path) -> None:
    found = crowded()
    item = found.maps[0]
    weak = [
        dataclasses.replace(link, amounts=(float(number), *(0.0 for _ in link.amounts[1:])))
        for number, link in enumerate(item.layers[0].links[:20], start=1)
    ]
    layers = (item.layers[0], dataclasses.replace(item.layers[0], title="weak", links=tuple(weak)))
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(dataclasses.replace(item, layers=layers),))))
    tab.click(".map [role=tab]", 1)
    assert count(tab, ".link") == 10


def test_a_link_counts_amounts_that_are_too_small_to_be_listed(tab: Tab, tmp_path: Path) -> None:
    found = crowded()
    item = found.maps[0]
    link = item.layers[0].links[0]
    small = dataclasses.replace(link, loss=0.0, amounts=(4.03, 0.04, 0.04, *(0.0 for _ in link.amounts[3:])), went=())
    layer = dataclasses.replace(item.layers[0], links=(small,))
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(dataclasses.replace(item, layers=(layer,)),))))
    assert "Datapoints sent, expected 4.1" in tab.text(".inspector")
    tab.hover("[data-kind=device]", small.receiver)
    assert f"{small.trusted} trusted; {item.partitions[0]}: 4" in tab.text(".inspector")
    assert f"{item.partitions[1]}: 0" not in tab.text(".inspector")


def test_a_hairball_opens_with_one_arrow_between_clusters(tab: Tab, tmp_path: Path) -> None:
    item, links = demo.device_map(100), []
    alike = (4.0, *(0.0 for _ in item.partitions[1:]))
    for step in (1, 30, 60):
        links += [
            dataclasses.replace(
                item.layers[0].links[0], transmitter=number, receiver=(number + step) % 100, amounts=alike, went=()
            )
            for number in range(100)
        ]
    layer = dataclasses.replace(item.layers[0], links=tuple(links))
    tab.open(written(tmp_path, Findings("map", "Map", maps=(dataclasses.replace(item, layers=(layer,)),))))
    assert 0 < count(tab, ".bundle") == count(tab, ".link") <= 20
    assert tab.run("document.querySelector('.map-controls .check input').checked")
    seen = "[...document.querySelectorAll('.keys h5')].filter((it) => it.checkVisibility()).map((it) => it.textContent)"
    assert tab.run(seen) == ["Distance to i.i.d.", "Map"]  # arrows have no colours to explain
    assert tab.run(CONTRAST) == []
    tab.click(".map-controls .check input")
    assert count(tab, ".link") == 300
    assert tab.run(seen) == ["Distance to i.i.d.", "Partitions trusted on link", "Map"]


def test_beside_a_hairball_a_method_with_few_links_keeps_its_arrows(tab: Tab, tmp_path: Path) -> None:
    """Most of what goes to the nearest stays inside a cluster: put together, next to nothing would be seen of it."""
    found = crowded()
    item = found.maps[0]
    alike = (4.0, *(0.0 for _ in item.partitions[1:]))
    many = tuple(dataclasses.replace(link, amounts=alike) for link in item.layers[0].links)
    layers = (
        dataclasses.replace(item.layers[0], links=many),
        dataclasses.replace(item.layers[0], title="few", links=many[:30]),
    )
    tab.open(written(tmp_path, dataclasses.replace(found, maps=(dataclasses.replace(item, layers=layers),))))
    checked = "document.querySelector('.map-controls .check input').checked"
    seen = []
    for number in (0, 1, 0):
        tab.click(".map [role=tab]", number)
        seen.append((tab.run(checked), count(tab, ".bundle") > 0, count(tab, ".link") == 30))
    assert seen == [(True, True, False), (False, False, True), (True, True, False)]
    choose(tab, "select:has([value=d3])", "d3")  # its own links, from and to it
    mine = [link for link in many if 3 in (link.transmitter, link.receiver)]
    assert (tab.run(checked), count(tab, ".link")) == (False, len(mine))
    choose(tab, "select:has([value=d3])", "")
    assert tab.run(checked)
    tab.click(".map-controls .check input")  # from now on as the reader wants it
    tab.click(".map [role=tab]", 1)
    tab.click(".map [role=tab]", 0)
    assert not tab.run(checked)
    assert count(tab, ".link") == len(many)


def test_no_device_hides_where_arrows_between_clusters_meet(tab: Tab, tmp_path: Path) -> None:
    """A device in the middle of its cluster, as here the first, would stand on their heads."""
    item = demo.device_map()
    cluster = [device for device, one in enumerate(item.cluster) if one == item.cluster[0]]
    places = [list(place) for place in item.positions]
    others = cluster[1:]
    places[0] = [sum(item.positions[device][axis] for device in others) / len(others) for axis in (0, 1)]
    layers = crowded().maps[0].layers
    drawn = dataclasses.replace(item, positions=tuple(map(tuple, places)), layers=layers)
    tab.open(written(tmp_path, Findings("map", "Map", maps=(drawn,))))
    if not tab.run("document.querySelector('.map-controls .check input').checked"):
        tab.click(".map-controls .check input")
    covered = (
        "[...document.querySelectorAll('.bundle .head')].filter((it) => { const box = it.getBBox();"
        " const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];"
        " return [...document.querySelectorAll('.node .face')].some((one) =>"
        " Math.hypot(one.cx.baseVal.value - x, one.cy.baseVal.value - y) < 0.9 * one.r.baseVal.value); }).length"
    )
    assert count(tab, ".bundle") > 5
    assert tab.run(covered) == 0
