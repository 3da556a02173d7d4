"""The README's table of all rows of the paper, from folders that `d2dfl reproduce` made: the largest scale of each.

    python benchmarks/paper_table.py docs/findings/paper docs/findings/small
    python benchmarks/paper_table.py docs/findings/paper --headline        (the README's first table of them)

One line for each claim: the first quantity of an experiment, or with --all every one. Signs: + reproduced, ~ direction
only, - not reproduced, ? too few seeds (the rule is in src/d2dfl/paper/verdicts.py).
"""

import argparse
from pathlib import Path

from d2dfl.paper.catalogue import experiment_names
from d2dfl.report.findings import Findings, Verdict, span

SYSTEMS = ("paper's learner", "ours, as many links", "ours, 5 links (default)")
SIGNS = {"reproduced": "+", "direction only": "~", "not reproduced": "-", "too few seeds": "?", "no claim": ""}

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true", help="every quantity, not only the first of each experiment")
    parser.add_argument("--headline", action="store_true", help="all methods on five tasks instead")
    given = parser.parse_args()
    if given.headline:
        print("\n".join(headline(given.folders)))
        return
    print("| row, scale, seeds | quantity | the paper | its learner | ours, as many links | ours, 5 links |")
    print("|---|---|---|---:|---:|---:|")
    for name in experiment_names():
        found = largest(given.folders, name)
        if found is not None:
            print("\n".join(lines(found, given.all)))


if __name__ == "__main__":
    main()
