"""All pages of the site. No text stands twice: Markdown is taken as it is in the repository, and only its links are turned."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from d2dfl.report.page.data import load_entries
from d2dfl.report.page.page import page as report_page
from docsite import ROOT
from docsite.api import api_page
from docsite.commands import commands_page
from docsite.messages import messages_page
from docsite.notebooks import notebook
from docsite.records import files_page
from docsite.settings import settings_page

# What the code says about itself, by page.
MADE: Mapping[str, Callable[[], str]] = {
    "reference/api.md": api_page,
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/files.md": files_page,
    "reference/messages.md": messages_page,
}
TUTORIALS = (
    "docs/own-data.md",
    *(f"docs/tutorials/{path.name}" for path in sorted((ROOT / "docs/tutorials").glob("*.md"))),
)
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?(?=\))")
BY_FILE = re.compile(r"\[([^\]\s]+\.md)\](?=\()")  # a link that shows where a page lies in the repository
CUT = "## What it buys"  # README is two pages and a list of commands
USE = "## Use it"
READ_ON = "## Read on"
PAGE = "results/page.html"  # what `d2dfl report` makes of the records in docs/findings
WAYS = """<div class="lead" markdown>
Finds which device should receive datapoints from which other one, before federated training starts.
</div>
<div class="ways" markdown>
[First run](docs/tutorials/first-run.md) [Your own data in ten minutes](docs/own-data.md) [Watch a run](docs/live.md)
</div>
"""
READ = """## Read on

<div class="cards" markdown>
[**Tutorials** seven of ten minutes each; each is also a notebook](docs/tutorials/index.md)
[**What it buys** accuracy with and without an exchange, for all methods](site:results/buys.md)
[**Explanations** why it finds good graphs, what crosses which link, privacy, energy](docs/explanations.md)
[**Reference** commands, settings, Python, files, messages](site:reference/commands.md)
[**Results** every claim of the paper, with intervals](docs/results.md)
[**Glossary** what the words mean](docs/glossary.md)
[**Questions** that others had](docs/faq.md)
[**Commands** the twelve that one needs first](site:use.md)
</div>
"""
SHELL = re.compile(r"^```\n((?:(?:make|pip|d2dfl) .*\n)+)```$", re.MULTILINE)
TERM = re.compile(r"^(\*\*([^*]+)\*\*.*)(?=\n:   )", re.MULTILINE)  # of the glossary
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
TALL = "docs/images/exchange-tall.png"
ALL = f'<p><a href="{Path(PAGE).name}">All charts, tables, graphs and verdicts on one page</a></p>'

# What a narrow cell of a table must not break: a sign and its number, and an interval.
NUMBERS = re.compile(r"(?<=[ |])× \d[\d.]*|\[-?\d[\d.,]*, -?\d[\d.,]*\](?!\()")


def sources() -> dict[str, tuple[str, str]]:
    """Page -> file in the repository that its links are relative to, and its text."""
    found = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        found[name] = (f"docs/{name}", path.read_text(encoding="utf-8"))
    for name in ("PAPER.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        found[name] = (name, (ROOT / name).read_text(encoding="utf-8"))
    found |= _readme()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    found["cite.md"] = ("CITATION.cff", f"# Cite\n\n```yaml\n{citation}```\n")
    return found


def _readme() -> dict[str, tuple[str, str]]:
    """The first page, what it buys, and first commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, rest = text.split(CUT)
    buys, rest = rest.split(USE)
    use, read_on = rest.split(READ_ON)
    last = read_on.strip().splitlines()[-1]  # the licence
    turned = {
        "index.md": f"{_welcome(first).rstrip()}\n\n{READ}\n{last}\n",
        "use.md": f"# First commands\n{use}",
        "results/buys.md": f"# What it buys\n\n{ALL}\n{buys}",
    }
    return {name: ("README.md", text) for name, text in turned.items()}


