"""The documentation site: it is built without a complaint, nothing in it leads nowhere, and everything there is is in it."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

import d2dfl
from browser import NEEDED, Tab, chromium
from contrast import CONTRAST
from d2dfl.cli.app import app
from d2dfl.config import Config
from docsite import ROOT
from docsite.messages import sentences
from docsite.notebooks import blocks
from docsite.pages import sources, write_pages
from docsite.tutorials import tutorials

pytest.importorskip("zensical", reason="no Zensical: pip install 'd2dfl[docs]'")


class Page(HTMLParser):
    """Addresses and places of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from docsite.site import build

    return build(tmp_path_factory.mktemp("site"))


def pages_of(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = pages_of(site)
    assert len(pages) > 25
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # a server shows it at any address, so its links are from the root
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto", "javascript"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.is_file()
            place = unquote(parts.fragment)
            if there and place and target.suffix == ".html" and not place.startswith("__"):
                there = place in pages[target].places
            if not there:
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_a_place_that_is_not_there_stops_the_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from docsite.site import build

    found = sources()
    origin, text = found["faq.md"]
    found["faq.md"] = (origin, f"{text}\n[nowhere](privacy.md#nowhere)\n")
    monkeypatch.setattr("docsite.pages.sources", lambda: found)
    with pytest.raises(SystemExit, match="anchor does not exist"):
        build(tmp_path)


def test_a_file_that_is_gone_stops_the_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "# A page\n\n[gone](gone.md)\n"
    monkeypatch.setattr("docsite.pages.sources", lambda: {"a.md": ("docs/a.md", text)})
    with pytest.raises(SystemExit, match="links to docs/gone.md, which is not there"):
        write_pages(tmp_path / "pages")


def test_pages_ask_nobody_for_anything(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\"> ]+)", text) == [], path


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_the_site_opens_as_files_and_is_searched(site: Path, tab: Tab) -> None:
    for page in ("index.html", "reference/settings.html"):
        tab.open(site / page)
        assert tab.run("document.querySelector('h1') !== null")
    tab.open(site / "tutorials" / "own-method.html", width=390, phone=True)
    assert tab.run("document.documentElement.scrollWidth") == 390
    tab.open(site / "tutorials" / "own-method.html", width=1280)
    tab.click(".md-search__button")
    tab.call("Input.insertText", text="retransmissions")
    found = "[...document.querySelectorAll('*')].filter((it) => it.shadowRoot).map((it) => it.shadowRoot.textContent).join(' ')"
    for _ in range(200):
        tab.settle()
        if "result" in tab.run(found):
            break
    assert re.search(r"\d+ results?", tab.run(found))


def test_every_public_name_command_and_setting_is_on_its_page(site: Path) -> None:
    api, commands, settings = (
        Page(site / "reference" / f"{name}.html").words for name in ("api", "commands", "settings")
    )
    assert all(f"d2dfl.{name}" in api for name in d2dfl.__all__)
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]  # a group, which click types as a command
        assert f"d2dfl {name}" in commands
        for item in command.params:
            assert all(option in commands for option in item.opts if option.startswith("--"))
    fields = [
        f"{section.name}.{field.name}"
        for section in dataclasses.fields(Config)
        for field in dataclasses.fields(getattr(Config(), section.name))
    ]
    assert len(fields) > 80
    assert all(field in settings for field in fields)


def test_every_message_is_on_its_page(site: Path) -> None:
    shown = Page(site / "reference" / "messages.html").words
    assert "stopped by Ctrl-C" in shown
    for text in sentences(Path(d2dfl.__file__).parent / "report" / "page" / "data.py"):
        first = re.sub(r"\s+", " ", text.split(": ")[0])
        assert first in shown


def test_sentences_that_a_function_makes_or_of_which_one_is_chosen_are_messages_too(site: Path) -> None:
    shown = Page(site / "reference" / "messages.html").words
    for text in (
        "is not on this machine",  # the first message of many: a data set that nobody has fetched
        "holds no links",
        "holds drop and rss",
        "asks for more of some classes than there is",
    ):
        assert text in shown


