"""Draw the picture of docs/live.md: the page of a run of `compare --live`, while it goes on.

python dev/live_picture.py            (writes docs/images/live.png; needs Chromium)
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "live")]

from runs import command  # noqa: E402

from browser import browser  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "live.png"
WIDTH, HEIGHT = 1000, 2150  # pixels
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
            tab.settle()
            tab.picture(PICTURE)


if __name__ == "__main__":
    main()
