"""What makes a device that stays call for another round: new shards in its folder, another policy, another roster."""

import sqlite3
from contextlib import suppress

from d2dfl.errors import UserError
from d2dfl.peer.datapoints import ShardFile, shard_files, take_in
from d2dfl.peer.home import Home
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.peer import Peer
from d2dfl.peer.store.operations import Note
from d2dfl.peer.store.store import StoreFullError

DATA_S = 5.0  # how often the folder with the data is looked at


class News:
    """What a device has seen."""

    def __init__(self, home: Home, files: set[ShardFile]) -> None:
        """`files`: those that were there before the run read them; what came since is new."""
        self.home = home
        self._data_s = 0.0
        self._files = files
        self._about: tuple[int, ...] = ()

    def forget_all_before(self, peer: Peer) -> None:
        """A round is over: what comes from now on is new."""
        self._about = self._now(peer)

    def look(self, peer: Peer, talk: Negotiation, now: float) -> None:
        """Between two rounds."""
        if now >= self._data_s:
            self._data_s = now + DATA_S
            with suppress(StoreFullError):
                self._take_in(peer, now)
        if self._about and self._now(peer) != self._about:
            self._about = self._now(peer)
            talk.call(now)

    def _take_in(self, peer: Peer, now: float) -> None:
        home = self.home
        files = shard_files(home.settings.data, home.folder)
        if files == self._files:
            return
        try:
            take_in(peer.store, home.settings.data, home.folder, home.settings.labels, now)
        except (UserError, sqlite3.Error) as error:  # it may still be written: looked at again when it changes
            peer.store.apply([Note("not-taken-in", text=str(error)[:200])], now)
        self._files = files

    def _now(self, peer: Peer) -> tuple[int, ...]:
        return int(peer.store.fact("points") or 0), peer.policy.number, peer.roster.number
