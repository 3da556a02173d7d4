"""Real runs in real browsers: watched by two at once, killed, restarted, stopped."""

import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")

from runs import SMALL, command

from browser import NEEDED, Tab, browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason=NEEDED)
ROUND = "Number(document.querySelector('#table tbody tr')?.cells[6].textContent.replaceAll(',', '') || 0)"
LONG = 400.0  # seconds, where a command starts, compiles and computes on a busy machine
SAID = "document.getElementById('status').innerText"


def test_two_browsers_watch_one_run_to_its_end(window: Tab, tmp_path: Path) -> None:
    window.errors.clear()
    window.requests.clear()
    asked = ["compare", *SMALL, "--seeds", "2", "--rounds", "12", "--out", "run"]
    with (
        command(*asked, "--live", "--no-browser", "--stay", cwd=tmp_path) as run,
        browser(tmp_path / "profile") as other,
    ):
        for tab in (window, other):
            tab.open(run.address)
        for tab in (window, other):
            tab.wait(f"{SAID}.includes('The run has ended. To see it again: d2dfl replay run')", LONG)
            assert tab.run(ROUND) == 12
            titles = tab.run("[...document.querySelectorAll('#training figcaption')].map((it) => it.textContent)")
            assert titles == ["Score against rounds", "Joules by purpose"]
            assert tab.text("#table figcaption") == "All methods"
            for words in ("so far", "So far", "by now", "Nothing has moved"):
                assert words not in tab.text("main")
            assert tab.run("document.querySelectorAll('#training .curve').length") == 4  # two methods, none and i.i.d.
            assert "as it went" in tab.text("#negotiation .inspector")
            assert tab.text("#negotiation-map figcaption") == "Graphs that were found"
            assert tab.run("document.querySelectorAll('.map').length") == 1  # not the same graph twice
            choices = tab.run("[...document.querySelectorAll('#which option')].map((it) => it.textContent)")
            assert choices == [
                "all graphs that were found",
                *(f"{m}, seed {s}" for s in (0, 1) for m in ("Marginal (ours)", "Closest")),
            ]
            assert tab.errors == []
            assert all(address.startswith((run.address, "data:", "about:")) for address in tab.requests)
        window.run(f"location.href = {run.address!r}; 1")  # it stays: who comes later sees it all
        window.wait(f"document.readyState === 'complete' && {SAID}.includes('The run has ended.')")
        assert run.stays()
        assert run.end() == 0
    assert "results: run" in run.said
    assert (tmp_path / "run" / "traces" / "marginal-seed-0.json").exists()


def test_a_killed_run_says_so_and_a_restarted_one_shows_all_rounds(window: Tab, tmp_path: Path) -> None:
    asked = ["compare", *SMALL, "--seeds", "1", "--rounds", "2000", "--out", "run", "--live", "--no-browser"]
    with command(*asked, cwd=tmp_path) as run:
        window.open(run.address)
        window.wait(f"{ROUND} >= 3", LONG)
        window.wait("document.querySelectorAll('#training .curve').length >= 1", LONG)  # drawn by an account of its own
        old = run.address
        run.end(signal.SIGKILL)
        window.wait(f"{SAID}.includes('it was stopped or killed')")
        reached = window.run(ROUND)
        assert reached >= 3
        assert window.run("document.querySelectorAll('#training .curve').length") >= 1  # what was shown stays
    assert all("ERR_" in error for error in window.errors), window.errors  # that the server is gone, and nothing else
    window.errors.clear()
    with command(*asked, "--resume", cwd=tmp_path) as run:
        assert run.address != old
        window.open(run.address)
        window.wait(f"{ROUND} >= 3", LONG)
        first = "document.querySelector('#training .chart svg')"
        window.wait(f"{first} !== null", LONG)  # charts are drawn after the number of the round is there
        window.run(f"{first}.focus()")
        window.press("Home")
        assert window.text("#training .chart .tip").startswith(("round 0 ", "round 1 "))  # also those before the kill
        assert run.end() == 130
        window.wait(f"{SAID}.includes('The run was stopped.')")
    assert window.errors == []


def test_a_reproduction_shows_its_charts_and_discoveries(window: Tab, tmp_path: Path) -> None:
    window.errors.clear()
    asked = ["reproduce", "edges", "--scale", "tiny", "--seeds", "1", "--no-figures", "--workers", "1", "--out", "run"]
    with command(*asked, "--live", "--no-browser", "--stay", cwd=tmp_path) as run:
        window.open(run.address)
        window.wait(f"{SAID}.includes('The run has ended.')", LONG)
        assert window.run("document.querySelectorAll('#training .chart').length") >= 1
        assert window.text("#training figcaption").startswith("edges: ")
        assert re.search(
            r", seed 0, \d+ devices with digits, \d+ links? each$", window.text("#negotiation-map figcaption")
        )
        chosen = window.run("document.querySelectorAll('#which option')[1].value")
        window.run(f"document.getElementById('which').value = {chosen!r}")
        window.run("document.getElementById('which').dispatchEvent(new Event('change'))")
        window.wait("document.getElementById('words').textContent.startsWith('moment')")  # to be stepped through
        assert window.errors == []
        assert run.stays()
        assert run.end() == 0
