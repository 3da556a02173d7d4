"""The paper's numbers beside ours: one row a quantity, one column a system; and all of them in one overview."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from d2dfl.report.findings import (
    AHEAD,
    BEHIND,
    DIRECTION,
    FEW,
    NO_CLAIM,
    NOT,
    REPRODUCED,
    UNDECIDED,
    UNSAID,
    Findings,
    Verdict,
)
from d2dfl.report.look import told_apart
from d2dfl.report.page.html import Html, join, tag
from d2dfl.report.page.tables import boxed, explained_list
from d2dfl.terminal import UNKNOWN
from d2dfl.words import counted

# What the words of verdicts stand for; the rule to the letter is in docs/reproduce.md.
NEXT = "ours against the next best method on the same terms; the paper does not say"
MEANINGS = {
    REPRODUCED: "the 95 % interval over seeds is on the side that the paper claims, and its number is reached or inside a narrow interval",
    DIRECTION: "the interval is on that side, but the number is beyond it, or the interval is as wide as the claimed effect",
    NOT: "the interval reaches no effect, or lies on the other side",
    AHEAD: NEXT,
    UNDECIDED: NEXT,
    BEHIND: NEXT,
    FEW: "fewer than three seeds",
    NO_CLAIM: "the paper does not say",
}
COLUMNS = 4  # learners that have one each
# What a verdict says by more than its colour.
SIGNS = {REPRODUCED: "✓", DIRECTION: "≈", NOT: "✕"}
KINDS = {REPRODUCED: "good", DIRECTION: "fair", NOT: "poor"}
ORDER = (*KINDS, AHEAD, UNDECIDED, BEHIND, FEW, NO_CLAIM)  # of columns, and wherever kinds are counted
OPEN = 60  # rows up to which the table of everything is open from the start
# Whose numbers one may choose to see, and how the names of their systems begin.
LEARNERS = {"paper": "paper's learner", "ours": "ours"}


@dataclass(frozen=True)
class VerdictRow:
    """One quantity of the paper, and what each system gave."""

    findings: Findings
    place: str
    results: tuple[Verdict, ...]


def verdict_table(findings: Findings, place: str) -> Html:
    """The verdicts of one record."""
    return _table(_rows(findings, place), named=False) if findings.verdicts else Html()


def overview(records: Sequence[tuple[Findings, str]]) -> Html:
    """All verdicts: how many of each kind, for whom, by record, and in one table that can be filtered."""
    records = [(findings, place) for findings, place in records if findings.verdicts]
    if not records:
        return Html()
    rows = [row for findings, place in records for row in _rows(findings, place)]
    verdicts = [item for findings, _ in records for item in findings.verdicts]
    heading = tag(
        "header",
        tag("h2", "All verdicts", id="overview-title"),
        tag("p", verdict_sentence(verdicts), class_="takeaway"),
        tag("p", _amounts(rows, len(verdicts)), class_="setting"),
        _switch(verdicts),
        *(_said(view, mine) for view, mine in _views(verdicts).items()),
    )
    names = told_apart([findings for findings, _ in records])
    lines = (_line(findings, place, name) for (findings, place), name in zip(records, names, strict=True))
    index = boxed(tag("table", tag("tbody", *lines), class_="index"))
    summary = tag("summary", "Every number of the paper beside ours")
    everything = tag(
        "details", summary, _filters(verdicts), _table(rows, named=True), class_="all", open=len(rows) <= OPEN
    )
    matrix = _matrix(verdicts)
    return tag("section", heading, matrix, index, everything, id="overview", aria_labelledby="overview-title")


def _amounts(rows: Sequence[VerdictRow], verdicts: int) -> str:
    """How many quantities there are: the paper's, and those beside them of which it says nothing."""
    unsaid = sum(row.results[0].paper == UNSAID for row in rows)
    more = f", {unsaid} beside them of which it says nothing" if unsaid else ""
    return f"{counted(len(rows) - unsaid, 'number')} of the paper{more}; {counted(verdicts, 'verdict')}."


