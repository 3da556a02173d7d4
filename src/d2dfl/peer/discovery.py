"""The seam between a peer and the discovery of the graph: an object without I/O, fed with messages and time.

A learner that negotiates is built with what the policy lets others know (`Peer.visible`) and puts its own messages into
`wire.Discovery`; the peer signs, sends, checks and counts them like all others. Until links are settled `links()` is None.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from d2dfl.errors import UserError
from d2dfl.peer.identity.roster import Roster
from d2dfl.storage import read_json

Links = Mapping[bytes, Mapping[str, int]]  # receiver → label → datapoints that this peer is to give


class DiscoveryProtocol(Protocol):
    """One device's part of a discovery."""

    @property
    def round(self) -> bytes:
        """Names the discovery: what was handed over in a round is not handed over again."""

    def receive(self, sender: bytes, content: bytes, now: float) -> None: ...
    def tick(self, now: float) -> None: ...
    def take(self) -> list[tuple[bytes, bytes]]:
        """(receiver, content) that are to be sent."""

    def timer(self) -> float: ...
    def links(self) -> Links | None: ...
    def senders(self) -> frozenset[bytes]:
        """Who will give this peer something."""


class FixedGraph:
    """A graph that was found elsewhere, as `d2dfl discover --json` writes it; device numbers are places in the roster."""

    def __init__(self, round_: bytes, links: Links, senders: frozenset[bytes]) -> None:
        self.round, self._links, self._senders = round_, links, senders

    def receive(self, sender: bytes, content: bytes, now: float) -> None:
        """Nobody negotiates."""

    def tick(self, now: float) -> None:
        """Nothing waits."""

    def take(self) -> list[tuple[bytes, bytes]]:
        return []

    def timer(self) -> float:
        return float("inf")

    def links(self) -> Links:
        return self._links

    def senders(self) -> frozenset[bytes]:
        return self._senders


def graph_file(path: Path, roster: Roster, own: bytes, labels: tuple[str, ...]) -> FixedGraph:
    """The part of a graph file that concerns one peer."""
    content = read_json(path, "a graph that `d2dfl discover --json` wrote")
    edges, amounts = _checked(content, path, len(roster.members), len(labels))
    links: dict[bytes, dict[str, int]] = {}
    senders = set()
    for (transmitter, receiver), row in zip(edges, amounts, strict=True):
        whole = {label: int(amount + 0.5) for label, amount in zip(labels, row, strict=True) if amount >= 0.5}
        giver, taker = roster.members[transmitter].fingerprint, roster.members[receiver].fingerprint
        if giver == own and whole:
            links[taker] = whole
        if taker == own and whole:
            senders.add(giver)
    round_ = hashlib.sha256(json.dumps([edges, amounts]).encode()).digest()
    return FixedGraph(round_, links, frozenset(senders))


def _checked(content: Any, path: Path, devices: int, labels: int) -> tuple[list[list[int]], list[list[float]]]:
    edges = content.get("edges") if isinstance(content, dict) else None
    amounts = content.get("expected_datapoints") if isinstance(content, dict) else None
    if not isinstance(edges, list) or not isinstance(amounts, list) or len(edges) != len(amounts):
        raise UserError(f"{path} holds no graph: give a file that `d2dfl discover --json` wrote")
    for edge, row in zip(edges, amounts, strict=True):
        good = (
            isinstance(edge, list) and len(edge) == 2 and all(type(one) is int and 0 <= one < devices for one in edge)
        )
        if not good or edge[0] == edge[1]:
            raise UserError(f"{path} has the link {edge!r:.60}: the roster has devices 0 to {devices - 1}")
        if not isinstance(row, list) or len(row) != labels:
            raise UserError(
                f"{path} has links with {len(row) if isinstance(row, list) else 'no'} labels: peer.toml names {labels}"
            )
        if not all(isinstance(one, int | float) and 0 <= one <= 1e12 for one in row):
            raise UserError(f"{path} has amounts that are none: give datapoints of each label")
    if len({tuple(edge) for edge in edges}) < len(edges):
        raise UserError(f"{path} has a link twice")
    return edges, amounts
