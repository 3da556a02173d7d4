"""What a reader does with the page, in a real browser: zoom, sort, take data along, jump, read on a phone, use keys alone."""

import csv
import dataclasses
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from reading import count, demo_page, downloaded, written

import demo_findings as demo
from browser import NEEDED, Tab, chromium
from contrast import CONTRAST

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page(tmp_path_factory.mktemp("tools"))


def test_what_came_out_stands_above_the_charts(tab: Tab, report: Path) -> None:
    tab.open(report)
    section = "#s-compare"
    assert tab.text(f"{section} .takeaway") == demo.comparison().takeaway
    place = "document.querySelector('{}').getBoundingClientRect().top"
    assert tab.run(place.format(f"{section} .takeaway")) < tab.run(place.format(f"{section} .chart"))
    assert tab.text(f"{section} .command") == demo.comparison().command
    assert tab.text("#s-energy .command") == "d2dfl reproduce energy --scale paper"
    assert (
        tab.text("#s-energy .takeaway")
        == "Reproduced: paper's learner 0 of 1 verdict and 1 in direction; ours 1 of 1 verdict."
    )


def test_what_all_records_say_is_on_the_first_screen(tab: Tab, report: Path) -> None:
    for width, height in ((1280, 900), (390, 844)):
        tab.open(report, width=width, height=height, phone=width < 500)
        said = tab.run("document.querySelector('#overview .takeaway').getBoundingClientRect().bottom")
        assert 0 < said < 0.6 * height
        foot = tab.run("document.querySelector('.facts').compareDocumentPosition(document.querySelector('#overview'))")
        assert foot & 2  # the overview comes before what was run


def ticks(tab: Tab) -> list[float]:
    """Numbers at the ticks of the axis of the first chart that go up."""
    texts = tab.run(
        "[...document.querySelectorAll('#s-compare .chart:first-child svg g[aria-hidden] text[text-anchor=end]')].map((it) => it.textContent)"
    )
    return [float(text) for text in texts]


def test_the_end_of_a_chart_can_be_seen_alone(tab: Tab, report: Path) -> None:
    tab.open(report)
    whole = max(ticks(tab)) - min(ticks(tab))
    tab.click(".chart .switch [value='0.5']")
    assert max(ticks(tab)) - min(ticks(tab)) < 0.6 * whole
    tab.run("document.querySelector('.chart svg').focus()")
    tab.press("Home")
    assert tab.text(".chart .tip").startswith("round 11 ")
    tab.press("End")
    assert tab.text(".chart .tip").startswith("round 20 ")
    tab.click(".chart .switch [value='1']")
    assert max(ticks(tab)) - min(ticks(tab)) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("rounds", "parts"), [(3, []), (4, ["all", "last half"]), (10, ["all", "last half", "last fifth"])]
)
def test_short_curves_have_an_end_too(tab: Tab, tmp_path: Path, rounds: int, parts: list[str]) -> None:
    curve = demo.chart("Accuracy over rounds", "accuracy", tuple(range(1, rounds + 1)), "round", 1)
    tab.open(written(tmp_path, dataclasses.replace(demo.comparison(), charts=(curve,))))
    shown = "[...document.querySelectorAll('.chart .switch button')].filter((it) => it.checkVisibility()).map((it) => it.textContent)"
    assert tab.run(shown) == parts


def test_a_part_of_a_chart_is_chosen_by_dragging(tab: Tab, report: Path) -> None:
    tab.open(report)
    x, y = tab.middle(".chart svg")
    for kind, at in (("mousePressed", x - 100), ("mouseMoved", x), ("mouseReleased", x)):
        tab.call("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", clickCount=1)
    tab.settle()
    tab.run("document.querySelector('.chart svg').focus()")
    tab.press("Home")
    first = int(tab.text(".chart .tip").split()[1])
    tab.press("End")
    assert 1 < first < int(tab.text(".chart .tip").split()[1]) < 20
    tab.click(".chart .controls .plain")
    tab.run("document.querySelector('.chart svg').focus()")
    tab.press("Home")
    assert tab.text(".chart .tip").startswith("round 1 ")


def test_lines_have_names_at_their_ends_and_bands_can_go(tab: Tab, report: Path) -> None:
    tab.open(report, width=1280)
    names = tab.run(
        "[...document.querySelectorAll('#s-compare .chart:first-child .end-names text')].map((it) => it.textContent)"
    )
    titles = [line.title for line in demo.comparison().charts[0].lines]
    assert len(names) == len(titles)
    assert sorted(names) == sorted(titles)  # whole, also where two charts stand side by side
    tops = tab.run(
        "[...document.querySelectorAll('#s-compare .chart:first-child .end-names text')].map((it) => it.getBoundingClientRect().top)"
    )
    assert min(b - a for a, b in zip(sorted(tops), sorted(tops)[1:], strict=False)) >= 10
    assert count(tab, "#s-compare .chart:first-child .band") == len(titles)
    tab.click(".chart .check input")
    assert count(tab, "#s-compare .chart:first-child .band") == 0
    tab.open(report, width=390, phone=True)
    assert count(tab, "#s-compare .chart:first-child .end-names text") == 0  # no room: the legend has them


