"""Tables as markup. The page's script makes them sortable, offers them as CSV and says where more is to the side."""

from collections.abc import Iterable

from d2dfl.report.findings import Table
from d2dfl.report.look import Colours, slug
from d2dfl.report.page.html import Html, tag

LONG = 16  # rows from which a table scrolls in a box of its own


def boxed(table: str, look: str = "scroll") -> Html:
    """A box in which a wide table scrolls by itself; the keyboard reaches it too."""
    return tag("div", table, class_=look, tabindex="0", role="region", aria_label="Table, scrolls sideways")


def table_figure(table: Table, names: Colours) -> Html:
    """A table, what its columns say, and its note."""
    explained = dict(table.explained)
    head = tag("tr", *(_head(text, explained.get(text, "")) for text in table.columns))
    rows = [
        tag("tr", *(tag("td", text) if index else _named(text, names) for index, text in enumerate(row)))
        for row in table.rows
    ]
    look = "scroll long" if len(rows) > LONG else "scroll"
    inside = tag("table", tag("thead", head), tag("tbody", *rows), class_="numbers", data_name=slug(table.title))
    parts = [boxed(inside, look)]
    if table.explained:
        parts.append(explained_list(said_once(table)))
    if table.note:
        parts.append(tag("p", table.note, class_="note"))
    return tag("figure", tag("figcaption", table.title), *parts, class_="table")


def _head(text: str, meaning: str) -> Html:
    more: dict[str, str] = {"title": meaning} if meaning else {}
    return tag("th", text, scope="col", **more)


def explained_list(meanings: Iterable[tuple[str, str]]) -> Html:
    """What heads stand for, to be unfolded."""
    items = [part for heads, meaning in meanings for part in (tag("dt", heads), tag("dd", meaning))]
    return tag("details", tag("summary", "What the columns say"), tag("dl", *items), class_="columns")


def said_once(table: Table) -> list[tuple[str, str]]:
    """Heads with what they stand for; those that mean the same together."""
    groups: dict[str, list[str]] = {}
    for column, meaning in table.explained:
        groups.setdefault(meaning, []).append(column)
    return [(", ".join(heads), meaning) for meaning, heads in groups.items()]


def _named(text: str, names: Colours) -> Html:
    """The head of a row; a method's has the colour that it has in the charts."""
    if text.lower() not in names:
        return tag("th", text, scope="row")
    look = f"dot {colour_class(names[text.lower()])}"
    return tag("th", tag("i", class_=look, aria_hidden="true"), text, scope="row")


def colour_class(number: int | None) -> str:
    return "grey" if number is None else f"colour{number}"
