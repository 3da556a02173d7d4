"""Write docs/results.md: every row of the paper with its number beside ours, from the records in docs/findings.

    python dev/results.py            (writes docs/results.md)
    python dev/results.py --check    (fails where the page is not of these records)

The largest scale of each row that was measured counts. Signs: + reproduced, ~ direction only, - not reproduced, ? too few
seeds (the rule is in src/d2dfl/paper/verdicts.py).
"""

import argparse
import sys
from pathlib import Path

from d2dfl.paper.catalogue import experiment_names
from d2dfl.report.findings import DIRECTION, FEW, NO_CLAIM, NOT, REPRODUCED, Findings, Verdict, span

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results.md"
HEAD = """# The paper's rows and ours

Written by `python dev/results.py` from the records in `docs/findings`; `d2dfl report docs/findings` makes a page with all
charts of them, `d2dfl reproduce NAME --scale paper` measures one anew. What each row is: [reproduce.md](reproduce.md).

At the paper's scale (25 devices, AlexNet, 3 labels a device, one incoming link unless said, 40 rounds of 10 minibatches,
5 seeds, NVIDIA H200): score, share of the i.i.d. gap closed, and how many times fewer rounds than no exchange until the score
that no exchange ends with.
"""
MIDDLE = """## Every claim

Mean and 95 % interval over seeds. **+** reproduced, **~** direction only, **-** not reproduced, **?** too few seeds. By the first
claim of each row:"""
TABLE = (
    "| row, scale, seeds | quantity | the paper | its learner | ours, as many links | ours, 5 links |",
    "|---|---|---|---:|---:|---:|",
)
SYSTEMS = ("paper's learner", "ours, as many links", "ours, 5 links (default)")
SIGNS = {REPRODUCED: "+", DIRECTION: "~", NOT: "-", FEW: "?", NO_CLAIM: ""}

HEADLINE = {  # title: experiment, its table
    "CIFAR-10": ("curve-supervised", "CIFAR-10"),
    "CIFAR-10, decentralised": ("decentralised", "decentralised"),
    "CIFAR-10, semi-supervised": ("curve-more", "CIFAR-10, semi-supervised"),
    "SVHN (36,000 images)": ("curve-more", "SVHN, supervised"),
    "radio signals (generated)": ("curve-more", "radio signals, supervised"),
}
BASELINES = ("closest", "most trusted", "uniform", "GCN")
CONTENDERS = {
    "no exchange": ("no exchange",),
    "best of closest, most trusted, uniform, GCN": BASELINES,
    "the paper's learner": ("paper's learner",),
    "ours, one link": ("ours, as many links",),
    "ours, five links (default)": ("ours, 5 links (default)",),
    "i.i.d. shuffle": ("i.i.d. shuffle",),
}


def largest(folders: list[Path], name: str) -> Findings | None:
    """The record of the first folder that has one."""
    for folder in folders:
        if (folder / name / "findings.json").exists():
            return Findings.load(folder / name)
    return None


def lines(found: Findings, everything: bool) -> list[str]:
    """One line a quantity."""
    quantities: dict[str, list[Verdict]] = {}
    for item in found.verdicts:
        quantities.setdefault(item.quantity, []).append(item)
    first = next(iter(quantities), "").split(" (")[0]
    chosen = [text for text in quantities if everything or text.split(" (")[0] == first]
    rows = []
    for text in chosen:
        own = {item.system: item for item in quantities[text]}
        cells = [cell(own.get(system)) for system in SYSTEMS]
        others = [item for system, item in own.items() if system not in SYSTEMS]
        if others:
            cells[0] = cell(others[0])
        seeds = [item.seeds for item in own.values()]
        title = f"`{found.name}` {found.figure}, {found.scale}, {span(seeds)}"
        rows.append(f"| {title} | {text} | {next(iter(own.values())).paper} | {' | '.join(cells)} |")
    return rows


def cell(item: Verdict | None) -> str:
    return "" if item is None else f"{item.ours} {SIGNS[item.verdict]}"


def headline(folders: list[Path]) -> list[str]:
    """Score, share of the i.i.d. gap closed, times fewer rounds than no exchange: contenders down, data across."""
    columns: list[dict[str, tuple[str, ...]]] = []
    for name, title in HEADLINE.values():
        found = largest(folders, name)
        tables = [] if found is None else [table for table in found.tables if table.title == title]
        if not tables:
            raise SystemExit(f"no folder has the table {title!r} of {name}")
        columns.append({row[0]: row[1:] for row in tables[0].rows})
    rows = [f"| | {' | '.join(HEADLINE)} |", f"|---|{'---:|' * len(HEADLINE)}"]
    for text, names in CONTENDERS.items():
        best = [max((column[name] for name in names), key=lambda row: row[0]) for column in columns]
        cells = [f"{score.split(' ')[0]}, {gap}, × {rounds}" for score, _, gap, rounds, *_ in best]
        rows.append(f"| {text} | {' | '.join(cells)} |")
    return rows


def counts(records: list[Findings]) -> str:
    """How many rows hold their first claim, system by system."""
    parts = []
    for system in SYSTEMS:
        firsts = [next((item for item in found.verdicts if item.system == system), None) for found in records]
        signs = [SIGNS[item.verdict] for item in firsts if item is not None]
        held = [f"{signs.count(sign)} {sign}" for sign in ("+", "~", "-", "?") if sign in signs]
        parts.append(f"{system}: {', '.join(held)} of {len(signs)}")
    return "; ".join(parts)


def written() -> str:
    """The page."""
    folders = [ROOT / "docs" / "findings" / scale for scale in ("paper", "small")]
    records = [found for name in experiment_names() if (found := largest(folders, name)) is not None]
    rows = [line for found in records for line in lines(found, everything=True)]
    return "\n".join([HEAD, *headline(folders), "", f"{MIDDLE} {counts(records)}.", "", *TABLE, *rows, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the page is old")
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != written())
    PAGE.write_text(written(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
