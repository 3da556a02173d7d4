"""The page in a real browser: it loads without a complaint, explains what one points at, and fits a phone."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE, everywhere
from reading import demo_page

import demo_findings as demo
from browser import NEEDED, Tab, chromium
from d2dfl.report.findings import Chart, Findings, Map

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page(tmp_path_factory.mktemp("report"))


def look_of(tab: Tab, selector: str, name: str) -> str:
    return str(tab.run(f"getComputedStyle(document.querySelector({json.dumps(selector)})).{name}"))


def test_a_chart_says_its_values_under_the_pointer(tab: Tab, report: Path) -> None:
    tab.open(report)
    assert tab.run("document.querySelector('.chart .tip').hidden")
    tab.hover(".chart svg")
    chart = demo.comparison().charts[0]
    said = tab.text(".chart .tip")
    round_ = int(said.split()[1])
    for line in chart.lines:
        assert f"{line.title} {line.mean[round_ - 1]:.3f} {line.low[round_ - 1]:.3f} to" in said
    tab.run("document.querySelector('.chart svg').focus()")
    tab.press("Home")
    assert tab.text(".chart .tip").startswith("round 1 ")
    tab.press("ArrowRight")
    assert tab.text(".chart .tip").startswith("round 2 ")
    tab.press("Escape")
    assert tab.run("document.querySelector('.chart .tip').hidden")


def test_the_strip_of_methods_does_not_scroll_up_and_down(tab: Tab, report: Path) -> None:
    tab.open(report)
    assert look_of(tab, ".tabs", "overflowY") == "hidden"
    assert look_of(tab, ".tabs", "overflowX") == "auto"


def test_a_legend_hides_a_method(tab: Tab, report: Path) -> None:
    tab.open(report)
    count = "document.querySelector('.chart').querySelectorAll('.curve').length"
    before = tab.run(count)
    tab.click(".chart .legend button", 1)
    assert tab.run(count) == before - 1
    tab.hover(".chart svg")
    assert "Q-learning" not in tab.text(".chart .tip")
    tab.click(".chart .legend button", 1)
    assert tab.run(count) == before


def test_bands_far_wider_than_the_lines_are_left_out_and_said_to_be(tab: Tab, tmp_path: Path) -> None:
    lines = demo.comparison().charts[0].lines[:2]
    wide = dataclasses.replace(lines[1], low=(-9.0,) * 20, high=(9.0,) * 20)
    found = Findings("wide", "Wide", charts=(Chart("t", "round", "y", (lines[0], wide)),))
    demo.write_page([demo.write(found, tmp_path / "run")], tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    assert look_of(tab, ".band", "opacity") == "0.15"
    assert look_of(tab, ".band.wide", "opacity") == "0"
    assert "left out" in tab.text(".chart .note")
    tab.hover(".chart .legend button", 1)
    assert look_of(tab, ".band.wide", "opacity") == "0.3"
    tab.click(".chart .legend button", 1)
    assert tab.run("document.querySelector('.chart .note').hidden")


def test_bands_that_fog_the_beginning_are_left_out_too(tab: Tab, tmp_path: Path) -> None:
    """As of two seeds, that differ while they learn and agree in the end."""
    line = demo.comparison().charts[0].lines[0]
    early = tuple(range(7))
    fog = dataclasses.replace(
        line,
        low=tuple(-3.0 if place in early else mean - 0.01 for place, mean in enumerate(line.mean)),
        high=tuple(3.0 if place in early else mean + 0.01 for place, mean in enumerate(line.mean)),
    )
    found = Findings("fog", "Fog", charts=(Chart("t", "round", "y", (line, fog)),))
    demo.write_page([demo.write(found, tmp_path / "run")], tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    assert tab.run("[...document.querySelectorAll('.band')].map((it) => it.matches('.wide'))") == [False, True]
    tab.click(".chart .switch [value='0.5']")  # there it says something
    assert tab.run("document.querySelectorAll('.band.wide').length") == 0


def test_the_last_number_of_an_axis_is_not_cut(tab: Tab, tmp_path: Path) -> None:
    line = dataclasses.replace(
        demo.comparison().charts[0].lines[0], x=(400.0, 1200.0), mean=(1.0, 2.0), low=(1.0, 2.0), high=(1.0, 2.0)
    )
    found = Findings("axis", "Axis", charts=(Chart("t", "messages", "y", (line,)),))
    demo.write_page([demo.write(found, tmp_path / "run")], tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    out = (
        "(() => { const right = document.querySelector('.chart svg').getBoundingClientRect().right;"
        " return [...document.querySelectorAll('.chart svg text')].map((it) => [it.textContent, it.getBoundingClientRect().right - right]); })()"
    )
    found_out = dict(map(tuple, tab.run(out)))
    assert found_out["1,200"] <= 0


def test_bars_say_their_parts(tab: Tab, report: Path) -> None:
    tab.open(report)
    tab.hover(".bars .row", 1)
    assert "6.8 J" in tab.text(".bars .tip")
    tab.click(".bars .legend button", 0)
    tab.hover(".bars .row", 1)
    assert "6.8 J" not in tab.text(".bars .tip")


def test_a_device_says_what_it_has_gets_and_gives(tab: Tab, report: Path) -> None:
    tab.open(report)
    item, device = demo.device_map(), 7
    tab.hover("[data-kind=device]", device)
    said, layer = tab.text(".inspector"), item.layers[0]
    assert said.startswith(f"Device {device} cluster C{item.cluster[device]}")
    assert f"{layer.satisfied[device]} of 10 partitions" in said
    for name, had, has in zip(item.partitions, item.before[device], layer.after[device], strict=True):
        rounded = [f"{value:.1f}".removesuffix(".0") for value in (had, has)]
        assert f"{name} {' → '.join(dict.fromkeys(rounded))}" in said
    for link in layer.links:
        total = f"{sum(link.amounts):.0f}"
        if link.receiver == device:
            assert f"{total} from device {link.transmitter}" in said
        if link.transmitter == device:
            assert f"{total} to device {link.receiver}" in said
    assert tab.run("document.querySelectorAll('.node.near').length") > 1
    tab.wait("getComputedStyle(document.querySelector('.node:not(.near)')).opacity === '0.35'")
    assert look_of(tab, f"[data-kind=device][data-index='{device}']", "opacity") == "1"  # others fade, not this one


def test_a_link_says_what_moves_over_it(tab: Tab, report: Path) -> None:
    tab.open(report)
    tab.click("[role=tab]", 4)
    layer = demo.device_map().layers[4]
    longest = max(range(len(layer.links)), key=lambda index: layer.links[index].loss)
    link = layer.links[longest]
    place = f"document.querySelector('.link[data-index=\"{longest}\"] .body')"
    tab.run(f"{place}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    x, y = tab.run(
        f"(() => {{ const it = {place}, middle = it.getPointAtLength(it.getTotalLength() / 2);"
        "const at = middle.matrixTransform(it.getScreenCTM()); return [at.x, at.y]; })()"
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.settle()
    said = tab.text(".inspector")
    assert f"Device {link.transmitter} → device {link.receiver}" in said
    assert f"{100 * link.loss:.1f}\u00a0%" in said
    assert f"{link.trusted} of 10 partitions" in said
    assert all(f"{name} {value:.0f}" in said for name, value in zip(demo.CLASSES, link.amounts, strict=True) if value)


def test_methods_are_switched_by_pointer_and_by_keys(tab: Tab, report: Path) -> None:
    tab.open(report)
    layers = demo.device_map().layers
    counts = "[...document.querySelectorAll('.node .count')].map((node) => Number(node.textContent))"
    shown = "[...document.querySelectorAll('.node text:not(.count)')].map((node) => Number(node.textContent))"
    links = "document.querySelectorAll('.link').length"
    for index in (0, 3, 6):
        tab.click("[role=tab]", index)
        assert tab.text(".inspector").startswith(layers[index].title)
        assert tab.run(links) == len(layers[index].links)
        assert tab.run(counts) == list(layers[index].satisfied)
        assert tab.run(shown) == list(range(len(layers[index].satisfied)))
    tab.press("ArrowRight")  # round again
    assert tab.text(".inspector").startswith(layers[0].title)
    assert tab.run("document.activeElement.getAttribute('aria-selected')") == "true"


def test_devices_are_reached_by_keys_and_kept_by_a_click(tab: Tab, report: Path) -> None:
    tab.open(report)
    tab.run("document.querySelector('[role=tab]').focus()")
    for _ in range(12):  # past the controls
        tab.press("Tab")
        if tab.text(".inspector").startswith("Device 0 "):
            break
    assert tab.text(".inspector").startswith("Device 0 ")
    places = set()
    for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        tab.press(key)
        places.add(tab.text(".inspector").split(" cluster")[0])
    assert len(places) > 2
    tab.press("Escape")
    tab.click("[data-kind=device]", 5)
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    tab.settle()
    assert tab.text(".inspector").startswith("Device 5 ")
    tab.click("[role=tab]", 2)
    assert tab.text(".inspector").startswith("Device 5 cluster")
    assert demo.device_map().layers[2].title in tab.text(".inspector h4")


def test_verdicts_are_filtered(tab: Tab, report: Path) -> None:
    tab.open(report)
    shown = "document.querySelectorAll('.overview tbody tr:not([hidden])').length"
    clear = "document.querySelectorAll('.overview tr:not([hidden]) .result:not(.faded)').length"
    kinds = [item.verdict for found in demo.experiments() for item in found.verdicts]
    rows = len(demo.experiments())
    assert (tab.run(shown), tab.run(clear)) == (rows, len(kinds))
    tab.click(".chips [value=good]")
    assert tab.run(clear) == tab.run(shown) == kinds.count("reproduced")
    tab.click(".chips [value='ours']")
    tab.click(".chips [value='']")
    assert (tab.run(shown), tab.run(clear)) == (rows, rows)
    tab.run(
        "(() => { const it = document.querySelector('.filters input'); it.value = 'fig. 8C';"
        " it.dispatchEvent(new Event('input')); })()"
    )
    assert tab.run(shown) == 1
    assert tab.text(".said") == f"1 of {rows} shown"


def test_light_and_dark(tab: Tab, report: Path) -> None:
    light, dark = "rgb(252, 252, 251)", "rgb(19, 23, 27)"
    tab.open(report)
    assert look_of(tab, "body", "backgroundColor") == light
    tab.click("#theme")
    assert look_of(tab, "body", "backgroundColor") == dark
    tab.open(report)
    assert look_of(tab, "body", "backgroundColor") == dark  # as the reader chose
    tab.run("localStorage.clear()")
    tab.open(report, dark=True)
    assert look_of(tab, "body", "backgroundColor") == dark
    tab.click("#theme")
    assert look_of(tab, "body", "backgroundColor") == light


@pytest.mark.parametrize("width", [320, 390, 420, 760, 1120])
def test_no_width_scrolls_sideways(tab: Tab, report: Path, width: int) -> None:
    tab.open(report, width=width, phone=width < 500)
    assert tab.run("document.documentElement.scrollWidth") == width
    tab.hover(".chart svg")
    assert tab.run("document.documentElement.scrollWidth") == width
    tab.hover("[data-kind=device]", 3)
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.run("document.querySelector('.contents details').open") == (width >= 1120)


def test_hostile_texts_do_nothing(tab: Tab, tmp_path: Path) -> None:
    found = everywhere(dataclasses.replace(demo.comparison(), verdicts=demo.experiments()[0].verdicts), HOSTILE)
    demo.write_page([demo.write(found, tmp_path / "run")], tmp_path / "report.html", HOSTILE)
    tab.open(tmp_path / "report.html", width=390, phone=True)
    for selector in (".chart svg", ".bars .row", "[data-kind=device]", ".link .hit"):
        tab.hover(selector)
    assert tab.run("window.pwned") is None
    assert tab.text("h1") == HOSTILE
    assert tab.run("document.documentElement.scrollWidth") == 390


def odd_records() -> dict[str, Findings]:
    """What an experiment hardly gives, but could."""
    line = demo.comparison().charts[0].lines[0]

    def lines(**changes: Any) -> Findings:
        return Findings("odd", "Odd", charts=(Chart("t", "x", "y", (dataclasses.replace(line, **changes),)),))

    one = {"x": (3.0,), "mean": (0.5,), "low": (0.5,), "high": (0.5,)}
    zero = {"x": (0.0,), "mean": (0.0,), "low": (0.0,), "high": (0.0,)}
    huge = {"x": (1.0, 2.0), "mean": (1e99, -1e99), "low": (-1e100, -1e100), "high": (1e100, 1e100)}
    tiny = {"x": (1e-9, 1e-6, 1e-3, 1.0, 1e3), "mean": (1e-12,) * 5, "low": (1e-12,) * 5, "high": (1e-12,) * 5}
    crowd, empty = demo.device_map(300), demo.device_map(3)
    return {
        "one point": lines(**one),
        "zero": lines(**zero),
        "huge": lines(**huge),
        "tiny, in powers": lines(**tiny),
        "no line": Findings("odd", "Odd", charts=(Chart("t", "x", "y", ()),)),
        "no graph": Findings("odd", "Odd", maps=(dataclasses.replace(empty, layers=()),)),
        "a crowd": Findings("odd", "Odd", maps=(crowd, Map("One", (), ((0.0, 0.0),), (0,), ((),), ((),), ()))),
    }


@pytest.mark.parametrize("name", odd_records())
def test_odd_records_are_drawn(tab: Tab, tmp_path: Path, name: str) -> None:
    demo.write_page([demo.write(odd_records()[name], tmp_path / "run")], tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    for selector in (".chart svg", "[data-kind=device]"):
        if tab.run(f"document.querySelector('{selector}') !== null"):
            tab.hover(selector)
    assert "NaN" not in tab.run("document.querySelector('main').innerHTML")
    assert "undefined" not in tab.run("document.querySelector('main').innerHTML")
