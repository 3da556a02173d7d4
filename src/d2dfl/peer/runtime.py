"""A peer at work: the one thread that owns the peer and its store, fed by a transport through a bounded queue."""

import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.datapoints import ShardFile
from d2dfl.peer.discovery import GraphFile
from d2dfl.peer.home import Home
from d2dfl.peer.identity.sealed import LARGEST
from d2dfl.peer.measured import LINKS
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.news import News
from d2dfl.peer.peer import Peer
from d2dfl.peer.radio import signal_dbm
from d2dfl.peer.store.operations import Fact
from d2dfl.peer.store.store import StoreFullError
from d2dfl.peer.transports import Transport
from d2dfl.progress import silent
from d2dfl.storage import read_json, write_whole

WAITING = 128  # frames in the queue: with the largest ones 128 MiB
LONGEST_NAP_S = 0.2
EVERY_S = 1.0  # how often files are looked at
GREET_S = 0.25  # seconds between probes of who only greets
LINKS_S = 30.0  # how often measured links are written: a memory card wears out
LINGER_S = 2.0  # a peer that is finished goes on answering for so long
MOMENTS = 2880  # of measured losses that are kept: a day of them
WISHES = "wishes"  # files of commands that were given while the peer runs
FULL = "the store cannot be written ({}): nothing is lost, and what comes is asked for again when it can"
ROOM = "the store can be written again"


class Clock:
    """Seconds since 1970 that never go back while the process lives.

    They follow the system's clock forward, which is set after a start without a network, and goes on while a device sleeps: grants
    end by it.
    """

    def __init__(self) -> None:
        self.offset = -math.inf

    def __call__(self) -> float:
        steady = time.monotonic()
        self.offset = max(self.offset, time.time() - steady)
        return self.offset + steady