def test_tables_are_sorted_by_numbers_and_back(tab: Tab, report: Path) -> None:
    tab.open(report)
    column = "[...document.querySelectorAll('#s-compare .numbers tbody tr')].map((row) => row.cells[4].textContent)"
    given = [row[4] for row in demo.comparison().tables[0].rows]
    falling = ["12,010", "5,340", "986", "7", "4", "0", "–"]
    assert tab.run(column) == given
    button = "#s-compare .numbers thead th:nth-child(5) .sort"
    tab.click(button)
    assert tab.run(column) == falling
    tab.click(button)
    assert tab.run(column) == [*falling[-2::-1], "–"]
    assert tab.run("document.querySelector('[aria-sort=ascending]').textContent") == "moved"
    tab.click(button)
    assert tab.run(column) == given
    tab.click("#s-compare .columns summary")
    assert "gap closed share of the way from none to iid" in tab.text("#s-compare .columns dl")


def test_numbers_can_be_taken_along(tab: Tab, report: Path, tmp_path: Path) -> None:
    tab.open(report)
    folders = [tmp_path / name for name in ("table", "chart", "map")]
    for folder in folders:
        folder.mkdir()
    table = downloaded(tab, folders[0], "#s-compare .table .offers button")
    assert [tuple(row) for row in csv.reader(table.read_text().splitlines())][1:] == list(
        demo.comparison().tables[0].rows
    )
    chart = downloaded(tab, folders[1], "#s-compare .chart .offers button", 1)
    rows = list(csv.reader(chart.read_text().splitlines()))
    line = demo.comparison().charts[0].lines[0]
    assert rows[0][:4] == ["round", line.title, f"{line.title} low", f"{line.title} high"]
    assert [float(row[1]) for row in rows[1:]] == pytest.approx(line.mean, rel=1e-5)
    links = list(csv.reader(downloaded(tab, folders[2], ".map .offers button", 1).read_text().splitlines()))
    assert len(links) == 1 + len(demo.device_map().layers[0].links)
    assert links[0][-3:] == ["expected", "sent", "arrived"]


def test_drawings_can_be_taken_along(tab: Tab, report: Path, tmp_path: Path) -> None:
    tab.open(report)
    path = downloaded(tab, tmp_path, "#s-compare .chart .offers button")
    root = ElementTree.parse(path).getroot()
    curves = [
        item for item in root.iter("{http://www.w3.org/2000/svg}path") if item.get("stroke") not in (None, "none")
    ]
    assert len({item.get("stroke") for item in curves}) >= len(demo.METHODS)  # colours need no style sheet
    assert root.get("width")
    assert "class=" not in path.read_text()


def test_the_exchange_has_its_own_bars(tab: Tab, report: Path) -> None:
    tab.open(report)
    totals = "[...document.querySelectorAll('.bars .total')].map((it) => Number(it.textContent))"
    parts = demo.comparison().bars[0].values
    assert tab.run(totals) == pytest.approx([float(f"{sum(bar):.3g}") for bar in zip(*parts, strict=True)])
    tab.click(".bars .switch [value=exchange]")
    assert tab.run(totals) == pytest.approx(parts[0])
    tab.click(".bars .switch [value=all]")
    assert tab.run(totals)[1] == pytest.approx(sum(bar[1] for bar in parts), rel=1e-2)


def test_one_switch_shows_what_holds_for_whom(tab: Tab, report: Path) -> None:
    tab.open(report)
    seen = "[...document.querySelectorAll('.result')].filter((it) => it.offsetParent).map((it) => it.dataset.system)"
    assert set(tab.run(seen)) == {"ours", "paper's learner"}
    everybody = tab.text("#overview [data-view=all] .setting")
    for value, system, kinds in (("ours", "ours", "2 reproduced"), ("paper", "paper's learner", "5 direction only")):
        tab.click(f".learner [value={value}]")
        assert set(tab.run(seen)) == {system}
        assert kinds in tab.text(f"#overview [data-view={value}] .setting")
    tab.click(".learner [value=all]")
    assert tab.text("#overview [data-view=all] .setting") == everybody
    assert tab.text(".matrix tbody").startswith("paper's learner 0 5 0 ours 2 2 1")


