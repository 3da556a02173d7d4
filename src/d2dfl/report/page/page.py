"""Findings as one web page that works offline: text and tables as markup, charts and maps drawn by a small script.

Own SVG instead of plotly: the page of 28 experiments is a few hundred kilobytes, plotly alone 4.5 MB.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files

from d2dfl.report.look import palettes, slugs, titles, told_apart
from d2dfl.report.page.data import PageEntry
from d2dfl.report.page.html import Html, head, source, tag
from d2dfl.report.page.section import section
from d2dfl.report.page.verdicts import overview

STYLES = ("base.css", "parts.css", "widgets.css", "map.css")
CHARTS = (  # what draws records, here and while a run goes on
    "common.js",
    "save.js",
    "zoom.js",
    "chart.js",
    "bars.js",
    "bundles.js",
    "mapview.js",
    "inspector.js",
    "map.js",
    "tables.js",
    "theme.js",
)


def page(entries: Sequence[PageEntry], title: str = "") -> str:
    """The page as text; without a title it is called by the only record, or by what it is."""
    title = title or (entries[0].findings.title if len(entries) == 1 else "What was found")
    places = [f"s-{name}" for name in slugs(entry.findings.name for entry in entries)]
    records = [entry.findings for entry in entries]
    alone = len(entries) == 1 and title == records[0].title and not records[0].verdicts
    sections = map(section, entries, places, palettes(records), titles(records), [alone] * len(entries))
    verdicts = overview(list(zip(records, places, strict=True)))
    quiet = tag("noscript", tag("p", "Charts and maps need JavaScript; texts and tables do not.", class_="note"))
    main = tag("main", _header(title), quiet, verdicts, *sections, _footer(entries), id="content")
    skip = tag("a", "Skip to the results", href="#content", class_="skip")
    body = tag("body", skip, tag("div", _contents(entries, places), main, class_="page"), Html(_script()))
    return f'<!doctype html>\n<html lang="en">{_head(title)}\n{body}</html>\n'


def asset(name: str) -> str:
    """A style sheet or a script of the page."""
    return (files("d2dfl") / "report" / "page" / "assets" / name).read_text(encoding="utf-8")


def code_of(*texts: str) -> str:
    """Scripts as one, which leaves no name behind."""
    return '(() => {\n"use strict";\n' + "\n".join(texts) + "})();\n"


def _code() -> str:
    return code_of(*map(asset, CHARTS), asset("page.js"))


def _script() -> str:
    return f"<script>{_code()}</script>"


def _head(title: str) -> Html:
    return head(
        title,
        "\n".join(map(asset, STYLES)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        scripts=source(_code()),
    )


def _header(title: str) -> Html:
    """The title: what came out stands right below it."""
    toggle = tag("button", "Dark", type="button", id="theme", aria_label="Switch between light and dark")
    top = tag("div", tag("p", "d2dfl", class_="eyebrow"), toggle, class_="top")
    return tag("header", top, tag("h1", title), class_="masthead")


def _facts(entries: Sequence[PageEntry]) -> Html:
    """What was run, at which scale, and with which versions."""
    facts = [("Findings", ", ".join(entry.findings.name for entry in entries))] if len(entries) > 1 else []
    scales = Counter(entry.findings.scale for entry in entries if entry.findings.scale)
    if scales:
        facts.append(("Scale", _counted(scales, len(entries))))
    versions = Counter(
        ", ".join(f"{name} {version}" for name, version in entry.versions) for entry in entries if entry.versions
    )
    if versions:
        facts.append(("Versions", _counted(versions, len(entries))))
    rows = (tag("div", tag("dt", name), tag("dd", text)) for name, text in facts)
    return tag("dl", *rows, class_="facts") if facts else Html()


def _counted(texts: Counter[str], total: int) -> str:
    """Each text, with how many share it where not all do."""
    if list(texts.values()) == [total]:
        return next(iter(texts))
    return "; ".join(f"{text} ({number} of {total})" for text, number in texts.items())


def _contents(entries: Sequence[PageEntry], places: Sequence[str]) -> Html:
    links = []
    for entry, place, name in zip(entries, places, told_apart([entry.findings for entry in entries]), strict=True):
        found = entry.findings
        number = tag("span", found.figure, class_="figure") if found.figure else Html()
        links.append(tag("li", tag("a", number, tag("span", name), href=f"#{place}")))
    if any(entry.findings.verdicts for entry in entries):
        links.insert(0, tag("li", tag("a", tag("span", "All verdicts"), href="#overview")))
    inside = tag("details", tag("summary", "Contents"), tag("ol", *links))
    return tag("nav", inside, class_="contents", aria_label="Contents")


def _footer(entries: Sequence[PageEntry]) -> Html:
    said = tag("p", "Written by d2dfl from records of findings. The page needs no network.")
    return tag("footer", _facts(entries), said, class_="colophon")
