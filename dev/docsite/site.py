"""The site itself: Zensical makes it from the pages; what it would fetch from elsewhere is put beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from docsite import ROOT
from docsite.pages import write_pages

SHIM = "https://unpkg.com/iframe-worker/shim"  # the theme wants it for the search of a page that is opened as a file
OFFLINE = "assets/javascripts/offline.js"


def build(root: Path = ROOT) -> Path:
    """Write build/pages and build/site below a folder; any warning ends it."""
    write_pages(root / "build" / "pages")
    if root != ROOT:
        shutil.copyfile(ROOT / "mkdocs.yml", root / "mkdocs.yml")
    site = root / "build" / "site"
    if site.exists():
        shutil.rmtree(site)
    program = shutil.which("zensical", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise SystemExit("there is no zensical here: pip install -c constraints.txt '.[docs]'")
    done = subprocess.run(
        [program, "build", "--strict", "--clean"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode or "No issues found" not in done.stdout + done.stderr:
        raise SystemExit(f"zensical found something wrong:\n{done.stdout}{done.stderr}")
    _own_worker(site)
    return site


def _own_worker(site: Path) -> None:
    """Pages must not ask anybody for anything."""
    shutil.copyfile(Path(__file__).with_name("offline.js"), site / OFFLINE)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM, os.path.relpath(site / OFFLINE, page.parent)), encoding="utf-8")
