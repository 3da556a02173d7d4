"""Write docs/results.md and README's tables from the records in docs/findings: every row of the paper beside ours.

    python dev/results.py            (writes both, and what README's first lines of Python print)
    python dev/results.py --check    (fails where one of them is not of these records)

The largest scale of each row that was measured counts. Signs: + reproduced, ~ direction only, - not reproduced, ? too few
seeds (the rule is in src/d2dfl/paper/verdicts.py). Records from before every method was measured on all terms are read too,
and marked.
"""

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from d2dfl.paper.catalogue import experiment_names
from d2dfl.paper.terms import LEARNERS, TERMS, EqualTerms
from d2dfl.paper.verdicts import LEARNER, RULE
from d2dfl.report.findings import AHEAD, BEHIND, DIRECTION, FEW, NO_CLAIM, NOT, REPRODUCED, Findings, Verdict, span
from main_run import main_table

ROOT = Path(__file__).resolve().parent.parent
PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
HEADLINE_MARKS = "<!-- headline: python dev/results.py -->", "<!-- end of headline -->"
MAIN_MARKS = "<!-- main table: python dev/results.py -->", "<!-- end of main table -->"
FIRST_LINES = r"```python\n(.*?)```\n\n```\n(.*?)```"  # README's first lines of Python, and what they print
HEAD = """# The paper's rows and ours

Written by `python dev/results.py` from the records in `docs/findings`; `d2dfl report docs/findings` makes a page with all
charts of them, `d2dfl reproduce NAME --scale paper` measures one anew. What each row is: [reproduce.md](reproduce.md).

## What the learner buys

At the paper's scale (25 devices, AlexNet, 3 labels a device, one incoming link unless said, 40 rounds of 10 minibatches, NVIDIA
H200): score, share of the i.i.d. gap closed, and how many times fewer rounds than no exchange until the score that no exchange
ends with. Compare within a block: there all have the same links and settings. Behind our learner's numbers stands whether it is
ahead of the next best method in its block, by the 95 % interval of the difference on the same seeds.
"""
NEXT = """## Ours against the next best

Score of our learner, or what is named, minus that of the next best method with the same links and settings, the paper's learner
included; mean and 95 % interval over seeds, above 0 where ours is better. Unsupervised rows have two links where one is said, as in
the paper.
"""
BOUGHT = """## What settings and links buy

Not the learner: closest, most trusted and uniform, in the mean over the three, under our settings minus under the paper's, and
with five links minus with as many as the paper has.
"""
CLAIMS = """## Every claim

Mean and 95 % interval over seeds. **+** reproduced, **~** direction only, **-** not reproduced, **?** too few seeds. A learner is
held against baselines with its own links and settings. By the first claim of each row, which is the one its author made:"""
SMALL = """## The small scale

Fewer datapoints and rounds, small networks, two cores (`--scale small`): what a reader without a GPU can measure again. Rows that
are measured at the paper's scale stand here too; scores of one scale say nothing about those of the other. Ours against the next
best as above, then the first claim of each row, which is the one its author made.
"""
EXCHANGE = "exchange"
PARTS = """## Parts that train nobody

Of rows whose trained parts wait to be measured anew: `d2dfl reproduce NAME --scale paper --exchange-only`, with today's learner. They
are records of their own, and count in no tally above.
"""
EARLIER = "measured before"
FORMER = "learner before"  # equal links and settings, but our learner has changed since
MARKED = f"""Rows marked *{EARLIER}* are from before every method had equal links and settings, or before a quantity or the rule of
verdicts changed. They wait to be measured anew; their numbers stand here without a verdict."""
FORMERS = f"""In those marked *{FORMER}* ours is the learner of before 18 November 2026; all others in them are as they are."""
SIGNS = {REPRODUCED: "+", DIRECTION: "~", NOT: "-", FEW: "?", NO_CLAIM: ""}
TITLES = tuple(learner.title for learner in LEARNERS)
CLAIM_COLUMNS = (
    f"| row, scale, seeds | quantity | the paper | {' | '.join(TITLES)} |",
    f"|---|---|---|{'---:|' * len(TITLES)}",
)
FORMERLY = {"ours, as many links": "ours, our settings", "ours, 5 links (default)": "ours, 5 links"}
OVER_NEXT, SETTINGS, LINKS = "the next best method on the same terms", "what our settings do", "what five links do"