def _views(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """All verdicts, and those of each learner that has some."""
    found = {key: [item for item in verdicts if whose(item.system) == key] for key in LEARNERS}
    return {"all": list(verdicts), **{key: mine for key, mine in found.items() if mine}}


def _switch(verdicts: Sequence[Verdict]) -> Html:
    """One switch for the whole page: whose verdicts one sees. Without the script all are shown."""
    names = {"all": "everybody", "paper": "the paper's learner", "ours": "ours"}
    views = _views(verdicts)
    if len(views) < 3:
        return Html()
    buttons = (
        tag("button", names[view], type="button", value=view, aria_pressed="true" if view == "all" else "false")
        for view in views
    )
    label = tag("span", "What holds for", id="learner-label")
    return tag("div", label, *buttons, class_="switch learner", role="group", aria_labelledby="learner-label")


def _said(view: str, verdicts: Sequence[Verdict]) -> Html:
    """How many verdicts of each kind there are, as words and as a bar."""
    text = ", ".join(f"{number} {verdict}" for verdict, number in _counts(verdicts).items())
    return tag("div", tag("p", f"{text}.", class_="setting"), _tally(verdicts), data_view=view)


def _matrix(verdicts: Sequence[Verdict]) -> Html:
    """Systems down, verdicts across."""
    kinds = list(_counts(verdicts))
    systems: dict[str, list[Verdict]] = {}
    for item in verdicts:
        systems.setdefault(item.system, []).append(item)
    order = sorted(systems, key=lambda name: [*LEARNERS, ""].index(whose(name)))
    body = []
    for name in order:
        counts = _counts(systems[name])
        cells = (tag("td", str(counts.get(kind, 0)), class_=_kind(kind) if counts.get(kind) else "") for kind in kinds)
        body.append(tag("tr", tag("th", name, scope="row"), *cells, **_marked(name)))
    head = _head(["System", *kinds])
    inside = tag("table", head, tag("tbody", *body), class_="numbers matrix", data_name="verdicts-by-system")
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(MEANINGS.get(kind, ""), []).append(kind)
    said = explained_list((", ".join(names), meaning) for meaning, names in groups.items() if meaning)
    return tag("figure", tag("figcaption", "For whom the paper's numbers hold"), boxed(inside), said, class_="table")


def _marked(system: str) -> dict[str, str]:
    """What the switch looks at."""
    mine = whose(system)
    return {"data_whose": mine} if mine else {}


def whose(system: str) -> str:
    """Whether a system is the paper's learner, on whichever terms, ours, or neither."""
    return next((key for key, start in LEARNERS.items() if system.startswith(start)), "")


def verdict_sentence(verdicts: Sequence[Verdict]) -> str:
    """How many of the paper's claims hold, and for whom."""
    judged = [item for item in verdicts if item.verdict in KINDS]
    parts = []
    for key, name in (*LEARNERS.items(), ("", "others")):
        mine = [item.verdict for item in judged if whose(item.system) == key]
        if mine:
            near = f" and {mine.count(DIRECTION)} in direction" if DIRECTION in mine else ""
            parts.append(f"{name} {mine.count(REPRODUCED)} of {counted(len(mine), 'verdict')}{near}")
    if not parts:
        few = any(item.verdict == FEW for item in verdicts)
        return "Whether the paper's numbers hold cannot be said: too few seeds." if few else ""
    return f"Reproduced: {'; '.join(parts)}."


def _rows(findings: Findings, place: str) -> list[VerdictRow]:
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for item in findings.verdicts:
        groups.setdefault((item.quantity, item.paper), []).append(item)
    return [VerdictRow(findings, place, tuple(items)) for items in groups.values()]


def _systems(rows: Sequence[VerdictRow]) -> list[str]:
    """Systems that are in a quarter of the rows or more: each has a column, the others are named where they are.

    More than fit side by side have none: a row shows them one beside the other, each with its name.
    """
    counts = Counter(item.system for row in rows for item in row.results)
    common = [system for system, number in counts.items() if 4 * number >= len(rows)]
    return common if len(common) <= COLUMNS else []


def _table(rows: Sequence[VerdictRow], named: bool) -> Html:
    systems = _systems(rows)
    head = ["Quantity", "Paper", *(systems or ["Measured"])]
    head = ["", *head] if named else head
    body = (_row(row, systems, named) for row in rows)
    table = tag("table", _head(head), tag("tbody", *body), class_="verdicts overview" if named else "verdicts")
    return boxed(table)


def _head(texts: Sequence[str]) -> Html:
    return tag("thead", tag("tr", *(tag("th", text, scope="col", **_marked(text)) for text in texts)))


def _row(row: VerdictRow, systems: Sequence[str], named: bool) -> Html:
    found, first = row.findings, row.results[0]
    cells = [tag("th", first.quantity, scope="row"), tag("td", first.paper, class_="paper")]
    if named:
        link = tag("a", found.figure or found.name, href=f"#{row.place}", title=found.title)
        cells.insert(0, tag("td", link, class_="where"))
    mine = {item.system: item for item in row.results}
    if len(mine) == len(row.results) and mine.keys() <= set(systems):
        cells += [
            tag("td", _result(mine[system]) if system in mine else UNKNOWN, **_marked(system)) for system in systems
        ]
    else:
        spread = {"colspan": str(max(1, len(systems))), "class_": "several"}
        cells.append(tag("td", tag("div", *(_result(item) for item in row.results)), **spread))
    words = [found.figure, found.name, found.title, first.quantity]
    words += [word for item in row.results for word in (item.system, item.verdict)]
    learners = {whose(item.system) for item in row.results}
    only = {"data_whose": learners.pop()} if len(learners) == 1 and "" not in learners else {}
    return tag("tr", *cells, data_words=" ".join(words).lower(), **only)


def _result(item: Verdict) -> Html:
    over = {"title": f"over {counted(item.seeds, 'seed')}"} if item.seeds else {}
    ours = tag("span", item.ours, class_="ours", **over)
    parts = (tag("span", item.system, class_="system"), ours, _pill(item.verdict))
    return tag(
        "div", *parts, class_="result", data_kind=_kind(item.verdict), data_system=item.system, **_marked(item.system)
    )


def _pill(verdict: str) -> Html:
    sign = tag("i", SIGNS.get(verdict, "·"), aria_hidden="true")
    return tag("span", sign, verdict, class_=f"pill {_kind(verdict)}")


def _kind(verdict: str) -> str:
    return KINDS.get(verdict, "other")


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many of each kind there are: what is judged against the paper, the best first; then the others."""
    counts = Counter(item.verdict for item in verdicts)
    order = dict.fromkeys([*ORDER, *counts])
    return {verdict: counts[verdict] for verdict in order if counts[verdict]}


def _tally(verdicts: Sequence[Verdict]) -> Html:
    """The same as one bar."""
    pieces, start = [], 0
    for verdict, number in _counts(verdicts).items():
        place = {"x": str(start), "width": str(number), "y": "0", "height": "1"}
        pieces.append(tag("rect", class_=_kind(verdict), **place))
        start += number
    box = {"viewBox": f"0 0 {start} 1", "preserveAspectRatio": "none"}
    return tag("svg", *pieces, class_="tally", aria_hidden="true", **box)


def _line(findings: Findings, place: str, name: str) -> Html:
    """One record among all: its name, and how its verdicts are, for everybody and for each learner."""
    views = _views(findings.verdicts)
    shown = {view: views.get(view, []) for view in ("all", *LEARNERS)}
    return tag(
        "tr",
        tag("td", findings.figure),
        tag("th", tag("a", name, href=f"#{place}"), scope="row"),
        tag("td", *(tag("div", _tally(mine), data_view=view) for view, mine in shown.items() if mine), class_="share"),
        tag("td", *(tag("div", *_numbers(mine), data_view=view) for view, mine in shown.items()), class_="counts"),
    )


def _numbers(verdicts: Sequence[Verdict]) -> list[Html]:
    """Those that the paper is judged by, each in its column; all others as one number, which says what they are."""
    found = _counts(verdicts)
    others = {verdict: number for verdict, number in found.items() if verdict not in KINDS}
    words = ", ".join(f"{number} {verdict}" for verdict, number in others.items())
    return [
        *(_count(verdict, found.get(verdict, 0), verdict) for verdict in KINDS),
        _count("", sum(others.values()), words),
    ]


def _count(verdict: str, number: int, words: str) -> Html:
    if not number:
        return tag("span")
    sign = tag("i", SIGNS.get(verdict, "·"), aria_hidden="true")
    said = tag("span", f" {words}", class_="hidden")
    return tag("span", sign, str(number), said, class_=_kind(verdict), title=words)


def _filters(verdicts: Sequence[Verdict]) -> Html:
    """Buttons for the verdicts and systems that there are, and a field for words."""
    chips = [_chip("kind", "", "all", len(verdicts))]
    chips += [_chip("kind", KINDS[text], text, number) for text, number in _counts(verdicts).items() if text in KINDS]
    groups = [tag("div", *chips, class_="chips", role="group", aria_label="Filter by verdict")]
    systems = Counter(item.system for item in verdicts)
    if len(systems) > 1:
        chips = [_chip("system", system, system, number) for system, number in systems.items()]
        groups.append(tag("div", *chips, class_="chips", role="group", aria_label="Filter by system"))
    field = tag("input", type="search", placeholder="Filter by words", aria_label="Filter by words")
    return tag("div", *groups, field, tag("p", class_="said", role="status"), class_="filters")


def _chip(what: str, value: str, text: str, number: int) -> Html:
    sign = tag("i", SIGNS[text], aria_hidden="true") if text in SIGNS else Html()
    look = f"pill {value if what == 'kind' and value else 'other'}"
    words = join(sign, text, " ", tag("b", str(number)))
    state = "false" if value else "true"
    return tag("button", words, type="button", value=value, data_what=what, class_=look, aria_pressed=state)
