"""One record of findings as a section of the page."""

from collections.abc import Sequence

from d2dfl.report.findings import Findings
from d2dfl.report.look import Colours
from d2dfl.report.page.data import PageEntry, picture_size, picture_uri
from d2dfl.report.page.html import Html, join, tag
from d2dfl.report.page.tables import table_figure
from d2dfl.report.page.verdicts import verdict_sentence, verdict_table
from d2dfl.report.page.widgets import bars_widget, chart_widget, map_widget


def section(entry: PageEntry, place: str, colours: Colours, names: Colours, alone: bool = False) -> Html:
    """Everything about one record, in the order in which one reads it; colours of series by name and by title.

    `alone`: it is the whole page, whose title says already what it is.
    """
    found = entry.findings
    parts = [
        verdict_table(found, place),
        _group("grid", [chart_widget(chart, colours) for chart in found.charts]),
        _group("tables", [table_figure(table, names) for table in found.tables]),
        _group("grid", [bars_widget(bars, names) for bars in found.bars]),
        map_widget(found.maps, colours) if found.maps else Html(),
        _pictures(entry),
        _notes(found),
        _again(found),
    ]
    body = tag("div", *parts, class_="content", id=f"{place}-body")
    return tag(
        "section",
        _heading(found, place, alone),
        body,
        id=place,
        class_="record alone" if alone else "record",
        aria_labelledby=f"{place}-title",
    )


def _heading(found: Findings, place: str, alone: bool) -> Html:
    eyebrow = [text for text in (found.figure, found.name, found.scale) if text]
    unseen = {"class_": "hidden"} if alone else {}
    parts = [tag("h2", found.title, id=f"{place}-title", **unseen)]
    if not alone or found.figure:
        parts.insert(0, tag("p", " · ".join(eyebrow), class_="eyebrow"))
    said = found.takeaway or verdict_sentence(found.verdicts)
    if said:
        parts.append(tag("p", said, class_="takeaway"))
    if found.setting:
        parts.append(tag("p", found.setting, class_="setting"))
    if found.claim:
        parts.append(tag("blockquote", tag("p", found.claim), tag("footer", "the paper"), class_="claim"))
    return tag("header", *parts)


def _group(kind: str, parts: Sequence[Html]) -> Html:
    return tag("div", *parts, class_=kind) if parts else Html()


def _pictures(entry: PageEntry) -> Html:
    figures = [
        tag(
            "figure",
            tag("figcaption", picture.title),
            _image(picture_uri(entry.folder, picture), picture.title),
            class_="picture",
        )
        for picture in entry.findings.pictures
    ]
    return join(*figures)


def _notes(found: Findings) -> Html:
    if not found.notes:
        return Html()
    return tag("div", tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in found.notes)), class_="notes")


def _image(address: str, title: str) -> Html:
    """With its size, where that is known: the page must not grow under somebody who reads it."""
    size = picture_size(address)
    known = {"width": str(size[0]), "height": str(size[1])} if size else {}
    return tag("img", src=address, alt=title, **known)


def _again(found: Findings) -> Html:
    """The command that makes this again, and all settings."""
    command = found.command or (f"d2dfl reproduce {found.name} --scale {found.scale}" if found.claim else "")
    parts = []
    if command:
        parts += [tag("h3", "Make it again"), tag("pre", tag("code", command), tabindex="0", class_="command")]
    if found.config:
        code = tag("pre", tag("code", found.config), tabindex="0")
        parts.append(tag("details", tag("summary", "All settings"), code, class_="config"))
    return tag("div", *parts, class_="again") if parts else Html()
