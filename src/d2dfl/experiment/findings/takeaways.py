"""What came out, in one sentence, and the command that makes it again."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from d2dfl.config import Config
from d2dfl.config.presets import PRESETS, preset
from d2dfl.config.sections.learning import SUPERVISED
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import share_of
from d2dfl.discovery.methods import IID, METHODS, NO_EXCHANGE
from d2dfl.experiment.cells.results import Results, Row
from d2dfl.experiment.measures import standing
from d2dfl.report.findings import AHEAD, BEHIND, FEW
from d2dfl.terminal import number
from d2dfl.words import counted

# Fields that a command fills in from the files that it reads.
READ = ("data.sha256", "network.sha256")
NETWORK = "network.npz"  # in the folder of a graph
GENERATED = ("network", "data", "partition")  # sections that count for a generated network only


def comparison_takeaway(results: Results, rows: Sequence[Row]) -> str:
    """Who ended best, what the exchange brought, and whether that can be told from chance."""
    (point,) = results.points
    none, iid = (next((row for row in rows if row.method == name), None) for name in (NO_EXCHANGE, IID))
    methods = [row for row in rows if row.method not in (NO_EXCHANGE, IID)]
    if not methods or none is None:
        return ""
    best = max(methods, key=lambda row: results.sign(point) * row.score)
    yardstick = f" and {number(iid.score, 3)} on shuffled data" if iid else ""
    gap = f", {number(100 * best.gap_closed, 0)} % of the gap" if best.gap_closed is not None else ""
    helped = standing(results.gain(point, best.method, NO_EXCHANGE))
    helps = {
        AHEAD: "the exchange helps",
        BEHIND: "the exchange harms",
        FEW: f"{counted(len(results.seeds), 'seed')} cannot tell whether the exchange helps",
    }.get(helped, "nobody can tell whether the exchange helps")
    rival = _rival(best, methods, "but" if helped in (AHEAD, BEHIND) else "and")
    if number(best.score, 3) == number(none.score, 3):
        return (
            f"{best.title} ends as no exchange does: {results.score_name(point)} {number(best.score, 3)} with both{yardstick}; "
            f"{helps}{rival}."
        )
    if results.sign(point) * (best.score - none.score) < 0:
        return (
            f"No exchange ends best: {results.score_name(point)} {number(none.score, 3)} against {number(best.score, 3)} with "
            f"{best.title}, the best method,{yardstick}; {helps}."
        )
    return (
        f"{best.title} ends best: {results.score_name(point)} {number(best.score, 3)} against {number(none.score, 3)} without "
        f"an exchange{yardstick}{gap}; {helps}{rival}."
    )


def _rival(best: Row, methods: Sequence[Row], joined: str) -> str:
    """How it stands against the next method; `joined` leads to what nobody can tell."""
    if best.against is None or len(methods) < 2 or best.against.method == NO_EXCHANGE:
        return ""
    rival = METHODS[best.against.method].title
    return {
        AHEAD: f", and {best.title} is ahead of {rival}",
        FEW: f", and it takes more seeds to tell {best.title} from {rival}",
    }.get(best.against.standing, f", {joined} nobody can tell {best.title} from {rival}")


def graph_takeaway(items: Sequence[Discovery], best: float | None) -> str:
    """What the best graph is expected to move, and what that brings."""
    item = max(items, key=lambda one: one.evaluation.objective)
    worth, metric = item.evaluation, item.config.reward.metric
    links = len(item.graph.links[0])
    first = f"{METHODS[item.method].title} finds {counted(links, 'link')}"
    if len(items) > 1:
        first = f"{METHODS[item.method].title} finds the best of {len(items)} graphs, {counted(links, 'link')}"
    share = None if best is None else share_of(worth.objective, best, worth.no_exchange)
    known = f", {number(100 * share, 0)} % of the best known objective" if share is not None and len(items) == 1 else ""
    return (
        f"{first}{known}: {number(worth.datapoints_moved, 0)} datapoints are expected to move, {number(worth.datapoints_lost, 0)} of "
        f"them to be lost, and the {metric} distance to i.i.d. to fall from {number(worth.distance_before[metric], 3)} to "
        f"{number(worth.distance_after[metric], 3)}."
    )


def comparison_command(config: Config, methods: Sequence[str], seeds: Sequence[int]) -> str:
    """What makes a comparison again; `run` where it is one method on a seed that `compare` does not begin with."""
    names = [name for name in methods if name not in (NO_EXCHANGE, IID)] or [NO_EXCHANGE]
    if list(seeds) == list(range(len(seeds))):
        chosen = ["compare", "--methods", ",".join(names), "--seeds", str(len(seeds))]
    elif len(seeds) == len(names) == 1:
        chosen = ["run", "--method", names[0], "--seed", str(seeds[0])]
    else:
        return ""  # no command takes such seeds: `d2dfl run --from FOLDER` does
    paradigm = config.partition.paradigm
    return _joined([*chosen, *(["--paradigm", paradigm] if paradigm != SUPERVISED else [])], config, paradigm)


def graph_command(items: Sequence[Discovery]) -> str:
    """What finds these graphs again, from the network that lies beside them; a comment says where that is."""
    config, names = items[0].config, [item.method for item in items]
    chosen = ["discover", "--method", names[0]] if len(names) == 1 else ["compare-graphs", "--methods", ",".join(names)]
    words = [*chosen, "--seed", str(items[0].seed), "--network", NETWORK, "--edges", str(config.discovery.edges)]
    return (
        f"# in the run folder, beside {NETWORK}\n{_joined(words, config, SUPERVISED, (*GENERATED, 'discovery.edges'))}"
    )


def _joined(words: Sequence[str], config: Config, paradigm: str, without: Sequence[str] = ()) -> str:
    """With the preset that is nearest, and every setting in which they differ, but for sections and fields that do not count."""
    found = {name: _changes(preset(name, paradigm), config, without) for name in PRESETS}
    name = min(found, key=lambda one: len(found[one]))
    settings = [word for path, value in found[name].items() for word in ("--set", f"{path}={_text(value)}")]
    return shlex.join(["d2dfl", *words, *(["--preset", name] if name != PRESETS[0] else []), *settings])


def _changes(before: Config, after: Config, without: Sequence[str]) -> Mapping[str, Any]:
    old = before.to_dict()
    return {
        f"{section}.{name}": value
        for section, fields in after.to_dict().items()
        if section not in without
        for name, value in fields.items()
        if old[section][name] != value and f"{section}.{name}" not in (*READ, *without)
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