HEADLINE = {  # title: experiment, its table
    "CIFAR-10": ("curve-supervised", "CIFAR-10"),
    "CIFAR-10, decentralised": ("decentralised", "decentralised"),
    "CIFAR-10, semi-supervised": ("curve-more", "CIFAR-10, semi-supervised"),
    "SVHN (36,000 images)": ("curve-more", "SVHN, supervised"),
    "radio signals (generated)": ("curve-more", "radio signals, supervised"),
    "radio signals, semi-supervised": ("curve-semi", "radio signals"),
}
BLOCKS = ("one link, the paper's settings", "one link, our settings", "five links, our settings")


def largest(folders: list[Path], name: str) -> Findings | None:
    """The record of the first folder that has one."""
    for folder in folders:
        if (folder / name / "findings.json").exists():
            return Findings.load(folder / name)
    return None


def earlier(found: Findings) -> bool:
    """Whether a record is from before today's rule and instruments."""
    return found.rule != RULE


def former(found: Findings) -> bool:
    """Whether our learner is in a record, and has changed since."""
    ours = {FORMERLY.get(item.system, item.system) for item in found.verdicts} & {terms.ours.title for terms in TERMS}
    return bool(ours) and found.learner != LEARNER and not earlier(found)


def mark(found: Findings) -> str:
    """What is to be known of a record beside its numbers."""
    return f", *{EARLIER}*" if earlier(found) else f", *{FORMER}*" if former(found) else ""


def titled(found: Findings) -> str:
    """A row's name, figure and scale, and the mark."""
    return f"`{found.name}` {found.figure}, {found.scale}{mark(found)}"


def grouped(found: Findings) -> dict[str, dict[str, Verdict]]:
    """Verdicts by quantity and system."""
    quantities: dict[str, dict[str, Verdict]] = {}
    for item in found.verdicts:
        quantities.setdefault(item.quantity, {})[FORMERLY.get(item.system, item.system)] = item
    return quantities


def claims(found: Findings, first_only: bool = False) -> list[str]:
    """One line a quantity of which the paper, or a baseline, says something; or the first claim, at each of its points."""
    rows = []
    first = next(iter(grouped(found)), "").partition(" (")[0]
    for text, own in grouped(found).items():
        if OVER_NEXT in text or text.startswith((SETTINGS, LINKS)) or (first_only and text.partition(" (")[0] != first):
            continue
        judged = not earlier(found)
        cells = [claim(own.get(title), judged) for title in TITLES]
        others = [item for system, item in own.items() if system not in TITLES]
        if others and not any(cells):
            cells[0] = claim(others.pop(0), judged)
        seeds, more = (
            span([item.seeds for item in own.values()]),
            [f"; {item.system}: {claim(item, judged)}" for item in others],
        )
        rows.append(
            f"| {titled(found)}, {seeds} | {text}{''.join(more)} | {next(iter(own.values())).paper} | {' | '.join(cells)} |"
        )
    return rows


def claim(item: Verdict | None, judged: bool) -> str:
    sign = "" if item is None or not judged else SIGNS.get(item.verdict, item.verdict)
    return "" if item is None else f"{item.ours} {sign}".strip()


def where(text: str) -> str:
    """At which point of a row a quantity was measured."""
    return text.partition(" (")[2].removesuffix(")")


def contests(records: list[Findings]) -> list[str]:
    """Ours against the next best, rows down, terms across."""
    rows = []
    for found in records:
        before = ""
        for text, own in grouped(found).items():
            if OVER_NEXT in text:
                items = [own.get(terms.ours.title) for terms in TERMS]
                cells = ["" if item is None else f"{item.ours} {item.verdict}" for item in items]
                rows.append(f"| {titled(found)} | {fought_over(text, before)} | {' | '.join(cells)} |")
            before = text
    return rows and ["| row, scale | of what, at | " + " | ".join(BLOCKS) + " |", "|---|---|---:|---:|---:|", *rows]


