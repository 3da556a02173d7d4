"""Keep what `make run` found, and draw README's curves and its picture of the page from what was kept.

    make run && python dev/main_run.py runs/compare && python dev/results.py
    python dev/main_run.py           (draws both pictures from docs/findings/main anew)

docs/findings/main has the tables and charts of the run, without maps. README's main table is written from it by
dev/results.py; curves.png and report.png (which needs Chromium) in docs/images are written here.
"""

import argparse
import dataclasses
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.report.drawing.lines import figure_of, write_figure
from d2dfl.report.findings import Findings
from d2dfl.report.page.data import load_entries
from d2dfl.report.page.page import page as report_page

ROOT = Path(__file__).resolve().parent.parent
RECORD, IMAGES = ROOT / "docs" / "findings" / "main", ROOT / "docs" / "images"
CURVES = IMAGES / "curves.png"
WIDTH, HEIGHT = 1200, 1340  # pixels of the picture of the page
OWNERS = {"marginal": "`marginal` (ours)", "qlearning": "`qlearning` (the paper's)"}
YARDSTICKS = {NO_EXCHANGE: "no exchange", IID: "i.i.d. shuffle of the same data"}
HEAD = (
    "| method | accuracy | against the best other | share of the gap closed | rounds | datapoints moved / lost |",
    "|---|---:|---:|---:|---:|---:|",
)


def keep(folder: Path) -> None:
    """The part of a run's record that the README shows."""
    found = Findings.load(folder)
    if found.name != "comparison":
        raise SystemExit(f"{folder} is no run of `make run`: it holds {found.name!r}")
    RECORD.mkdir(parents=True, exist_ok=True)
    dataclasses.replace(found, maps=(), bars=(), pictures=(), notes=()).save(RECORD)


def main_table() -> list[str]:
    """README's main table: methods from the best down, then the two yardsticks; the best of a column is bold."""
    found = Findings.load(RECORD)
    tables = {table.title: table for table in found.tables}
    values = {row[0]: row[1:] for row in tables["All methods"].rows}
    against = {row[0]: row[2:] for row in tables["Against the best other method"].rows}
    methods = sorted(
        (name for name in values if name not in YARDSTICKS), key=lambda name: -first_number(values[name][0])
    )
    best = [
        max((values[name][0] for name in methods), key=first_number),
        max((values[name][1] for name in methods), key=first_number),
        min((values[name][2] for name in methods), key=first_number),
    ]
    rows = []
    for name in (*methods, *YARDSTICKS):
        shown = [
            f"**{value}**" if name in methods and value == top else value
            for value, top in zip(values[name], best, strict=False)
        ]
        moved = "" if name == IID else " / ".join(values[name][3:5])
        title = YARDSTICKS.get(name) or OWNERS.get(name, f"`{name}`")
        rows.append(
            f"| {title} | {shown[0]} | {', '.join(against.get(name, ()))} | {shown[1]} | {shown[2]} | {moved} |"
        )
    return [*HEAD, *rows]


def first_number(text: str) -> float:
    """Of a cell; one that says nothing is the worst in either order."""
    word = text.split(" ")[0].replace(",", "")
    return float(word) if word.replace(".", "").replace("-", "").isdigit() else float("nan")


def draw_curves(path: Path) -> None:
    """As the run itself draws them."""
    chart = Findings.load(RECORD).charts[0]
    write_figure(figure_of(chart, {NO_EXCHANGE: ":", IID: "--"}), path)


def draw_page() -> None:
    """The top of the page that `d2dfl report docs/findings/main` makes, as a browser shows it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("no Chromium for report.png: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report_page(load_entries([RECORD])), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={WIDTH},{HEIGHT}",
        ]
        offline = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
        picture = f"--screenshot={IMAGES / 'report.png'}"
        subprocess.run(
            [browser, *options, *offline, picture, page.as_uri()], check=True, timeout=120, capture_output=True
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of a finished `make run`; default: what is kept")
    folder = parser.parse_args().folder
    if folder is not None:
        keep(folder)
    draw_curves(CURVES)
    draw_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
