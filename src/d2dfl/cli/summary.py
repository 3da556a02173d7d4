"""What a reader wants to know about discoveries, as plain rows and sentences; the command line lays them out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import share_of
from d2dfl.network import Network
from d2dfl.network.graph import Graph

# (long name, short name) of each measure; the short one heads a column
MEASURES = (
    ("objective", "objective"),
    ("share of the best known objective", "share"),
    ("labels satisfied per device", "labels"),
    ("distance to i.i.d. after the exchange", "dist"),
    ("probability of success", "success"),
    ("share of inter-cluster datapoints", "inter"),
    ("datapoints moved", "moved"),
    ("datapoints lost", "lost"),
    ("messages per device", "msgs"),
    ("seconds", "s"),
)


def best_known(discoveries: Sequence[Discovery]) -> float:
    """The highest objective that any of these reached."""
    return max(item.evaluation.objective for item in discoveries)


def measures(item: Discovery, best: float | None) -> list[str]:
    """The values of one discovery, in the order of MEASURES."""
    worth = item.evaluation
    share = "–" if best is None else f"{share_of(worth.objective, best, worth.no_exchange):.3f}"
    return [
        f"{worth.objective:.4f}",
        share,
        f"{worth.labels_satisfied.mean():.2f}",
        f"{worth.distance_after[item.config.reward.metric]:.3f}",
        "–" if worth.success_probability is None else f"{worth.success_probability:.3f}",
        "–" if worth.inter_cluster_share is None else f"{worth.inter_cluster_share:.2f}",
        f"{worth.datapoints_moved:,.0f}",
        f"{worth.datapoints_lost:,.0f}",
        f"{item.messages / item.network.devices:,.0f}",
        f"{item.seconds:.2f}",
    ]


def headline(item: Discovery) -> str:
    """One line about the network before any exchange."""
    network, metric = item.network, item.config.reward.metric
    return (
        f"{network.devices} devices, {network.partitions} partitions, {len(network.budget)} reliable clusters; "
        f"{metric} distance to i.i.d. before the exchange {item.evaluation.distance_before[metric]:.3f}"
    )


def why_unlinked(network: Network, graph: Graph) -> dict[str, list[int]]:
    """Devices without an incoming link, by the reason."""
    heard = network.candidates >= 0
    need, surplus = network.need > 0, network.surplus > 0
    spare = surplus[network.candidates] & heard[:, :, None]
    checks: dict[str, NDArray[np.bool_]] = {
        "hears nobody": np.asarray(~heard.any(axis=1)),
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


def unlinked_sentences(network: Network, graph: Graph) -> list[str]:
    """One sentence per reason for which devices have no link."""
    sentences = []
    for reason, devices in why_unlinked(network, graph).items():
        shown = ", ".join(map(str, devices[:8])) + (", …" if len(devices) > 8 else "")
        noun = "device has" if len(devices) == 1 else "devices have"
        sentences.append(f"{len(devices)} {noun} no link: {reason} ({shown})")
    return sentences


def bound_sentence(item: Discovery) -> str | None:
    """What is known about the optimum, if this discovery says anything about it."""
    if item.proven:
        return "the optimum is proven: no graph has a higher objective"
    if item.upper_bound is not None:
        return f"no graph has an objective above {item.upper_bound:.4f}"
    return None