def fought_over(text: str, before: str) -> str:
    """What a contest is about where it is no score, and at which point; "the same" is what stands before it."""
    what = text.partition(", ours ")[0] if ", ours " in text else ""
    what = before.partition(", above ")[0] if what == "the same" else what
    return ", ".join(filter(None, (what, where(text))))


def bought(records: list[Findings]) -> list[str]:
    """What settings and links do, rows down."""
    rows = []
    for found in records:
        quantities = grouped(found)
        for text, own in quantities.items():
            if text.startswith(SETTINGS):
                links = next(iter(quantities[text.replace(SETTINGS, LINKS)].values()))
                rows.append(f"| {titled(found)} | {where(text)} | {next(iter(own.values())).ours} | {links.ours} |")
    return rows and ["| row, scale | at | our settings | five links |", "|---|---|---:|---:|", *rows]


def headline(folders: list[Path], equal_only: bool = False) -> list[str]:
    """Score, share of the i.i.d. gap closed, times fewer rounds than no exchange: contenders down, data across.

    The README shows what was measured on equal terms, and nothing else.
    """
    columns, names = [], []
    for title, (name, point) in HEADLINE.items():
        found = largest(folders, name)
        tables = {} if found is None else {table.title: table for table in found.tables}
        if found is None or point not in tables:
            raise SystemExit(f"no folder has the table {point!r} of {name}")
        if equal_only and earlier(found):
            continue
        column = {FORMERLY.get(row[0], row[0]): row[1:] for row in tables[point].rows}
        equal = tables.get(f"Equal links and settings: {point}")
        standing = {} if equal is None else {row[0]: row[-1] for row in equal.rows}
        columns.append((column, standing))
        names.append(f"{title}{mark(found)}")
    rows = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    rows.append(line("no exchange", [cell(column, ["no exchange"]) for column, _ in columns]))
    for terms, block in zip(TERMS, BLOCKS, strict=True):
        rows.append(line(f"**{block}**: best of closest, most trusted, uniform, GCN", best_rules(terms, columns)))
        for learner in terms.papers:
            tuned = ", tuned" if learner is terms.papers[-1] else ""
            rows.append(line(f"the paper's learner{tuned}", [cell(column, [learner.title]) for column, _ in columns]))
        ours = [
            " · ".join(filter(None, (cell(column, [terms.ours.title]), standing.get(terms.title, ""))))
            for column, standing in columns
        ]
        rows.append(line("our learner", ours))
    return [*rows, line("i.i.d. shuffle", [cell(column, ["i.i.d. shuffle"]) for column, _ in columns])]


def left_out(folders: list[Path]) -> str:
    """What a reader of the headline alone must hear of: who is ahead in the rows of equal terms that it does not show."""
    shown = {name for name, _ in HEADLINE.values()}
    records = [largest(folders[:1], name) for name in experiment_names() if name not in shown]
    parts = [
        f"{found.figure} ({fates(found)})" for found in records if found and not earlier(found) and contests([found])
    ]
    return f"Left out: rows not yet measured on equal terms, and {', '.join(parts)}."


def fates(found: Findings) -> str:
    """Where ours is behind and ahead of the next best method in one row."""
    columns = dict(zip((terms.ours.title for terms in TERMS), BLOCKS, strict=True))
    items = [item for item in found.verdicts if OVER_NEXT in item.quantity]
    places = {
        verdict: [
            columns[item.system] + (f", {place}" if (place := where(item.quantity)) else "")
            for item in items
            if item.verdict == verdict
        ]
        for verdict in (BEHIND, AHEAD)
    }
    said = [f"ours {verdict} with {' and with '.join(named)}" for verdict, named in places.items() if named]
    return "; ".join([*(said or ["nobody can tell"]), *(["our learner of before"] if former(found) else [])])


