"""The live page in a real browser: a discovery moment by moment, pause, keys alone, a phone, dark, and text that can be read."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")

import demo_findings as demo
from browser import NEEDED, Tab, chromium
from contrast import CONTRAST
from d2dfl import Network, discover, preset
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.findings.summary import graph_findings
from d2dfl.live.page import live_page
from d2dfl.live.server import LiveServer, served
from d2dfl.live.stand import Stand
from d2dfl.live.views import DiscoveryView, one_chart, put_findings, table_data
from d2dfl.report.findings import Table

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)
SAID = "document.getElementById('status').innerText"
CONFIG = preset("best").with_(**{"network.devices": 12})


def shown(stand: Stand) -> Trace:
    """A discovery and findings, all of which is there."""
    view = DiscoveryView(stand)
    view.begin(CONFIG, ())
    trace = Trace(lambda: view.negotiate(trace))
    discover(Network.generate(CONFIG, 0), CONFIG, trace=trace)
    view.found(trace)
    put_findings(stand, dataclasses.replace(demo.comparison(), maps=(demo.device_map(9),)))
    return trace


@pytest.fixture(scope="module")
def replay() -> Iterator[tuple[LiveServer, Trace]]:
    stand = Stand()
    trace = shown(stand)
    with served(stand, live_page("Replay", replay=True)) as server:
        server.tell("One discovery.")
        yield server, trace


@pytest.fixture
def page(window: Tab, replay: tuple[LiveServer, Trace]) -> Iterator[Tab]:
    """The window; at the end nothing has gone wrong, and nobody but this server was asked for anything."""
    window.errors.clear()
    window.requests.clear()
    yield window
    assert window.errors == []
    assert all(address.startswith((replay[0].address, "data:", "about:")) for address in window.requests)
    window.run("localStorage.clear()")


def opened(tab: Tab, server: LiveServer, **look: Any) -> None:
    tab.open(server.address, **look)
    tab.wait("document.getElementById('words').textContent.startsWith('moment')")


def moment(tab: Tab) -> int:
    return int(tab.text("#words").split()[1])


def test_a_discovery_is_stepped_through(page: Tab, replay: tuple[LiveServer, Trace]) -> None:
    server, trace = replay
    opened(page, server)
    last = len(trace.moments)
    assert page.text("#words").startswith(f"moment {last} of {last}, 100.0")
    links = "Number(document.querySelector('#negotiation .inspector dd').textContent)"
    end = page.run(links)
    page.click("#back")
    assert moment(page) == last - 1
    page.run("document.getElementById('moment').value = 0")
    page.run("document.getElementById('moment').dispatchEvent(new Event('input'))")
    assert moment(page) == 1
    assert page.run("document.getElementById('back').disabled")
    assert page.run(links) < end  # links form
    assert page.run(links) == 0
    page.click("#next")
    assert moment(page) == 2
    assert f"temperature {trace.moments[1].temperature:.4f}" in page.text("#words")
    assert page.run("document.querySelectorAll('#negotiation-charts .crosshair').length") == 2


def test_a_discovery_plays_and_pauses(page: Tab, replay: tuple[LiveServer, Trace]) -> None:
    opened(page, replay[0])
    page.click("#play")  # from the beginning
    page.wait("Number(document.getElementById('moment').value) >= 2")
    assert page.text("#play") == "Pause"
    page.click("#play")
    here = moment(page)
    for _ in range(40):  # longer than a frame
        page.settle()
    assert moment(page) == here
    assert page.text("#play") == "Play"


def test_what_is_chosen_stays_from_moment_to_moment(page: Tab, replay: tuple[LiveServer, Trace]) -> None:
    opened(page, replay[0])
    page.click("#negotiation [data-kind=device]", 3)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert page.text("#negotiation .inspector").startswith("Device 3 ")
    page.click("#negotiation .map-controls [value=before]")
    page.click("#back")
    assert page.text("#negotiation .inspector").startswith("Device 3 ")
    assert page.run("document.querySelector('#negotiation .map-controls [value=before]').ariaPressed") == "true"


def test_everything_is_done_by_keys_alone(page: Tab, replay: tuple[LiveServer, Trace]) -> None:
    opened(page, replay[0])
    wanted = page.run(
        "[...document.querySelectorAll('button, select, input, a[href]')].filter((it) => it.checkVisibility() &&"
        " !it.disabled && !it.matches('[tabindex=\"-1\"]')).length"
    )
    stops: list[Any] = []
    for _ in range(200):
        page.press("Tab")
        here = page.run(
            "(() => { const it = document.activeElement; if (it === document.body) return null;"
            " return [it.tagName, it.id, getComputedStyle(it).outlineStyle !== 'none' || it.matches('.node, svg')]; })()"
        )
        if here is None:
            break
        stops.append(here)
        if here[1] == "moment":
            before = moment(page)
            page.press("ArrowLeft")
            assert moment(page) == before - 1
        if here[1] == "back":
            page.press("Enter")
    assert len([stop for stop in stops if stop[0] in ("BUTTON", "SELECT", "INPUT", "A")]) >= wanted
    assert {"back", "play", "moment", "which", "theme"} <= {stop[1] for stop in stops}
    assert all(seen for _, _, seen in stops)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_text_can_be_read_and_nothing_is_cut(
    page: Tab, replay: tuple[LiveServer, Trace], dark: bool, width: int
) -> None:
    opened(page, replay[0], width=width, phone=width < 500, dark=dark)
    assert page.run(CONTRAST) == []
    assert page.run("document.documentElement.scrollWidth") <= width
    background = page.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(19, 23, 27)") is dark
    if width < 500:
        assert not page.run("document.querySelector('#table .hint').hidden")
    long = (
        "Marginal (ours), seed 1, 25 devices with spectrograms of radio signals, 5 links each"  # as in a reproduction
    )
    page.run(f"document.getElementById('which').options[1].textContent = {long!r}; 1")
    page.run("(() => { const it = document.getElementById('which'); it.value = it.options[1].value; })()")
    assert page.run("document.documentElement.scrollWidth") <= width


def test_a_paused_page_stands_still_and_misses_nothing(window: Tab) -> None:
    window.errors.clear()
    stand = Stand()
    view = DiscoveryView(stand)
    view.step("train", 0.25)
    with served(stand, live_page("A run")) as server:
        window.open(server.address)
        window.wait(f"{SAID}.includes('25')")
        window.click("#hold")
        assert window.text("#hold") == "Go on"
        view.step("train", 0.5)
        window.wait("document.getElementById('hold').ariaPressed === 'true'")
        for _ in range(60):  # well after it has come
            window.settle()
        assert "25" in window.text("#status")
        window.click("#hold")
        window.wait(f"{SAID}.includes('50')")
        server.end("Over.")
        window.wait(f"{SAID}.includes('Over.')")
    assert window.errors == []


def test_a_chart_that_grows_keeps_what_the_reader_chose(window: Tab) -> None:
    window.errors.clear()
    stand = Stand()

    def grown(rounds: int) -> None:
        curve = demo.chart("Accuracy", "accuracy", tuple(range(1, rounds + 1)), "round", 1)
        stand.put("curves", lambda: [one_chart(curve)])

    curves = "document.querySelectorAll('#curves .curve').length"
    parts = "[...document.querySelectorAll('#curves .switch button')].filter((it) => it.checkVisibility()).length"
    grown(2)
    with served(stand, live_page("A run")) as server:
        window.open(server.address)
        window.wait(f"{curves} > 1")
        assert window.run(parts) == 0
        window.click("#curves .legend button", 1)
        before = window.run(curves)
        grown(12)
        stand.settled("curves")
        window.wait(f"{parts} === 3")
        assert window.run(curves) == before
        server.end("Over.")
        window.wait(f"{SAID}.includes('Over.')")
    assert window.errors == []


def test_training_is_seen_first_once_it_begins(window: Tab) -> None:
    """But nothing moves under a reader who steps through a discovery."""
    window.errors.clear()
    order = "[...document.querySelectorAll('section')].filter((it) => !it.hidden).map((it) => it.id)"
    for stepping in (False, True):
        stand = Stand()
        shown(stand)
        stand.put("head", lambda: {"what": "discover", "share": 0.5, "left": ""})
        with served(stand, live_page("A run")) as server:
            window.open(server.address)
            window.wait(f"{order}.length === 3")
            assert window.run(order) == ["negotiation", "training", "numbers"]
            if stepping:
                window.run("(() => { const it = document.getElementById('which'); it.value = it.options[1].value;"
                " it.dispatchEvent(new Event('change')); })()")  # fmt: skip
                window.wait("document.getElementById('words').textContent.startsWith('moment')")
            stand.put("head", lambda: {"what": "train", "share": 0.5, "left": ""})
            stand.settled("head")
            window.wait("document.getElementById('what').textContent === 'train'")
            first = ["negotiation", "training", "numbers"] if stepping else ["training", "numbers", "negotiation"]
            assert window.run(order) == first
            server.end("Over.")
    assert window.errors == []


def test_who_opens_the_page_after_the_run_sees_training_first(window: Tab) -> None:
    """And in a replay the discovery, which is what it is for."""
    window.errors.clear()
    order = "[...document.querySelectorAll('section')].filter((it) => !it.hidden).map((it) => it.id)"
    for again in (False, True):
        stand = Stand()
        shown(stand)
        with served(stand, live_page("A run", replay=again)) as server:
            server.tell("Over.")
            window.open(server.address)
            window.wait(f"{SAID}.includes('Over.')")
            assert window.run(order)[0] == ("negotiation" if again else "training")
    assert window.errors == []


def test_a_discovery_alone_shows_no_empty_section(window: Tab) -> None:
    """Nobody trains in it, and nothing has moved; columns of its table are explained, also when numbers change."""
    window.errors.clear()
    stand = Stand()
    view = DiscoveryView(stand)
    view.begin(CONFIG, ())
    trace = Trace(lambda: view.negotiate(trace))
    result = discover(Network.generate(CONFIG, 0), CONFIG, trace=trace)
    view.found(trace)
    put_findings(stand, graph_findings([result], None), ["marginal"])
    headings = (
        "[...document.querySelectorAll('section > h2')].filter((it) => it.checkVisibility()).map((it) => it.innerText)"
    )
    with served(stand, live_page("Who should receive from whom", replay=True)) as server:
        server.tell("Over.")
        opened(window, server)
        assert window.run(headings) == ["Who sends to whom", "In numbers"]
        # Its last moment is the graph that was found.
        assert window.run("document.querySelectorAll('.map').length") == 1
        assert not window.run("document.getElementById('which').checkVisibility()")  # there is nothing to choose
        assert window.text("#table summary") == "What the columns say"
        window.click("#table summary")
        assert "expected share of datapoints that arrive" in window.text("#table dl")
    assert window.errors == []


def test_the_last_moment_is_the_graph_that_was_found() -> None:
    """To the last number, so that no second map has to show it."""
    view = DiscoveryView(Stand())
    view.begin(CONFIG, ())
    trace = Trace(lambda: view.negotiate(trace))
    result = discover(Network.generate(CONFIG, 0), CONFIG, trace=trace)
    view.found(trace)
    assert view.traces["marginal-seed-0"].layer(trace.moments[-1]) == graph_findings([result], None).maps[0].layers[0]


def test_all_graphs_come_when_no_more_are_looked_for(window: Tab) -> None:
    """Then the map of the newest discovery is that of all methods; who steps through one keeps it."""
    window.errors.clear()
    stand = Stand(lambda: 1e6)
    shown(stand)
    stand.put("head", lambda: {"what": "discover: Marginal", "share": 0.5, "left": ""})
    caption = "document.querySelector('#negotiation-map figcaption').textContent"
    options = "[...document.querySelectorAll('#which option')].map((it) => it.textContent)"
    with served(stand, live_page("A run")) as server:
        window.open(server.address)
        window.wait(f"{options}.length === 2")
        assert window.run(options) == ["as it goes", "Marginal (ours), seed 0"]
        assert window.run(caption) == "Marginal (ours), seed 0"
        assert window.run("document.querySelectorAll('#negotiation-charts .chart').length") == 2
        stand.put("head", lambda: {"what": "train", "share": 0.1, "left": ""})
        stand.settled("head")
        window.wait(f"{caption} === 'Graphs that were found'")
        assert window.run(options) == ["all graphs that were found", "Marginal (ours), seed 0"]
        assert window.run("document.querySelectorAll('.map').length") == 1
        assert window.run("document.querySelectorAll('#negotiation-charts .chart').length") == 0  # of no one method
        choose = "(() => {{ const it = document.getElementById('which'); it.value = it.options[{}].value; it.dispatchEvent(new Event('change')); }})()"
        window.run(choose.format(1))
        window.wait("document.getElementById('words').textContent.startsWith('moment')")
        assert window.run(caption) == "Marginal (ours), seed 0"
        stand.put("head", lambda: {"what": "train", "share": 0.2, "left": ""})
        stand.settled("head")
        window.wait("document.getElementById('share').value === 0.2")
        assert window.run(caption) == "Marginal (ours), seed 0"
        window.run(choose.format(0))
        assert window.run(caption) == "Graphs that were found"
        server.end("Over.")
    assert window.errors == []


def test_a_table_that_grows_stays_sorted(window: Tab) -> None:
    """By the code of the report: largest first, then smallest, then as it was; by a click and by the keyboard."""
    window.errors.clear()
    stand = Stand(lambda: 1e6)

    def grown(*rows: tuple[str, str, str]) -> None:
        table = Table("So far", ("method", "round", "score"), rows, "means", ("", "", "of the last fifth"))
        stand.put("table", lambda: table_data(table))
        stand.settled("table")

    names = "[...document.querySelectorAll('#table tbody th')].map((it) => it.textContent).join()"
    score = "#table thead th:nth-child(3) .sort"
    grown(("a", "1", "0.500"), ("b", "1", "0.700"))
    with served(stand, live_page("A run")) as server:
        window.open(server.address)
        window.wait(f"{names} === 'a,b'")
        window.click(score)
        assert window.run(names) == "b,a"
        window.click("#table summary")
        grown(("a", "2", "0.600"), ("b", "2", "0.650"), ("c", "1", "0.900"), ("d", "–", "–"))
        window.wait(f"{names} === 'c,b,a,d'")
        assert window.run("document.querySelector('#table details').open")
        grown(("a", "3", "1,000"), ("b", "3", "0.650"), ("c", "2", "0.100"), ("d", "1", "0.300"))
        window.wait(f"{names} === 'a,b,d,c'")
        assert window.run("document.querySelector('#table [aria-sort=descending]').textContent") == "score"
        window.run(f"document.querySelector('{score}').focus()")
        window.press("Enter")
        assert window.run(names) == "c,d,b,a"
        assert window.run(f"document.activeElement === document.querySelector('{score}')")
        window.press("Enter")
        assert window.run(names) == "a,b,c,d"
        csv = "document.querySelector('#table .offers button').ariaLabel"
        assert window.run(csv) == "Download So far as CSV"
        server.end("Over.")
    assert window.errors == []


def test_links_of_a_discovery_stay_arrows_of_their_own(window: Tab) -> None:
    """More than open as one arrow between clusters on the page of a run: here one looks at how they form."""
    window.errors.clear()
    stand, config = Stand(), CONFIG.with_(**{"network.devices": 24})
    view = DiscoveryView(stand)
    view.begin(config, ())
    trace = Trace(lambda: view.negotiate(trace))
    found = discover(Network.generate(config, 0), config, trace=trace)
    view.found(trace)
    links = len(found.graph.links[0])
    assert links > 100
    with served(stand, live_page("Replay", replay=True)) as server:
        server.tell("One discovery.")
        opened(window, server)
        window.run("(() => { const it = document.querySelector('#negotiation .least input'); it.value = 0;"
        " it.dispatchEvent(new Event('input')); })()")  # fmt: skip
        assert window.run("document.querySelectorAll('#negotiation .link').length") == links
        assert window.run("document.querySelectorAll('#negotiation .bundle').length") == 0
    assert window.errors == []


@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_being_done_is_read_in_one_line(window: Tab, width: int) -> None:
    window.errors.clear()
    stand = Stand()
    stand.put("head", lambda: {"what": "discover: Marginal", "share": 0.01, "left": "about 11 min left of this part"})
    with served(stand, live_page("A run")) as server:
        window.open(server.address, width=width, phone=width < 500)
        window.wait("document.getElementById('what').textContent.startsWith('discover')")
        for place in ("what", "left"):
            look = f"document.getElementById('{place}')"
            high = f"{look}.getBoundingClientRect().height / parseFloat(getComputedStyle({look}).lineHeight)"
            assert window.run(high) < 1.5, place
        server.end("Over.")
    assert window.errors == []


def test_a_wrong_token_shows_nothing(window: Tab, replay: tuple[LiveServer, Trace]) -> None:
    server, _ = replay
    window.open(server.address.replace(server.token, "x" * len(server.token)))
    said = window.run("document.body.innerText")
    assert "HTTP ERROR 404" in said  # the browser's own words
    assert "Replay" not in said
    assert server.token not in str(window.run("document.documentElement.outerHTML"))
    window.errors.clear()  # the browser minds the 404
