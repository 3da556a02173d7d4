"""Forgetting: the origin of a datapoint makes all who were given it delete it, now or when they are back.

An order is stored with its receivers before anything is said, and repeated until each has answered. A receiver deletes,
closes the door for the same datapoint, writes it into its audit, and answers with the head of that audit; it answers every
repetition. Only the origin can order it, and the origin is who signed the frame that the datapoint came in.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from d2dfl.errors import UserError
from d2dfl.peer.store.operations import Answered, Erase, Heard, Note, Operation, Order, Refuse, Seen, Stop
from d2dfl.peer.store.store import Store
from d2dfl.peer.wire.messages import MOST_FORGOTTEN, MOST_USES, Forget, Forgotten, decode_points

if TYPE_CHECKING:
    from d2dfl.peer.peer import Peer


class Forgetting:
    """Orders of this peer, and those of others."""

    def __init__(self, peer: "Peer", now: float) -> None:
        self.peer = peer
        self.due_s = dict.fromkeys(peer.store.pending_orders(), now)
        self.waits: dict[tuple[bytes, bytes], int] = {}

    def order(self, numbers: Sequence[int], now: float) -> bytes:
        """Forget datapoints of one's own everywhere. Transfers with them are stopped; the rest of these comes back."""
        peer, chosen = self.peer, forgettable(self.peer.store, numbers)
        order = peer.new_id(repr(chosen).encode())
        receivers = tuple(sorted(peer.store.holders(chosen)))
        stopped = peer.store.transfers_with(chosen) & set(peer.giving.progress)
        peer.store.apply(
            [
                Order(order, chosen, receivers),
                Erase(peer.own, chosen),
                *(Stop(transfer) for transfer in sorted(stopped)),
                Note("forget", transfer=order, points=len(chosen), text=f"{len(receivers)} receivers"),
            ],
            now,
        )
        for receiver in receivers:
            self.due_s[order, receiver] = now
        for transfer in sorted(stopped):  # the order of a set is drawn anew in every process
            record = peer.store.outgoing(transfer)
            if record is not None:
                peer.giving.event(record, "revoked", now)
        self.tick(now)
        return order

    def on_forget(self, sender: bytes, body: Forget, seen: Seen, now: float) -> None:
        """Somebody's datapoints are to go from here."""
        peer, store, numbers = self.peer, self.peer.store, tuple(sorted(set(body.points)))
        if body.order[: len(sender)] != sender:
            peer.refuse("somebody else's order", now)
            return
        used = _named(store.used_in(sender, numbers))
        if not all(store.is_forgotten(sender, number) for number in numbers):
            door = peer.door(sender, len(numbers), now)
            if door is None:
                return
            operations: list[Operation] = [seen, door, Erase(sender, numbers)]
            operations += [Refuse(transfer, sender) for transfer in self._aside(sender, set(numbers))]
            operations.append(Note("forgotten", sender, body.order, len(numbers), text=", ".join(used)[:500]))
            store.apply(operations, now)
        peer.send(sender, Forgotten(body.order, used, peer.head))

    def on_forgotten(self, sender: bytes, body: Forgotten, seen: Seen, now: float) -> None:
        """A receiver has deleted."""
        if (body.order, sender) not in self.due_s:
            if not self.peer.store.was_told(body.order, sender):
                self.peer.refuse("an answer to no order", now)
            return
        self.peer.store.apply(
            [
                seen,
                Heard(sender, body.head.lines, body.head.hash),
                Answered(body.order, sender, tuple(body.used_in)),
                Note("forgotten-there", sender, body.order, text=", ".join(body.used_in)[:500]),
            ],
            now,
        )
        del self.due_s[body.order, sender]

    def tick(self, now: float) -> None:
        limits = self.peer.limits
        for (order, receiver), due in list(self.due_s.items()):
            if due <= now:
                waits = self.waits.get((order, receiver), 0)
                self.waits[order, receiver] = waits + 1
                self.due_s[order, receiver] = now + min(
                    limits.timeout_s * 2 ** min(waits, 16), limits.longest_timeout_s
                )
                self.peer.send(receiver, Forget(order, self.peer.store.order(order, receiver)))

    def back(self, receiver: bytes, now: float) -> None:
        """Somebody is heard again after a silence."""
        for key in self.due_s:
            if key[1] == receiver:
                self.due_s[key] = now

    @property
    def waiting(self) -> bool:
        """Whether somebody of the fleet has not answered yet."""
        return any(self.peer.roster.active(receiver) is not None for _, receiver in self.due_s)

    def timer(self) -> float:
        return min(self.due_s.values(), default=math.inf)

    def _aside(self, sender: bytes, numbers: set[int]) -> list[bytes]:
        """Transfers of which pieces with these datapoints are put aside: they are not taken."""
        store = self.peer.store
        return [
            transfer
            for transfer in store.receiving(sender)
            if any(point.number in numbers for content in store.pieces(transfer) for point in decode_points(content))
        ]


def forgettable(store: Store, numbers: Sequence[int]) -> tuple[int, ...]:
    """Those of one's own datapoints that an order would be about; refused where it would be none."""
    chosen = tuple(sorted(set(numbers)))
    if not 0 < len(chosen) <= MOST_FORGOTTEN:
        raise UserError(f"{len(chosen):,} datapoints are to be forgotten: give 1 to {MOST_FORGOTTEN:,} at once")
    known = int(store.fact("points") or 0)
    strange = [number for number in chosen if not 0 <= number < known]
    if strange:
        those = f"they are 0 to {known - 1}" if known else "it has taken in none yet"
        raise UserError(f"there never was a datapoint {strange[0]} of this device: {those}")
    chosen = tuple(number for number in chosen if not store.is_forgotten(store.own, number))
    if not chosen:
        raise UserError("that is forgotten already: `d2dfl peer status` says who has not confirmed it yet")
    return chosen


def _named(trainings: list[str]) -> list[str]:
    """Their names, as many as a message may have, and how many more there are."""
    if len(trainings) <= MOST_USES:
        return trainings
    return [*trainings[: MOST_USES - 1], f"and {len(trainings) - MOST_USES + 1:,} more"]