def best_rules(terms: EqualTerms, columns: list[tuple[dict[str, tuple[str, ...]], dict[str, str]]]) -> list[str]:
    """Unknown unless all of them were measured."""
    names = [item.title for item in (*terms.rules, terms.gcn)]
    return [cell(column, names) if all(name in column for name in names) else "–" for column, _ in columns]


def cell(column: dict[str, tuple[str, ...]], names: list[str]) -> str:
    """Of the best of these."""
    rows = [column[name] for name in names if name in column]
    if not rows:
        return "–"
    score, _, gap, rounds, *_ = max(rows, key=lambda row: row[0])
    return f"{score.split(' ')[0]}, {gap}, × {rounds}"


def line(title: str, cells: list[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |"


def counts(records: list[Findings]) -> str:
    """How many rows hold their first claim, learner by learner, of those measured on all terms."""
    parts = []
    for title in TITLES:
        firsts = [
            own.get(title) for found in records if not earlier(found) for own in list(grouped(found).values())[:1]
        ]
        signs = [SIGNS[item.verdict] for item in firsts if item is not None]
        held = [f"{signs.count(sign)} {sign}" for sign in ("+", "~", "-", "?") if sign in signs]
        if held:
            parts.append(f"{title}: {', '.join(held)} of {len(signs)}")
    return "; ".join(parts) or "none was measured with equal links yet"


def page(folders: list[Path]) -> str:
    """docs/results.md."""
    whole = [folder for folder in folders if folder.name != EXCHANGE]
    records = [found for name in experiment_names() if (found := largest(whole, name)) is not None]
    parts = [HEAD, *headline(folders), ""]
    for text, rows in ((NEXT, contests(records)), (BOUGHT, bought(records))):
        parts += [text, *rows, ""] if rows else []
    parts += [f"{CLAIMS} {counts(records)}.", ""]
    parts += [MARKED, ""] if any(map(earlier, records)) else []
    parts += [FORMERS, ""] if any(map(former, records)) else []
    parts += [*CLAIM_COLUMNS, *(row for found in records for row in claims(found)), ""]
    parts += section(PARTS, folders, EXCHANGE, first_only=False)
    return "\n".join([*parts, *section(SMALL, folders, "small", first_only=True)])


def section(text: str, folders: list[Path], name: str, first_only: bool) -> list[str]:
    """Of what the folder of this name has under today's rule, with today's learner: contests, and claims."""
    places = [folder for folder in folders if folder.name == name]
    found = [largest(places, experiment) for experiment in experiment_names()]
    records = [each for each in found if each is not None and not mark(each)]
    rows = [row for each in records for row in claims(each, first_only)]
    fought = contests(records)
    return [text, *fought, *([""] if fought else []), *CLAIM_COLUMNS, *rows, ""] if records else []


def between(text: str, marks: tuple[str, str], rows: list[str]) -> str:
    """A page with these rows between two marks."""
    begin, end = marks
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"README.md has no {begin} … {end}")
    return "\n".join([f"{before}{begin}", *rows, f"{end}{after}"])


def with_output(text: str) -> str:
    """A page with what its first lines of Python print now."""
    found = re.search(FIRST_LINES, text, flags=re.S)
    if found is None:
        raise SystemExit("README.md has no lines of Python with their output")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(found[1], "README.md", "exec"), {})
    return f"{text[: found.start(2)]}{printed.getvalue().strip()}\n{text[found.end(2) :]}"


def readme(folders: list[Path]) -> str:
    """README with its tables between their marks, and its first output."""
    text = with_output(README.read_text(encoding="utf-8"))
    text = between(text, MAIN_MARKS, main_table())
    return between(text, HEADLINE_MARKS, [*headline(folders, equal_only=True), "", left_out(folders)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page is old")
    folders = [ROOT / "docs" / "findings" / scale for scale in ("paper", "small", EXCHANGE)]
    wanted = {PAGE: page(folders), README: readme(folders)}
    if parser.parse_args().check:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != text for path, text in wanted.items()))
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