def _welcome(first: str) -> str:
    """The site's first page: two ways in, and README's picture, which stands upright on a narrow screen."""
    title, _, text = first.partition("\n")
    tall = f'<source media="(max-width: 44rem)" srcset="{TALL.removeprefix("docs/")}">'

    def picture(found: re.Match[str]) -> str:
        wide = found[2].removeprefix("docs/")
        return f'<p class="shown"><picture>{tall}<img src="{wide}" alt="{found[1]}"></picture></p>'

    words, image, rest = re.split(r"^(!\[.*\)$)", text, maxsplit=1, flags=re.MULTILINE)
    return f"{title}\n\n{WAYS}\n{PICTURE.sub(picture, image)}\n\n{words.strip()}\n{rest}"


def _explained_first(found: re.Match[str]) -> str:
    """Commands with what each does in a line above it: behind it, a page that is narrower than a terminal cuts it off."""
    lines = []
    for line in found[1].splitlines():
        command, _, said = line.partition("  #")
        lines += ([""] if lines else []) + ([f"# {said.strip()}"] if said else []) + [command.rstrip()]
    return "```sh\n" + "\n".join(lines) + "\n```"


def anchor(term: str) -> str:
    """Where a word of the glossary is."""
    return re.sub(r"[^a-z]+", "-", term.lower()).strip("-")


def write_pages(folder: Path) -> list[Path]:
    """Write every page, notebook and picture."""
    if folder.exists():
        shutil.rmtree(folder)
    pages = sources()
    homes = {source: page for page, (source, _) in pages.items() if source not in ("README.md",)} | {
        "README.md": "index.md"
    }
    titles = {Path(source).name: text.partition("\n")[0].lstrip("# ") for source, text in pages.values()}
    written = []
    for page, (source, text) in pages.items():
        text = SHELL.sub(_explained_first, text)
        if page == "glossary.md":
            text = TERM.sub(lambda match: f"{match[1]} {{: #{anchor(match[2])} }}", text)
        text = BY_FILE.sub(lambda match: f"[{titles.get(Path(match[1]).name, match[1])}]", text)
        text = NUMBERS.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
        more = _notebook(folder, page, source, text) if source in TUTORIALS and not page.endswith("index.md") else ""
        written.append(_write(folder / page, _turned(_titled(text, more), page, source, homes, folder)))
    for picture in (TALL, TALL.replace("-tall", "")):
        _copied(picture, folder, "README.md")
    _write(folder / "assets" / "site.css", Path(__file__).with_name("site.css").read_text(encoding="utf-8"))
    _write(folder / PAGE, report_page(load_entries([ROOT / "docs" / "findings"]), "What was found"))
    for page, make in MADE.items():
        written.append(_write(folder / page, make()))
    return written


def _titled(text: str, more: str) -> str:
    """A line below the title."""
    title, _, rest = text.partition("\n")
    return f"{title}\n{more}{rest}"


def _notebook(folder: Path, page: str, source: str, text: str) -> str:
    """Write the tutorial as a notebook, and say where it is."""
    path = Path(page).with_suffix(".ipynb")
    _write(folder / path, notebook(text, source))
    return f'\n<p class="notebook"><a href="{path.name}" download>as a notebook</a></p>\n'


def _turned(text: str, page: str, source: str, homes: Mapping[str, str], folder: Path) -> str:
    """The same text with links that lead to pages of the site, or to a copy of the file."""

    def turn(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if target.startswith("site:"):
            return os.path.relpath(target.removeprefix("site:"), os.path.dirname(page) or ".") + anchor
        path = os.path.normpath(os.path.join(os.path.dirname(source), target))
        if path in homes or path in MADE or path.removeprefix("docs/") in MADE:
            home = homes.get(path) or path.removeprefix("docs/")
        else:
            home = _copied(path, folder, source)
        return os.path.relpath(home, os.path.dirname(page) or ".") + anchor

    return LINK.sub(turn, text)


def _copied(path: str, folder: Path, source: str) -> str:
    """A file of the repository beside the pages: pictures where they are, others below files/."""
    if not (ROOT / path).is_file():
        raise SystemExit(f"{source} links to {path}, which is not there")
    home = path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"
    (folder / home).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / path, folder / home)
    return home


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
