"""What a reader wants to know about discoveries, as plain rows, sentences and a record for the page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import share_of
from d2dfl.discovery.methods import METHODS
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.discovery_values import graph_values
from d2dfl.experiment.cells.files import keep_cells
from d2dfl.experiment.findings.maps import MANY, layer_of, map_of
from d2dfl.experiment.findings.takeaways import graph_command, graph_takeaway
from d2dfl.network import Network
from d2dfl.network.channel import noise_power
from d2dfl.network.graph import Graph
from d2dfl.report.findings import Findings, Map, Table
from d2dfl.terminal import UNKNOWN, number
from d2dfl.words import counted

NOTHING_HELD = "holds nothing, and what it wants is a share of what it holds: network.threshold"
MOSTLY_LOST = 0.9  # loss of the best link from which the unit of the power is to be doubted
SHARE = ("share of the best known objective (no exchange is 0)", "share")
START = ("objective without any exchange", "no exch.")
# (long name, short name) of each measure; the short one heads a column. Nothing has moved yet: numbers are expectations.
MEASURES = (
    ("objective", "objective"),
    START,
    SHARE,
    ("labels satisfied per device", "labels"),
    ("distance to i.i.d. after the exchange (lower is better)", "dist"),
    ("expected share of datapoints that arrive", "arrive"),
    ("share of inter-cluster datapoints", "inter"),
    ("datapoints moved, expected", "exp. moved"),
    ("datapoints lost, expected", "exp. lost"),
    ("messages per device", "msgs"),
    ("seconds", "s"),
)


def shown(best: float | None) -> list[tuple[str, str]]:
    """Names of the measures that can be given: a share, and where it starts, only with the best known objective."""
    return [names for names in MEASURES if names not in (START, SHARE) or best is not None]


def best_known(discoveries: Sequence[Discovery]) -> float:
    """The highest objective that any of these reached."""
    return max(item.evaluation.objective for item in discoveries)


def shown_values(item: Discovery, best: float | None) -> list[str]:
    """The values of one discovery, in the order of `shown`."""
    worth = item.evaluation
    share: list[str] = []
    if best is not None:
        share = [number(worth.no_exchange, 4), number(share_of(worth.objective, best, worth.no_exchange), 3)]
    return [
        number(worth.objective, 4),
        *share,
        number(float(worth.labels_satisfied.mean()), 2),
        number(worth.distance_after[item.config.reward.metric], 3),
        number(worth.success_probability, 3),
        number(worth.inter_cluster_share, 2),
        number(worth.datapoints_moved, 0),
        number(worth.datapoints_lost, 0),
        number(item.messages / item.network.devices, 0),
        number(item.seconds, 2),
    ]


def keep(items: Sequence[Discovery], best: float | None, folder: Path) -> None:
    """Cells and findings of discoveries in one network, as every run folder has them."""
    cells = [Cell("", one.method, one.method, one.seed, one.config, trains=False) for one in items]
    keep_cells(folder, {cell: graph_values(one, best) for cell, one in zip(cells, items, strict=True)})
    graph_findings(items, best).save(folder)


def column_meanings(items: Sequence[Discovery], best: float | None) -> dict[str, str]:
    """What the heads of columns stand for; nothing where they say it all."""
    among = len(items) > 1 and best == best_known(items)
    of_best = "of the way from no exchange to the best objective " + ("of these methods" if among else "known")
    meanings = {short: of_best if (name, short) == SHARE else name for name, short in shown(best)}
    return {short: "" if short in (meaning, "s") else meaning for short, meaning in meanings.items()}


def column_sentences(items: Sequence[Discovery], best: float | None) -> list[str]:
    """The same as sentences."""
    return [f"{short}: {meaning}" for short, meaning in column_meanings(items, best).items() if meaning]


def dash_sentence(discoveries: Sequence[Discovery]) -> str | None:
    """What a dash in the table says, where there is one."""
    silent = any(item.evaluation.success_probability is None for item in discoveries)
    return f"{UNKNOWN}: nothing is sent" if silent else None


def described_size(network: Network) -> str:
    """How large a network is."""
    parts = {"device": network.devices, "partition": network.partitions, "reliable cluster": len(network.budget)}
    return ", ".join(counted(number, noun) for noun, number in parts.items())


def headline(item: Discovery) -> str:
    """One line about the network before any exchange."""
    network, metric = item.network, item.config.reward.metric
    return (
        f"{described_size(network)}; "
        f"{metric} distance to i.i.d. before the exchange {item.evaluation.distance_before[metric]:.3f}"
    )


def why_unlinked(network: Network, graph: Graph) -> dict[str, list[int]]:
    """Devices without an incoming link, by the reason."""
    heard = network.candidates >= 0
    need, surplus = network.need > 0, network.surplus > 0
    spare = surplus[network.candidates] & heard[:, :, None]
    checks: dict[str, NDArray[np.bool_]] = {
        "hears nobody": np.asarray(~heard.any(axis=1)),
        NOTHING_HELD: np.asarray(~need.any(axis=1) & (network.counts.sum(axis=1) == 0)),
        "needs nothing": np.asarray(~need.any(axis=1)),
        "is trusted with nothing": np.asarray(~(network.trust & heard[:, :, None]).any(axis=(1, 2))),
        "hears nobody with a surplus of what it needs": np.asarray(~(spare & need[:, None, :]).any(axis=(1, 2))),
        "is not trusted with what it needs": np.asarray(~(spare & network.trust & need[:, None, :]).any(axis=(1, 2))),
    }
    reasons: dict[str, list[int]] = {}
    for device in np.nonzero((graph.transmitter < 0).all(axis=1))[0].tolist():
        reason = next((name for name, applies in checks.items() if applies[device]), "chose no link")
        reasons.setdefault(reason, []).append(device)
    return reasons


def unlinked_sentences(network: Network, graph: Graph, channel: ChannelConfig) -> list[str]:
    """One sentence per reason for which devices have no link."""
    sentences = _drowned(network, channel)
    for reason, devices in why_unlinked(network, graph).items():
        shown = ", ".join(map(network.device_name, devices[:8])) + (", …" if len(devices) > 8 else "")
        noun = "device has" if len(devices) == 1 else "devices have"
        sentences.append(f"{len(devices)} {noun} no link: {reason} ({shown})")
    return sentences


def _drowned(network: Network, channel: ChannelConfig) -> list[str]:
    """A sentence where received power is given, and so far below the noise that nearly everything is lost."""
    heard = network.candidates >= 0
    if network.rss is None or network.devices == 1 or (heard.any() and network.drop[heard].min() < MOSTLY_LOST):
        return []
    return [
        f"received power (at most {network.rss.max(initial=0.0):g}) is below the noise (channel.noise_power, "
        f"{noise_power(channel):g}): give both in one unit"
    ]


def bound_sentence(item: Discovery) -> str | None:
    """What is known about the optimum, if this discovery says anything about it."""
    if item.proven:
        return "the optimum is proven: no graph has a higher objective"
    if item.upper_bound is not None:
        return f"no graph has an objective above {item.upper_bound:.4f}"
    return None


def graph_findings(items: Sequence[Discovery], best: float | None) -> Findings:
    """The graphs of several methods in one network as a record that `d2dfl report` shows."""
    first = items[0]
    names = shown(best)[:-1]  # without the seconds, which a rerun may change
    columns = ("method", *(short for _, short in names))
    rows = tuple((item.method, *shown_values(item, best)[:-1]) for item in items)
    meanings = column_meanings(items, best)
    explained = ("", *(meanings[short] for _, short in names))
    maps: tuple[Map, ...] = ()
    if first.network.devices <= MANY:  # of more, a map shows nothing and takes minutes
        layers = [layer_of(METHODS[item.method].title, item) for item in items]
        maps = (map_of(f"Seed {first.seed}", first.network, layers),)
    return Findings(
        name="graphs",
        title=" and ".join(METHODS[item.method].title for item in items) if len(items) < 3 else f"{len(items)} graphs",
        setting=headline(first),
        config=first.config.to_toml(),
        tables=(Table("All methods", columns, rows, dash_sentence(items) or "", explained),),
        maps=maps,
        takeaway=graph_takeaway(items, best),
        command=graph_command(items),
    )
