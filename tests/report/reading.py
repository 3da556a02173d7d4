"""What a reader does with the page, for several tests."""

import json
import time
from pathlib import Path

import demo_findings as demo
from browser import Tab
from d2dfl.report.findings import Findings

LIVE = 200  # waits of a twentieth of a second for a file


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
    for _ in range(LIVE):
        found = [path for path in folder.iterdir() if path.suffix in (".csv", ".svg")]
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("nothing was downloaded")