def test_who_is_neither_learner_is_counted_with_everybody_alone(tab: Tab, tmp_path: Path) -> None:
    """As `message passing`: above the table, what it reproduces is in neither learner's numbers."""
    found = demo.experiments()[0]
    other = dataclasses.replace(found.verdicts[0], system="message passing")
    tab.open(written(tmp_path, dataclasses.replace(found, verdicts=(*found.verdicts, other))))
    rows = "[...document.querySelectorAll('.matrix tbody th')].filter((it) => it.checkVisibility()).map((it) => it.textContent)"
    assert "message passing" in tab.run(rows)
    for value in ("ours", "paper"):
        tab.click(f".learner [value={value}]")
        assert len(tab.run(rows)) == 1
        assert "message passing" not in tab.run(rows)


def lands(tab: Tab, place: str) -> float:
    """Where a section begins, in points from the top of the window."""
    return float(tab.run(f"document.getElementById({json.dumps(place)}).getBoundingClientRect().top"))


@pytest.mark.parametrize("width", [390, 1280])
def test_anchors_land_at_their_section(tab: Tab, report: Path, width: int) -> None:
    tab.open(report, width=width, phone=width < 500)
    places = tab.run("[...document.querySelectorAll('.contents a')].map((it) => it.hash.slice(1))")
    for place in places:
        tab.run(f"document.querySelector('.contents a[href=\"#{place}\"]').click()")
        for _ in range(5):
            tab.settle()
        most = tab.run("document.documentElement.scrollHeight - innerHeight - scrollY")
        assert abs(lands(tab, place)) <= 14 or most <= 1, place
    address = f"{report.resolve().as_uri()}#s-dynamic"
    tab.run(f"location.href = {json.dumps(address)}; 1")
    tab.call("Page.reload")
    for _ in range(5):
        tab.settle()
    most = tab.run("document.documentElement.scrollHeight - innerHeight - scrollY")
    assert abs(lands(tab, "s-dynamic")) <= 14 or most <= 1


def test_a_phone_opens_what_one_asks_for_and_says_where_tables_go_on(tab: Tab, report: Path) -> None:
    tab.open(report, width=390, phone=True)
    high = tab.run("document.documentElement.scrollHeight")
    assert tab.run("[...document.querySelectorAll('.content')].every((it) => it.hidden)")
    tab.click("#s-compare .unfold")
    assert not tab.run("document.querySelector('#s-compare .content').hidden")
    assert tab.run("document.documentElement.scrollHeight") > high
    hint = (
        "(() => { const it = document.querySelector('#s-compare .hint'); return [it.hidden, it.offsetHeight > 0]; })()"
    )
    assert tab.run(hint) == [False, True]
    tab.run("document.querySelector('#s-compare .scroll').scrollLeft = 5000")
    tab.settle()
    assert tab.run("document.querySelector('#s-compare .hint').classList.contains('done')")
    tab.run("location.hash = '#s-energy'")
    for _ in range(3):
        tab.settle()
    assert not tab.run("document.querySelector('#s-energy .content').hidden")
    tab.open(report, width=1280)
    assert not tab.run("[...document.querySelectorAll('.content')].some((it) => it.hidden)")
    assert tab.run("[...document.querySelectorAll('#s-compare .hint')].every((it) => it.hidden)")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_text_can_be_read(tab: Tab, report: Path, dark: bool, width: int) -> None:
    tab.open(report, width=width, phone=width < 500, dark=dark)
    tab.run("document.querySelectorAll('details').forEach((it) => (it.open = true))")
    tab.run("document.querySelectorAll('.unfold[aria-expanded=false]').forEach((it) => it.click())")
    for moment in ("before", "expected"):
        tab.click(f".map-controls [value={moment}]")
        assert tab.run(CONTRAST) == []


def test_everything_is_reached_by_keys_alone(tab: Tab, tmp_path: Path) -> None:
    """Tab through a page once: whatever can be clicked is stopped at, and seen to be."""
    found = dataclasses.replace(demo.comparison(), charts=demo.comparison().charts[:1], maps=(demo.device_map(5),))
    tab.open(written(tmp_path, found))
    wanted = tab.run(
        "[...document.querySelectorAll('button, select, input, summary, a[href]')].filter((it) => it.checkVisibility() &&"
        " !it.matches('[tabindex=\"-1\"]') && !it.closest('.contents summary')).length"
    )
    stops: list[Any] = []
    for _ in range(200):
        tab.press("Tab")
        here = tab.run(
            "(() => { const it = document.activeElement; if (it === document.body) return null;"
            " const face = it.querySelector(':scope > circle.face'), seen = getComputedStyle(it);"
            " const ring = face && getComputedStyle(face).stroke === getComputedStyle(document.body).color;"
            " return [it.tagName, (seen.outlineStyle !== 'none' || ring) && seen.opacity === '1']; })()"
        )
        if here is None:
            break
        stops.append(here)
    clicked = [stop for stop in stops if stop[0] in ("BUTTON", "SELECT", "INPUT", "SUMMARY", "A")]
    assert len(clicked) >= wanted
    assert all(seen for _, seen in stops)
