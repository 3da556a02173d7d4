"""One record of findings as a section of the page."""

from collections.abc import Sequence

from d2dfl.report.findings import Findings, Table
from d2dfl.report.look import Colours
from d2dfl.report.page.data import PageEntry, picture_uri
from d2dfl.report.page.html import Html, join, tag
from d2dfl.report.page.verdicts import boxed, verdict_table
from d2dfl.report.page.widgets import bars_widget, chart_widget, map_widget


def section(entry: PageEntry, place: str, colours: Colours, names: Colours) -> Html:
    """Everything about one record, in the order in which one reads it; colours of series by name and by title."""
    found = entry.findings
    parts = [
        _heading(found, place),
        verdict_table(found, place),
        _group("grid", [chart_widget(chart, colours) for chart in found.charts]),
        _group("tables", [_table(table, names) for table in found.tables]),
        _group("grid", [bars_widget(bars, names) for bars in found.bars]),
        *(map_widget(item, colours) for item in found.maps),
        _pictures(entry),
        _notes(found),
        _config(found),
    ]
    return tag("section", *parts, id=place, aria_labelledby=f"{place}-title")


def _heading(found: Findings, place: str) -> Html:
    eyebrow = [text for text in (found.figure, found.name, found.scale) if text]
    parts = [tag("p", " · ".join(eyebrow), class_="eyebrow"), tag("h2", found.title, id=f"{place}-title")]
    if found.setting:
        parts.append(tag("p", found.setting, class_="setting"))
    if found.claim:
        parts.append(tag("blockquote", tag("p", found.claim), tag("footer", "the paper"), class_="claim"))
    return tag("header", *parts)


def _table(table: Table, names: Colours) -> Html:
    head = tag("tr", *(tag("th", text, scope="col") for text in table.columns))
    rows = [
        tag("tr", *(tag("td", text) if index else _named(text, names) for index, text in enumerate(row)))
        for row in table.rows
    ]
    parts = [boxed(tag("table", tag("thead", head), tag("tbody", *rows), class_="numbers"))]
    if table.note:
        parts.append(tag("p", table.note, class_="note"))
    return tag("figure", tag("figcaption", table.title), *parts, class_="table")


def _named(text: str, names: Colours) -> Html:
    """The head of a row; a method's has the colour that it has in the charts."""
    if text.lower() not in names:
        return tag("th", text, scope="row")
    look = f"dot {colour_class(names[text.lower()])}"
    return tag("th", tag("i", class_=look, aria_hidden="true"), text, scope="row")


def colour_class(number: int | None) -> str:
    return "grey" if number is None else f"colour{number}"


def _group(kind: str, parts: Sequence[Html]) -> Html:
    return tag("div", *parts, class_=kind) if parts else Html()


def _pictures(entry: PageEntry) -> Html:
    figures = [
        tag(
            "figure",
            tag("figcaption", picture.title),
            tag("img", src=picture_uri(entry.folder, picture), alt=picture.title, loading="lazy"),
            class_="picture",
        )
        for picture in entry.findings.pictures
    ]
    return join(*figures)


def _notes(found: Findings) -> Html:
    if not found.notes:
        return Html()
    return tag("div", tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in found.notes)), class_="notes")


def _config(found: Findings) -> Html:
    if not found.config:
        return Html()
    code = tag("pre", tag("code", found.config), tabindex="0")
    return tag("details", tag("summary", "Configuration"), code, class_="config")