def test_every_message_says_what_to_do(site: Path) -> None:
    text = (site.parent / "pages" / "reference" / "messages.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 500
    assert [row for row in rows if len(row) != 2 or not row[1].strip("… ")] == []
    assert "a live page needs the package … | install it with pip install 'd2dfl[live]'" in text


def test_files_of_the_record_are_explained(site: Path) -> None:
    shown = Page(site / "reference" / "files.html").words
    assert "[device] total variation to the data of all devices together, as expected" in shown
    assert "which makes it again" in shown


@pytest.mark.parametrize("path", tutorials(), ids=lambda path: path.stem)
def test_a_notebook_has_the_code_of_its_tutorial(site: Path, path: Path) -> None:
    book = json.loads((site / "tutorials" / f"{path.stem}.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], book["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    code = [block for block in blocks(path.read_text(encoding="utf-8")) if block.kind in ("python", "console")]
    assert len(cells) == len(code) > 2
    for cell, block in zip(cells, code, strict=True):
        wanted = block.content.rstrip("\n")
        wanted = "\n".join(f"!{line}" for line in wanted.splitlines()) if block.kind == "console" else wanted
        assert cell["source"] == wanted
    assert any(cell["outputs"] for cell in cells)


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_what_commands_do_is_not_cut_off(site: Path, tab: Tab) -> None:
    """On the first pages that a newcomer reads every command has its explanation above it, and both are seen whole."""
    for page in ("index", "use"):
        tab.open(site / f"{page}.html", width=1280)
        cut = "[...document.querySelectorAll('.language-sh code')].map((it) => it.scrollWidth - it.clientWidth)"
        widths = tab.run(cut)
        assert len(widths) == 1, page
        assert max(widths) <= 0, page
    shown = Page(site / "use.html").words
    assert "# all methods, the i.i.d. gap each closes, live on a page (downloads 30 MB) d2dfl compare --live" in shown


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_no_command_of_any_page_is_cut_off(site: Path, tab: Tab) -> None:
    """On a wide screen and on a phone: what one is to type is seen whole."""
    cut = "[...document.querySelectorAll('.language-console code')].map((it) => it.scrollWidth - it.clientWidth)"
    seen = 0
    for path in [site / "own-data.html", *sorted((site / "tutorials").glob("*.html"))]:
        for width in (390, 1280):
            tab.open(path, width=width, phone=width < 500)
            widths = tab.run(cut)
            assert max(widths, default=0) <= 0, path.name
            seen += len(widths)
    assert seen > 10


def test_words_and_questions_have_places_to_link_to(site: Path) -> None:
    assert {"gate", "threshold", "reading", "slot", "partition", "share-of-the-gap", "i-i-d-shuffle"} <= Page(
        site / "glossary.html"
    ).places
    assert "how-many-seeds" in Page(site / "faq.html").places


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_settings_say_what_they_are_beside_their_name(site: Path, tab: Tab) -> None:
    """On a phone the rest of the table goes on to the side."""
    tab.open(site / "reference" / "settings.html", width=390, phone=True)
    seen = "document.querySelector('tbody tr td:nth-child(2)').getBoundingClientRect()"
    assert "number of devices" in tab.text("tbody tr td:nth-child(2)")
    assert tab.run(f"{seen}.right") <= 390


def test_every_page_is_in_the_contents(site: Path) -> None:
    told = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:")[1]))
    pages = site.parent / "pages"
    written = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    assert written == told


def test_a_default_does_not_say_where_it_lies_in_memory(site: Path) -> None:
    api = (site.parent / "pages" / "reference" / "api.md").read_text(encoding="utf-8")
    assert "observer: Observer = Observer" in api
    assert " at 0x" not in api


def test_tables_have_heads(site: Path) -> None:
    for name in ("commands", "messages", "settings"):
        text = (site.parent / "pages" / "reference" / f"{name}.md").read_text(encoding="utf-8")
        assert "|  |  |\n|---" not in text


def test_a_link_is_called_as_the_page_it_leads_to(site: Path) -> None:
    start = Page(site / "index.html").words
    assert "Your data on your devices" in start
    assert "docs/own-data.md" not in start


def test_commands_of_own_data_are_commands_of_its_notebook(site: Path) -> None:
    book = json.loads((site / "own-data.ipynb").read_text(encoding="utf-8"))
    commands = [cell["source"] for cell in book["cells"] if cell["source"].startswith("!d2dfl compare --data mine.npz")]
    assert len(commands) == 1
    assert len(commands[0].splitlines()) == 3


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_text_of_the_site_can_be_read(site: Path, tab: Tab, dark: bool, width: int) -> None:
    for page in ("index", "tutorials/own-method", "reference/settings", "reference/messages", "faq", "results/buys"):
        tab.open(site / f"{page}.html", dark=dark, width=width, phone=width < 500)
        assert tab.run("document.body.dataset.mdColorScheme") == (
            "slate" if dark else "default"
        )  # also when it changes
        assert tab.run(CONTRAST) == [], page
        assert tab.run("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
@pytest.mark.parametrize(("width", "picture"), [(390, "exchange-tall.png"), (1280, "exchange.png")])
def test_the_first_page_says_what_it_is_and_where_to_begin(site: Path, tab: Tab, width: int, picture: str) -> None:
    tab.open(site / "index.html", width=width, phone=width < 500)
    shown = tab.run(
        "(() => { const it = document.querySelector('.shown img'); return [it.currentSrc, it.naturalWidth > 0]; })()"
    )
    assert shown[0].endswith(picture)
    assert shown[1]
    assert tab.run("document.querySelector('.shown').scrollWidth <= document.querySelector('.shown').clientWidth")
    bottom = tab.run("document.querySelector('.ways').getBoundingClientRect().bottom")
    assert 0 < bottom < 900  # on the first screen
    ways = tab.run("[...document.querySelectorAll('.ways a')].map((it) => it.textContent)")
    assert ways == ["First run", "Your own data in ten minutes", "Watch a run"]
    assert tab.run("document.querySelectorAll('.cards a').length") == 8


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_the_first_page_is_used_by_keys_alone(site: Path, tab: Tab) -> None:
    tab.open(site / "index.html", width=1280)
    stops = []
    for _ in range(120):
        tab.press("Tab")
        here = tab.run(
            "(() => { const it = document.activeElement; if (it === document.body) return null;"
            " const look = getComputedStyle(it.matches('.md-option') ? it.nextElementSibling : it);"
            " return [it.textContent.trim(), look.outlineStyle !== 'none' || look.boxShadow !== 'none']; })()"
        )
        if here is None:
            break
        stops.append(here)
    names = [name for name, _ in stops]
    assert "Skip to content" in names
    assert {"First run", "First commands", "Watch a run", "Install"} <= set(names)
    assert all(seen for _, seen in stops)


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_tables_and_pictures_that_go_on_to_the_side_say_so(site: Path, tab: Tab) -> None:
    tab.open(site / "reference" / "settings.html", width=390, phone=True)
    wide = (
        "(() => { const it = document.querySelector('.md-typeset__scrollwrap'); return it.scrollWidth > it.clientWidth"
    )
    assert tab.run(f"{wide} && getComputedStyle(it).backgroundAttachment.includes('scroll'); }})()")
    tab.open(site / "results" / "buys.html", width=390, phone=True)
    hint = "getComputedStyle(document.querySelector('p:has(> img:only-child)'), '::before').content"
    assert "goes on to the side" in tab.run(hint)
    tab.open(site / "results" / "buys.html", width=1280, dark=True)
    assert tab.run(hint) == "none"
    assert "invert" in tab.run("getComputedStyle(document.querySelector('p > img:only-child')).filter")


@pytest.mark.skipif(chromium() is None, reason=NEEDED)
def test_no_table_shows_an_empty_head(site: Path, tab: Tab) -> None:
    heads = (
        "[...document.querySelectorAll('thead')].filter((it) => it.checkVisibility() && !it.textContent.trim()).length"
    )
    for page in ("tutorials/index", "own-data", "faq", "CONTRIBUTING"):
        tab.open(site / f"{page}.html")
        assert tab.run(heads) == 0, page
