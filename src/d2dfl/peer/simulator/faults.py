"""What goes wrong in a fleet, and what its peers are asked to do meanwhile: all of it drawn by the fleet's one random source."""

from functools import partial
from typing import TYPE_CHECKING

from d2dfl.peer.peer import Peer
from d2dfl.peer.simulator.devices import Device
from d2dfl.peer.simulator.schedule import LABELS
from d2dfl.peer.store.store import StoreFullError

if TYPE_CHECKING:
    from d2dfl.peer.simulator.fleet import Fleet


class Faults:
    """Misfortunes of one fleet."""

    def __init__(self, fleet: "Fleet") -> None:
        self.fleet = fleet
        self.newest = b""  # the roster after somebody was thrown out

    def plan(self) -> None:
        fleet = self.fleet
        schedule, end = fleet.schedule, fleet.schedule.faults_end_s
        for _ in range(schedule.gifts):
            fleet.at(fleet.random.random() * end, self._gift)
        for _ in range(schedule.revocations):
            fleet.at(fleet.random.random() * end, self._revoke)
        for _ in range(schedule.forgets):
            fleet.at(fleet.random.random() * end, self._forget)
        for _ in range(schedule.partitions):
            start = fleet.random.random() * end
            one, other = fleet.random.choice(schedule.peers, 2, replace=False).tolist()
            fleet.at(start, partial(fleet.blocked.add, (one, other)))
            fleet.at(start + fleet.random.random() * end, partial(fleet.blocked.discard, (one, other)))
        for second in range(int(end)):
            for device in fleet.devices:
                if fleet.random.random() < schedule.full:
                    fleet.at(second, partial(self._fill_disk, device))
        if schedule.expels and schedule.peers > 2:
            fleet.at(fleet.random.random() * end, self._expel)
        for device in fleet.devices if schedule.slow_s else ():
            device.slow_s = fleet.random.random() * schedule.slow_s
        fleet.at(end, fleet.calm)

    def _fill_disk(self, device: Device) -> None:
        fleet = self.fleet
        device.full_until_s = fleet.now + 1.0

    # What peers are asked to do.

    def _gift(self) -> None:
        fleet = self.fleet
        one, other = fleet.random.choice(len(fleet.devices), 2, replace=False).tolist()
        wanted = {label: int(fleet.random.integers(0, 4)) for label in LABELS}
        taker = fleet.devices[other].own
        fleet.let(fleet.devices[one], lambda peer: peer.giving.give(taker, wanted, fleet.now))

    def _revoke(self) -> None:
        fleet = self.fleet
        device = fleet.devices[int(fleet.random.integers(len(fleet.devices)))]
        if fleet.random.random() < 0.3 and len(device.policies) > 1:  # somebody brings an older one back
            fleet.let(device, lambda peer: fleet.checks.older(device, peer.set_policy(device.policies[0], fleet.now)))
            return
        numbers = {o.own: int(fleet.random.integers(0, 6)) for o in fleet.devices if o is not device}
        if device.peer is None:  # it is obeyed when the power is back
            fleet.checks.new_policy(device, numbers)
        fleet.let(device, lambda peer: self._change(device, peer, numbers))

    def _change(self, device: Device, peer: Peer, numbers: dict[bytes, int]) -> None:
        """From when a peer reads its policy it counts: while its disk writes it reads nothing."""
        self.fleet.checks.new_policy(device, numbers)
        self._obey(device, peer)

    def _obey(self, device: Device, peer: Peer) -> None:
        fleet = self.fleet
        try:
            peer.set_policy(device.policies[-1], fleet.now)
        except StoreFullError:  # it is in force, and will be written down when there is room
            fleet.at(1.0, lambda: fleet.let(device, lambda again: self._obey(device, again)))

    def _forget(self) -> None:
        fleet = self.fleet
        device = fleet.devices[int(fleet.random.integers(len(fleet.devices)))]
        numbers = fleet.random.integers(0, fleet.schedule.points, 2).tolist()
        fleet.let(
            device, lambda peer: fleet.checks.forgotten(device, peer.forgetting.order(numbers, fleet.now), numbers)
        )

    def _expel(self) -> None:
        """The roster's owner throws a device out, and tells one of the others."""
        fleet = self.fleet
        gone, told = fleet.random.choice(len(fleet.devices), 2, replace=False).tolist()
        fleet.expelled, self.newest = fleet.devices[gone], fleet.roster.without(f"p{gone}").sealed(fleet.owner)
        self._tell(fleet.devices[told])

    def _tell(self, device: Device) -> None:
        """Until it has understood: it may be down, or its disk full."""
        fleet = self.fleet
        if device.peer is not None and device.peer.roster.number > 1:
            return
        fleet.let(device, lambda peer: peer.set_roster(self.newest, fleet.now))
        fleet.at(1.0, lambda: self._tell(device))
