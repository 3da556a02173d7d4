"""Measured links of a fleet as a network file that `d2dfl discover --network` reads, and as losses that `channel.trace` replays."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig, Config
from d2dfl.errors import UserError
from d2dfl.network.network import Network, thresholds
from d2dfl.peer.identity.roster import Roster
from d2dfl.peer.measured import MOST_BYTES, is_moment
from d2dfl.storage import read_json

STEP_S = 30.0  # between moments of a trace
LONGEST_TRACE_S = 7 * 86_400.0


def network_of(exports: list[Path], roster: Roster, reliability: float | None = None) -> Network:
    """A network of all members, in the order of the roster. A link that nobody measured counts as none.

    Devices of a cluster lose at most `reliability` of what they send to each other.
    """
    gone = {member.fingerprint.hex() for member in roster.members if member.revoked}
    found = {own: content for own, content in _read(exports).items() if own not in gone}
    return described_network(found, roster, reliability=reliability)


def described_network(
    found: Mapping[str, Mapping[str, Any]],
    roster: Roster,
    unmeasured: float = 1.0,
    threshold: str | None = None,
    reliability: float | None = None,
) -> Network:
    """The same of what devices say of themselves, by fingerprint; `unmeasured`: the loss of a link that nobody measured."""
    order = [member.fingerprint.hex() for member in roster.members]
    missing = [member.name for member in roster.members if not member.revoked and member.fingerprint.hex() not in found]
    if missing:
        raise UserError(f"there is no export of {missing[0]}: give one of every device of the roster")
    labels = next(iter(found.values()))["labels"]
    if any(item["labels"] != labels for item in found.values()):
        raise UserError("the exports name different labels: peer.toml must name the same on every device")
    size = len(order)
    counts = np.zeros((size, len(labels)))
    trust = np.zeros((size, size, len(labels)), dtype=np.bool_)
    drop = np.full((size, size), unmeasured)
    np.fill_diagonal(drop, 0.0)
    for device, own in enumerate(order):
        if own not in found:
            continue  # thrown out: nobody hears it
        counts[device] = found[own]["counts"]
        for other, print_ in enumerate(order):
            granted = found[own]["grants"].get(print_, [])
            trust[other, device] = [label in granted for label in labels]
            loss = (found[own]["links"].get(print_) or {}).get("loss")
            if loss is not None and print_ in found:
                drop[device, other] = loss
    channel = ChannelConfig() if reliability is None else replace(ChannelConfig(), reliability=reliability)
    wanted = thresholds(counts, threshold or Config().network.threshold)
    return Network.from_arrays(counts=counts, threshold=wanted, trust=trust, drop=drop, config=channel)


def _read(exports: list[Path]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in exports:
        content = _checked(read_json(path, "what `d2dfl peer export FILE.json` wrote", MOST_BYTES), path)
        found[content["fingerprint"]] = content
    return found


def trace_of(exports: list[Path], roster: Roster) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """loss[moment, receiver, transmitter] and the seconds of the moments: what `channel.trace` replays.

    A link keeps its last loss until it is measured again; before its first one it has that. One that was never measured loses all.
    """
    found = _read(exports)
    order = {member.fingerprint.hex(): place for place, member in enumerate(roster.members)}
    rows = [
        (moment["time_s"], order[own], order[who], loss)
        for own, content in found.items()
        if own in order
        for moment in content["history"]
        for who, loss in moment["loss"].items()
        if who in order
    ]
    if not rows:
        raise UserError("no export holds losses as time went by: let the peers run for some minutes, and export again")
    first, last = min(row[0] for row in rows), max(row[0] for row in rows)
    if last - first > LONGEST_TRACE_S:
        raise UserError(f"the exports are {(last - first) / 86_400:.0f} days apart: give those of one week")
    moments = 1 + int((last - first) // STEP_S)
    seen = np.full((moments, len(order), len(order)), np.nan)
    for time_s, receiver, transmitter, loss in sorted(rows):
        seen[int((time_s - first) // STEP_S), receiver, transmitter] = loss
    for moment in range(1, moments):
        seen[moment] = np.where(np.isnan(seen[moment]), seen[moment - 1], seen[moment])
    for moment in reversed(range(moments - 1)):
        seen[moment] = np.where(np.isnan(seen[moment]), seen[moment + 1], seen[moment])
    return np.where(np.isnan(seen), 1.0, seen), first + STEP_S * np.arange(moments)


def _checked(content: Any, path: Path) -> dict[str, Any]:
    wrong = UserError(f"{path} is no export of a peer: give what `d2dfl peer export FILE.json` wrote")
    if not isinstance(content, dict):
        raise wrong
    labels, counts = content.get("labels"), content.get("counts")
    if not isinstance(labels, list) or not isinstance(counts, list) or len(labels) != len(counts):
        raise wrong
    good = isinstance(content.get("fingerprint"), str) and all(
        type(one) is int and 0 <= one < 1 << 50 for one in counts
    )
    tables = [content.get(name) for name in ("grants", "links")]
    if not good or not all(isinstance(table, dict) for table in tables):
        raise wrong
    for link in content["links"].values():
        loss = link.get("loss") if isinstance(link, dict) else None
        if loss is not None and not (isinstance(loss, int | float) and 0 <= loss <= 1):
            raise wrong
    if not all(isinstance(granted, list) for granted in content["grants"].values()):
        raise wrong
    history = content.setdefault("history", [])
    if not isinstance(history, list) or not all(map(is_moment, history)):
        raise wrong
    return content
