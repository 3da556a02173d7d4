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
from d2dfl.peer.identity.roster import MOST_MEMBERS, Roster
from d2dfl.peer.store.operations import Fact, Note, Operation
from d2dfl.storage import read_json

Links = Mapping[bytes, Mapping[str, int]]  # receiver → label → datapoints that this peer is to give


class DiscoveryProtocol(Protocol):
    """One device's part of a discovery."""

    @property
    def round(self) -> bytes:
        """Names the discovery: what was handed over in a round is not handed over again."""

    def know(self, roster: Roster) -> None:
        """Who is in the fleet: told before all else, and whenever it changes."""

    @property
    def keeps(self) -> bool:
        """Whether its links are to be written down when they are settled."""

    def receive(self, sender: bytes, content: bytes, now: float) -> None:
        """A message of a member; raises a WireError for one that does not fit."""

    def restarted(self, other: bytes, now: float) -> None:
        """Somebody's process has started anew."""

    def tick(self, now: float) -> None: ...
    def take(self) -> list[tuple[bytes, bytes]]:
        """(receiver, content) that are to be sent."""

    def timer(self) -> float: ...
    def links(self) -> Links | None: ...
    def senders(self) -> frozenset[bytes]:
        """Who will give this peer something."""


class FixedGraph:
    """Links that were found elsewhere."""

    keeps = False

    def __init__(self, round_: bytes, links: Links | None, senders: frozenset[bytes]) -> None:
        self.round, self._links, self._senders = round_, links, senders

    def know(self, roster: Roster) -> None:
        """Who is in it changes no link."""

    def receive(self, sender: bytes, content: bytes, now: float) -> None:
        """Nobody negotiates."""

    def restarted(self, other: bytes, now: float) -> None:
        """That changes no link."""

    def tick(self, now: float) -> None:
        """Nothing waits."""

    def take(self) -> list[tuple[bytes, bytes]]:
        return []

    def timer(self) -> float:
        return float("inf")

    def links(self) -> Links | None:
        return self._links

    def senders(self) -> frozenset[bytes]:
        return self._senders


class GraphFile(FixedGraph):
    """A graph as `d2dfl discover --json` writes it; device numbers are places in the roster.

    A device that joined when some were there already brings them the newer roster: until then links are not settled.
    """

    def __init__(self, path: Path, own: bytes, labels: tuple[str, ...]) -> None:
        content = read_json(path, "a graph that `d2dfl discover --json` wrote")
        self.edges, amounts = _checked(content, path, len(labels))
        super().__init__(hashlib.sha256(json.dumps([self.edges, amounts]).encode()).digest(), None, frozenset())
        self.own = own
        self.whole = [
            {label: int(amount + 0.5) for label, amount in zip(labels, row, strict=True) if amount >= 0.5}
            for row in amounts
        ]

    @property
    def devices(self) -> int:
        """How many the roster must have."""
        return 1 + max((number for edge in self.edges for number in edge), default=-1)

    def know(self, roster: Roster) -> None:
        if len(roster.members) < self.devices:
            return
        prints = [member.fingerprint for member in roster.members]
        pairs = [(prints[one], prints[other], row) for (one, other), row in zip(self.edges, self.whole, strict=True)]
        self._links = {taker: row for giver, taker, row in pairs if giver == self.own and row}
        self._senders = frozenset(giver for giver, taker, row in pairs if taker == self.own and row)


def settled(discovery: DiscoveryProtocol, links: Links) -> list[Operation]:
    """What is written down once links are settled: the graph, and in the audit what each receiver has asked for."""
    given = {who: sum(amounts.values()) for who, amounts in links.items()}
    asked = [
        Note("asked", who, points=given[who], text=", ".join(f"{n} of {label}" for label, n in row.items())[:500])
        for who, row in links.items()
    ]
    graph = Note("graph", points=sum(given.values()), text=f"round {discovery.round.hex()[:16]}")
    return [Fact("graph", graph_document(discovery)), graph, *asked]


def graph_document(discovery: DiscoveryProtocol) -> str:
    """What a store keeps of a discovery that is settled."""
    links = {who.hex(): dict(amounts) for who, amounts in (discovery.links() or {}).items()}
    senders = sorted(who.hex() for who in discovery.senders())
    return json.dumps({"round": discovery.round.hex(), "links": links, "senders": senders})


def stored_graph(document: str) -> FixedGraph:
    """The same, to go on with."""
    content = json.loads(document)
    links = {bytes.fromhex(who): amounts for who, amounts in content["links"].items()}
    return FixedGraph(bytes.fromhex(content["round"]), links, frozenset(map(bytes.fromhex, content["senders"])))


def _checked(content: Any, path: Path, labels: int) -> tuple[list[list[int]], list[list[float]]]:
    edges = content.get("edges") if isinstance(content, dict) else None
    amounts = content.get("expected_datapoints") if isinstance(content, dict) else None
    if not isinstance(edges, list) or not isinstance(amounts, list) or len(edges) != len(amounts):
        raise UserError(f"{path} holds no graph: give a file that `d2dfl discover --json` wrote")
    for edge, row in zip(edges, amounts, strict=True):
        good = (
            isinstance(edge, list)
            and len(edge) == 2
            and all(type(one) is int and 0 <= one < MOST_MEMBERS for one in edge)
        )
        if not good or edge[0] == edge[1]:
            raise UserError(f"{path} has the link {edge!r:.60}: give two numbers of devices")
        if not isinstance(row, list) or len(row) != labels:
            raise UserError(
                f"{path} has links with {len(row) if isinstance(row, list) else 'no'} labels: peer.toml names {labels}"
            )
        if not all(isinstance(one, int | float) and 0 <= one <= 1e12 for one in row):
            raise UserError(f"{path} has amounts that are none: give datapoints of each label")
    if len({tuple(edge) for edge in edges}) < len(edges):
        raise UserError(f"{path} has a link twice")
    return edges, amounts
