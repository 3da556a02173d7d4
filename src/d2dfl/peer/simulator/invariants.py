"""What must hold after every event of the simulator, computed from the stores and the frames alone, not from what peers believe."""

from collections import Counter
from typing import TYPE_CHECKING

from d2dfl.peer.handover.limits import DAY_S
from d2dfl.peer.simulator.devices import Device, content_of, signed_policy
from d2dfl.peer.simulator.schedule import LABELS
from d2dfl.peer.store.audit import first_fault
from d2dfl.peer.wire.frames import read_body, read_frame
from d2dfl.peer.wire.messages import Commit, Offer, Piece, decode_body, decode_points

if TYPE_CHECKING:
    from d2dfl.peer.simulator.fleet import Fleet

Point = tuple[bytes, int]


class Checks:
    """An eye on the whole fleet, which no peer has."""

    def __init__(self, fleet: "Fleet") -> None:
        self.fleet = fleet
        self.granted: dict[bytes, dict[bytes, dict[str, int]]] = {}  # what each policy in force says, kept by ourselves
        self.shown: dict[tuple[bytes, bytes, str], set[int]] = {}  # datapoints that left, by sender, receiver, label
        self.gone: set[Point] = set()  # forgotten
        self.rows: dict[int, dict[Point, bool]] = {}  # [device] datapoints, and whether they are leaving
        self.seen_changes: dict[int, int] = {}
        self.first = {
            (device.own, number): content_of(device.number, number)
            for device in fleet.devices
            for number in range(fleet.schedule.points)
        }
        self.bytes_sent: Counter[tuple[bytes, int]] = Counter()
        self.pieces = 0

    # Told by the fleet.

    def new_policy(self, device: Device, numbers: dict[bytes, int]) -> None:
        """The owner of a device signs another policy; from now on it is what counts."""
        draw = self.fleet.random.random
        grants = {to: {label: most for label in LABELS if draw() < 0.8} for to, most in numbers.items()}
        device.policies.append(signed_policy(self.fleet.owner, len(device.policies) + 1, grants))
        self.granted[device.own] = grants

    def older(self, device: Device, answer: str | None) -> None:
        """Somebody brought an older policy: it must be refused, and nothing is shared until the newest is back."""
        assert answer is not None, "an older policy was obeyed"
        if device.peer is not None:
            assert not device.peer.policy.grants, "a refused policy left grants in force"
            device.peer.set_policy(device.policies[-1], self.fleet.now)

    def forgotten(self, device: Device, order: bytes, numbers: list[int]) -> None:
        self.gone |= {(device.own, number) for number in numbers}

    def frame(self, device: Device, receiver: bytes, data: bytes) -> None:
        """Consent: what leaves is granted at this moment, by number too."""
        frame = read_frame(data)
        body = decode_body(read_body(frame, self.fleet.by_print[receiver].box.public, device.box))
        if not isinstance(body, Offer | Piece | Commit):
            return
        grants = self.granted[device.own].get(receiver, {})
        if isinstance(body, Offer):
            for label, number in body.labels:
                assert number <= grants.get(label, 0), "an offer tells what is not granted"
        elif isinstance(body, Commit):
            record = device.store.outgoing(body.transfer)
            assert record is not None, "a commit of an unknown transfer"
            assert all(grants.get(label, 0) for label, _ in record.labels), "a commit after the grant has ended"
        else:
            self._piece(device, receiver, body, grants)

    def _piece(self, device: Device, receiver: bytes, body: Piece, grants: dict[str, int]) -> None:
        self.pieces += 1
        for point in decode_points(body.content):
            shown = self.shown.setdefault((device.own, receiver, point.label), set())
            shown.add(point.number)
            assert len(shown) <= grants.get(point.label, 0), "a datapoint leaves without a grant"
            assert (device.own, point.number) not in self.gone, "a forgotten datapoint leaves"
        day = int(self.fleet.now // DAY_S)
        self.bytes_sent[device.own, day] += len(body.content)
        if self.fleet.faulty:  # afterwards the limit is lifted
            limit = self.fleet.schedule.bytes_a_day
            assert self.bytes_sent[device.own, day] <= limit, "more bytes in a day than allowed"

    # Looked at.

    def after(self, device: Device) -> None:
        """After every event of a device: nothing is lost, nothing is doubled."""
        if device.peer is None:
            self._look(device)  # a crash: what was rolled back must be gone
        elif self.seen_changes.get(device.number) != device.store.changes:
            self.seen_changes[device.number] = device.store.changes
            self._look(device)
        else:
            return
        held: Counter[Point] = Counter()
        free: Counter[Point] = Counter()
        gone = None if self.fleet.expelled is None else self.fleet.expelled.number
        for number, rows in self.rows.items():
            held.update(rows.keys())
            # What was on its way to one who was thrown out is taken back, whatever became of it there.
            free.update(point for point, leaving in rows.items() if not leaving and number != gone)
        if len(self.rows) < len(self.fleet.devices):
            return
        for point in self.first:
            assert held[point] or point in self.gone, "a datapoint is lost"
        if self.fleet.schedule.keep == "move":
            assert max(free.values(), default=0) <= 1, "a datapoint is free at two peers"
        assert held.keys() <= self.first.keys(), "a datapoint came from nowhere"

    def _look(self, device: Device) -> None:
        found = device.store.db.execute("SELECT origin, number, content, leaving FROM points").fetchall()
        rows = {(origin, number): leaving is not None for origin, number, _, leaving in found}
        assert len(rows) == len(found), "a datapoint is doubled in one store"
        for origin, number, content, _ in found:
            assert self.first.get((origin, number)) == content, "a datapoint was changed"
        self.rows[device.number] = rows

    def at_rest(self) -> None:
        """When all is quiet."""
        held: Counter[Point] = Counter()
        for device in self.fleet.members():
            self._look(device)
            held.update(self.rows[device.number].keys())
            assert not any(self.rows[device.number].values()), "a datapoint is still leaving"
            assert first_fault(device.store.audit())[0] is None, "the audit is broken"
            assert device.store.audit_fault() is None, "the audit has lost its end"
        out = self.fleet.expelled
        away = {} if out is None else self.rows[out.number]  # what one who was thrown out has is out of reach
        wrong = [
            point
            for point in self.first
            if (point in self.gone and held[point] and (out is None or point[0] != out.own))  # nobody obeys it any more
            or not (point in self.gone or held[point] or point in away)
        ]
        assert not wrong, "a datapoint is lost, or one that was forgotten is still there"
        if self.fleet.schedule.keep == "move":
            assert max(held.values(), default=0) <= 1, "a datapoint is at two peers"
        self._same_stories()
        self._graph_kept()

    def _graph_kept(self) -> None:
        """What a round has handed over is what the graph says, or less: starts in the middle add nothing."""
        for device in self.fleet.members():
            rows = device.store.db.execute(
                "SELECT g.receiver, g.label, count(*) FROM given g JOIN outgoing o ON o.id = g.transfer "
                "WHERE o.round = ? AND o.phase != 'returned' GROUP BY g.receiver, g.label",
                (b"round",),
            )
            for receiver, label, number in rows:
                assert number <= self.fleet.graph[device.own][receiver][label], "a link was handed over twice"

    def _same_stories(self) -> None:
        """What one peer says of a transfer, the other says, too."""
        phases = {"done": "committed", "returned": "refused"}
        for device in self.fleet.members():
            chain = [hash_ for _, _, hash_ in device.store.audit()]
            for transfer, receiver, phase in device.store.db.execute("SELECT id, receiver, phase FROM outgoing"):
                if self.fleet.by_print[receiver] is self.fleet.expelled:
                    continue
                said = self.fleet.by_print[receiver].store.incoming(transfer, device.own).phase
                assert phases[phase] == said, f"a transfer is {phase} here and {said} there"
            for other in self.fleet.members():
                heads = other.store.db.execute("SELECT lines, hash FROM heads WHERE peer = ?", (device.own,))
                assert all(lines == 0 or chain[lines - 1] == hash_ for lines, hash_ in heads), "two stories"
