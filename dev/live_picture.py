"""Draw the picture of docs/live.md: a run of `compare --live` while it trains, one of its discoveries stepped through.

python dev/live_picture.py            (writes docs/images/live.png; needs Chromium)
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "live")]

from runs import command  # noqa: E402  # of the tests, whose folder had to be named first

from browser import browser  # noqa: E402  # likewise

PICTURE = ROOT / "docs" / "images" / "live.png"
WIDTH, HEIGHT = 1240, 1800  # pixels
DISCOVERY, MOMENT = "marginal-seed-0", 15  # that are shown
ROUNDS = 30  # that are trained when the picture is taken
ASKED = ["compare", "--methods", "marginal,closest", "--seeds", "1", "--rounds", "2000", "--set", "discovery.edges=1"]
ASKED += ["--set", "data.allocation=labels:1", "--set", "data.samples=40"]
ROUND = "Number(document.querySelector('#table tbody tr')?.cells[6].textContent.replaceAll(',', '') || 0)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        asked = [*ASKED, "--out", "run", "--live", "--no-browser"]
        with command(*asked, cwd=Path(folder)) as run, browser(Path(profile)) as tab:
            tab.open(run.address, width=WIDTH, height=HEIGHT)
            tab.wait(f"{ROUND} >= {ROUNDS}", 600.0)
            for field, value, event in (("which", DISCOVERY, "change"), ("moment", str(MOMENT), "input")):
                tab.wait(f"document.querySelector('#which option[value={DISCOVERY}]') !== null")
                place = f"document.getElementById('{field}')"
                tab.run(f"{place}.value = '{value}'; {place}.dispatchEvent(new Event('{event}'))")
                tab.wait("document.getElementById('words').textContent.startsWith('moment')")
            tab.settle()
            tab.picture(PICTURE)


if __name__ == "__main__":
    main()