@dataclass
class Running:
    """One run of a peer."""

    home: Home
    peer: Peer
    transport: Transport
    inbox: "Queue[bytes]"
    clock: Callable[[], float]
    files: set[ShardFile] = field(default_factory=set)  # with shards, as they were before the run read them
    tell: Callable[[Peer], None] = silent  # once links are settled
    over: Callable[[Peer], None] = silent  # once a round is over
    watch: Callable[[Peer, float], None] = silent  # whenever something may have changed
    warn: Callable[[str], None] = silent
    _told: bytes = b""  # the round of which it was told
    _full: bool = False  # whether it was said that the store cannot be written
    history: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=MOMENTS))  # losses as time goes by
    news: News = field(init=False)
    _calm_s: float = math.inf  # since when the round is done
    _look_s: float = 0.0
    _probe_s: float = 0.0
    _links_s: float = 0.0
    _policy: bytes = b""
    _certificates: tuple[bytes, ...] = ()
    _dropped: Counter[str] = field(default_factory=Counter)  # of which the peer was told

    def __post_init__(self) -> None:
        self.news = News(self.home, self.files)

    def once(self) -> None:
        """Wait a little for frames, handle what came, do what is due, send what came out."""
        now = self.clock()
        nap = max(0.0, min(self.peer.timer() - now, LONGEST_NAP_S))
        try:
            self.peer.receive(self.inbox.get(timeout=nap) if nap else self.inbox.get_nowait(), self.clock())
            for _ in range(WAITING):
                self._send()
                self.peer.receive(self.inbox.get_nowait(), self.clock())
        except Empty:
            pass
        now = self.clock()
        if now >= self.peer.timer():
            self.peer.tick(now)
        if now >= self._probe_s:
            self._probe_s = now + (GREET_S if self.peer.greets_only else self.home.settings.probe_s)
            self.peer.probe(now)
        self._send()  # before another policy is read: what stood under the old one
        if now >= self._look_s and not self.peer.greets_only:
            self._look_s = now + EVERY_S
            self.look(now)
        self._send()
        self.watch(self.peer, now)
        if bool(self.peer.store.full) != self._full:
            self._full = not self._full
            self.warn(FULL.format(self.peer.store.full) if self._full else ROOM)
        discovery = self.peer.discovery
        if discovery is not None and discovery.links() is not None and discovery.round != self._told:
            self._told = discovery.round
            self.tell(self.peer)

    def look(self, now: float) -> None:
        """Files that may have changed: the policy, certificates, and wishes of other commands; and what did not get through."""
        self._renew()
        dropped = Counter(self.transport.dropped)
        for reason, number in (dropped - self._dropped).items():
            self.peer.refuse(reason, now, number)
        self._dropped = dropped
        with suppress(StoreFullError):
            try:
                policy = self.home.policy_bytes()
            except UserError:
                policy = b""  # no policy that can be read: nothing is shared
            if policy != self._policy:
                self.peer.set_policy(policy, now)
                self._policy = policy
            for path in sorted((self.home.folder / WISHES).glob("*.json")):
                self._grant_wish(path, now)
        if now >= self._links_s:
            self._links_s = now + LINKS_S
            self.write_links()

    def _renew(self) -> None:
        """Certificates that were replaced: links begin anew with them, else they end when the old ones do."""
        with suppress(UserError):  # none that can be used: those that the transport has read still count
            found = self.home.certificates(self.peer.roster.owner)
            if self._certificates not in ((), found):
                self.transport.renew()
            self._certificates = found

    def _grant_wish(self, path: Path, now: float) -> None:
        try:
            wish = read_json(path, "a wish", 2 * LARGEST)
            if "roster" in wish:
                self.peer.set_roster(str(wish["roster"]).encode(), now)
            else:
                self.peer.forgetting.order([int(number) for number in wish["forget"]], now)
        except (UserError, KeyError, TypeError, ValueError, OverflowError):
            pass  # whoever wrote it was told; it must not be tried again
        with suppress(OSError):  # a folder, or one that may not be written: nothing that ends a run
            path.unlink()

    def write_links(self) -> None:
        """What is known about links, for `peer export` and `fleet network`."""
        links = {
            who.hex(): {**link.as_dict(), "last_heard_s": self.peer.heard_s.get(who)}
            for who, link in self.peer.links.items()
        }
        heard = {who.hex(): link.since_last() for who, link in self.peer.links.items()}
        losses = {who: loss for who, loss in heard.items() if loss is not None}
        if losses:
            self.history.append({"time_s": round(self.clock(), 3), "loss": losses})
        content = {
            "own": self.peer.own.hex(),
            "links": links,
            "history": list(self.history),
            "signal_dbm": signal_dbm(),
        }
        with suppress(UserError):  # a full disk: later
            write_whole(self.home.folder / LINKS, json.dumps(content).encode())

    def _send(self) -> None:
        for receiver, frame in self.peer.take():
            self.transport.send(receiver, frame)

    def finished(self) -> bool:
        """Whether this round is done here: nothing open, and all who give to this peer have said that they are done."""
        peer = self.peer
        if peer.discovery is None:
            return False
        expected = {who for who in peer.discovery.senders() if peer.roster.active(who) is not None}
        return peer.giving.idle and not peer.forgetting.waiting and expected <= peer.finished

    def until_done(self, stay: bool, seconds: float) -> bool:
        """Run the round to its end; False where time was out first. Who stays goes on with the next one (news.py says when)."""
        end = self.clock() + seconds
        while stay or self.clock() < end:
            self.once()
            if self.round_over(stay):
                self.over(self.peer)
                if not stay:
                    return True
        return False

    def round_over(self, stay: bool) -> bool:
        """Whether the round is done, and has been for a while: others may have missed that. Who stays is then ready for the next."""
        talk, now = self.peer.discovery, self.clock()
        if stay and isinstance(talk, Negotiation) and talk.attempt is None:
            self.news.look(self.peer, talk, now)
        if not self.finished() or (stay and isinstance(talk, GraphFile)):  # one that was named is followed on
            self._calm_s = math.inf
            return False
        self._calm_s = min(self._calm_s, now)
        if now - self._calm_s <= (2.0 * self.peer.limits.hello_s if stay else LINGER_S):
            return False
        self.mark_done()
        if stay:
            self.news.forget_all_before(self.peer)
            self.peer.follow(self.home.discovery(self.peer, now, calls=False))
        return True

    def mark_done(self) -> None:
        """The next start begins another round."""
        if self.peer.discovery is not None and self.peer.store.fact("graph") is not None:
            with suppress(StoreFullError):
                self.peer.store.apply([Fact("graph_done", self.peer.discovery.round.hex())], self.clock())
