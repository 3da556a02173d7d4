"""What figures and the page share: a method's colour, the kind of an axis, names for files and places."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from d2dfl.discovery.methods import IID, IID_TITLE, METHODS, NO_EXCHANGE
from d2dfl.report.findings import Chart, Findings

# Of methods, in the order they come; then that of i.i.d. data, the yardstick that they strive for. No exchange is grey.
COLOURS = ("#0b7a75", "#c8471c", "#efb03f", "#5b7fb5", "#a86fa3", "#6a994e", "#8c6d46", "#333f4d", "#d58aa0", "#6b35c9")
GREY = "#8a94a0"
IID_COLOUR = len(COLOURS) - 1
DOTTED, DASHED = NO_EXCHANGE, IID
# Parts of a stacked bar are not methods, so they have shades of their own: light beside dark, for any colour vision.
PARTS = ("#5f7f6f", "#a9c3a0", "#d9a65a", "#3d5a80", "#98b9d8", "#b4bbc4")


Colours = dict[str, int | None]  # numbers in COLOURS; None is grey


def palettes(records: Sequence[Findings]) -> list[Colours]:
    """The colours of the series of every record, by name.

    A method has the same colour everywhere, and so has another series that is in several of the records; what is only in
    one record takes colours that are free there.
    """
    learners = [name for name in METHODS if name != DOTTED]
    found: Colours = {name: number % IID_COLOUR for number, name in enumerate(learners)}
    found |= {DOTTED: None, DASHED: IID_COLOUR}
    names = [[name for _, name in _series(record)] for record in records]
    records_of = Counter(name for group in names for name in set(group))
    everyone = [name for group in names for name in group]
    found |= _coloured([name for name in everyone if records_of[name] > 1], everyone, found)
    return [found | _coloured(group, group, found) for group in names]


def titles(records: Sequence[Findings]) -> list[Colours]:
    """The same by what a series is called, in small letters: for labels in tables and beside bars."""
    colours = palettes(records)
    own = [
        {title.lower(): mine[name] for title, name in _series(record)}
        for record, mine in zip(records, colours, strict=True)
    ]
    known = {text.lower(): colours[0][name] for name, method in METHODS.items() for text in (name, method.title)}
    known[DASHED] = known[IID_TITLE] = IID_COLOUR
    for mine in own:
        known = mine | known
    return [known | mine for mine in own]


def _coloured(names: Sequence[str], around: Sequence[str], found: Colours) -> Colours:
    """Colours for names that have none yet: those that no name around them has, while there are."""
    taken = {found[name] for name in around if name in found}
    free = [number for number in range(IID_COLOUR) if number not in taken] or list(range(IID_COLOUR))
    strangers = [name for name in dict.fromkeys(names) if name not in found]
    return {name: free[index % len(free)] for index, name in enumerate(strangers)}


def _series(findings: Findings) -> list[tuple[str, str]]:
    """Title and name of every line and every graph."""
    lines = [(line.title, line.name) for chart in findings.charts for line in chart.lines]
    return lines + [(layer.title, layer.name) for item in findings.maps for layer in item.layers]


def dash_of(chart: Chart, index: int) -> str:
    """solid, dotted or dashed: none and iid as everywhere; lines of one method differ by their dashes."""
    name = chart.lines[index].name
    if name in (DOTTED, DASHED):
        return "dotted" if name == DOTTED else "dashed"
    earlier = sum(line.name == name for line in chart.lines[:index])
    return ("solid", "dashed", "dotted")[earlier % 3]


def logarithmic(chart: Chart) -> bool:
    """Whether the x axis is better in powers: the steps of its longest line grow eightfold or more."""
    lines = sorted(chart.lines, key=lambda line: len(line.x))
    places = sorted(set(lines[-1].x)) if lines else []
    steps = [after - before for before, after in pairwise(places)]
    return len(places) >= 4 and min(x for line in chart.lines for x in line.x) > 0 and max(steps) >= 8 * min(steps)


def slug(text: str) -> str:
    """A name for a file or a place: small letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:60].strip("-") or "untitled"


def slugs(texts: Iterable[str]) -> list[str]:
    """Slugs, all different: the second of the same name ends in -2."""
    found: list[str] = []
    for text in texts:
        name = stem = slug(text)
        number = 1
        while name in found:
            number += 1
            name = f"{stem}-{number}"
        found.append(name)
    return found


def told_apart(records: Sequence[Findings]) -> list[str]:
    """Titles of records in a list; those of one figure at two scales say which is which."""
    often = Counter((record.figure, record.title) for record in records)
    return [
        f"{record.title}, {record.scale} scale"
        if record.scale and often[record.figure, record.title] > 1
        else record.title
        for record in records
    ]
