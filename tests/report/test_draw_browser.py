"""Pictures of graphs as a page, in a real browser: all of it works under its policy, and nothing else runs."""

import time
from pathlib import Path

import pytest
from drawn import check, example
from reading import arrived

from browser import NEEDED, PATIENCE, Tab, chromium
from d2dfl.report.drawing.picture import draw_graph, draw_row

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)

HOSTILE = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2"><a href="javascript:0">a</a>'
DEVICE = ".scatterlayer .trace:last-child .points path"
RANGE = "document.getElementById('d2dfl')._fullLayout.xaxis.range"


def wait_for(tab: Tab, script: str) -> None:
    end = time.monotonic() + PATIENCE
    while not tab.run(script):
        assert time.monotonic() < end, script
        tab.settle()


@pytest.fixture
def row(tmp_path: Path) -> Path:
    network, graph, evaluation = example()
    _, none, before = example(links=False)
    path = tmp_path / "graphs.html"
    draw_row(network, [("Most trusted", graph, evaluation), ("No exchange", none, before)], path)
    return path


def test_a_device_explains_itself_and_buttons_switch(tab: Tab, row: Path) -> None:
    tab.open(row)
    tab.hover(DEVICE, 3)
    wait_for(tab, "document.querySelectorAll('.hoverlayer text').length > 0")
    assert "Device 3, cluster" in tab.run("document.querySelector('.hoverlayer').textContent")
    assert "Most trusted" in tab.run("document.querySelector('.gtitle').textContent")
    lines = "document.querySelectorAll('.scatterlayer .js-line').length"
    before = tab.run(lines)
    tab.click(".updatemenu-button", 1)
    wait_for(tab, "document.querySelector('.gtitle').textContent.startsWith('No exchange')")
    assert tab.run(lines) < before


def test_it_zooms(tab: Tab, row: Path) -> None:
    tab.open(row)
    low, high = tab.run(RANGE)
    tab.click("[data-title='Zoom in']")
    wait_for(tab, f"{RANGE}[0] > {low} && {RANGE}[1] < {high}")
    x, y = tab.middle(".nsewdrag")
    near = tab.run(RANGE)
    tab.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=300)
    wait_for(tab, f"{RANGE}[1] - {RANGE}[0] > {near[1] - near[0]}")


def test_it_is_downloaded_as_a_picture(tab: Tab, row: Path, tmp_path: Path) -> None:
    folder = tmp_path / "downloads"
    tab.open(row)
    tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.click("[data-title='Download plot as a PNG']")
    wait_for(tab, "(document.querySelector('.plotly-notifier') || document.body).textContent.includes('succeeded')")
    check(arrived(folder, ".png"))


def test_nothing_leads_to_a_server(tab: Tab, row: Path) -> None:
    tab.open(row)
    titles = tab.run("[...document.querySelectorAll('.modebar-btn')].map((it) => it.dataset.title)")
    assert "Download plot as a PNG" in titles
    assert not [title for title in titles if "hare" in title or "loud" in title]
    assert tab.run("[...document.querySelectorAll('a[href]')].length") == 0


def test_hostile_titles_do_nothing(tab: Tab, tmp_path: Path) -> None:
    draw_graph(*example(), tmp_path / "graph.html", title=HOSTILE, subtitle=HOSTILE)
    tab.open(tmp_path / "graph.html")
    tab.hover(DEVICE, 3)
    assert tab.run("window.pwned") is None
    assert tab.run("document.title") == HOSTILE
    assert HOSTILE in tab.run("document.querySelector('.gtitle').textContent")


@pytest.mark.parametrize(
    "evil",
    [
        "<img src=x onerror='window.pwned=1'>",
        "<iframe srcdoc='<script>top.pwned=1</script>'></iframe>",
        "<svg onload='window.pwned=1'></svg>",
    ],
)
def test_what_got_past_the_escaping_would_not_run(tab: Tab, row: Path, evil: str) -> None:
    """The second wall alone, as if a title had become markup when the page was written."""
    text = row.read_text(encoding="utf-8")
    row.write_text(text.replace("<noscript>", f"{evil}<script>window.pwned=2</script><noscript>", 1), encoding="utf-8")
    tab.open(row)
    tab.hover(DEVICE, 3)  # the page itself works all the same
    assert tab.run("window.pwned") is None
    assert any("Content Security Policy" in error for error in tab.errors)
    tab.errors.clear()


def test_no_script_may_call_a_server(tab: Tab, row: Path) -> None:
    tab.open(row)
    call = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert tab.run(call) == "refused"
    assert any("Content Security Policy" in error for error in tab.errors)
    tab.errors.clear()
