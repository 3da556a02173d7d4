"""What a reader does with the page, for several tests."""

import json
import time
from pathlib import Path

import demo_findings as demo
from browser import PATIENCE, Tab
from d2dfl.report.findings import Findings


def demo_folders(root: Path) -> list[Path]:
    """A comparison and some experiments as folders."""
    run = demo.write(demo.comparison(), root / "compare")
    (run / "run.json").write_text(json.dumps({"format": 1, "versions": demo.VERSIONS}), encoding="utf-8")
    for found in demo.experiments():
        demo.write(found, root / "reproduce" / found.name)
    return [run, root / "reproduce"]


def demo_page(folder: Path) -> Path:
    """The page of all made-up records."""
    demo.write_page(demo_folders(folder), folder / "report.html")
    return folder / "report.html"


def written(tmp_path: Path, *found: Findings) -> Path:
    folders = [demo.write(item, tmp_path / f"run-{number}") for number, item in enumerate(found)]
    demo.write_page(folders, tmp_path / "report.html")
    return tmp_path / "report.html"


def choose(tab: Tab, selector: str, value: str) -> None:
    """As a reader does it in a list or on a slider."""
    tab.run(
        f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.value = {json.dumps(value)};"
        " it.dispatchEvent(new Event('input', {bubbles: true})); it.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    tab.settle()


def count(tab: Tab, selector: str) -> int:
    return int(tab.run(f"document.querySelectorAll({json.dumps(selector)}).length"))


def downloaded(tab: Tab, folder: Path, selector: str, number: int = 0) -> Path:
    """Click, and wait for the one file that comes."""
    tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.click(selector, number)
    return arrived(folder, ".csv", ".svg")


def arrived(folder: Path, *suffixes: str) -> Path:
    """The one file that comes, once it is whole: a browser takes its name first, with nothing in it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        there = list(folder.glob("*"))
        found = [path for path in there if path.suffix in suffixes and path.stat().st_size]
        if found and len(there) == 1:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("nothing was downloaded")
