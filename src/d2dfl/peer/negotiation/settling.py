"""V, Q and U over the final links: whole datapoints, which the hand-over then moves."""

from d2dfl.discovery.plain.reference import LEAST
from d2dfl.discovery.protocol.device import Device
from d2dfl.peer.negotiation.consent import Rooms
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

Said = list[tuple[int, say.Content]]


class Settling:
    """The last step of an attempt."""

    def __init__(self, room: Rooms) -> None:
        self.room = room
        self.gives: dict[int, list[int]] = {}  # receiver → datapoints of each label
        self.gets: dict[int, list[int]] = {}
        self._asks: set[int] = set()  # over whose links something is to come, and is not settled
        self._asked: set[int] = set()  # who is to ask for it

    @property
    def over(self) -> bool:
        return not self._asks and not self._asked

    def begin(self, device: Device, now: float) -> Said:
        """V: what each receiver may have."""
        links = [link for link in device.holdings.links if link and sum(link.granted) > LEAST]
        self._asks = {device.holdings.heard[link.slot].device for link in links}
        said: Said = []
        for receiver in sorted(device.giving.requesters):
            if sum(device.giving.granted(receiver)) > LEAST:
                self._asked.add(receiver)
                room = self.room(receiver, now)
                spare = [min(int(most), int(here)) for most, here in zip(room, device.holdings.surplus, strict=True)]
                said.append((receiver, say.Available(tuple(spare))))
        return said

    def receive(
        self, sender: int, content: say.Available | say.Wanted | say.Allocated, device: Device, now: float
    ) -> Said:
        if len(content.amounts) != len(device.holdings.counts):
            raise WireError("as many numbers as there are labels, or not")
        if isinstance(content, say.Available):
            return [(sender, say.Wanted(self._wanted(sender, device)))]
        if isinstance(content, say.Wanted):
            return [(sender, say.Allocated(self._allocated(sender, content, device, now)))]
        if any(content.amounts):
            self.gets[sender] = list(content.amounts)
        self._asks.discard(sender)
        return []

    def _wanted(self, sender: int, device: Device) -> tuple[float, ...]:
        """Q, as it was asked over the link."""
        for link in device.holdings.links:
            if link and device.holdings.heard[link.slot].device == sender:
                return tuple(link.asked)
        return (0.0,) * len(device.holdings.counts)

    def _allocated(self, sender: int, content: say.Wanted, device: Device, now: float) -> tuple[int, ...]:
        """U: what was granted over the link, in whole datapoints, as far as the policy still lets it go."""
        if sender not in self._asked:
            raise WireError("wants what was not offered")
        self._asked.discard(sender)
        room, granted = self.room(sender, now), device.giving.granted(sender)
        whole = [
            min(int(amount + 0.5), most) if want > 0.0 else 0
            for amount, want, most in zip(granted, content.amounts, room, strict=True)
        ]
        self.gives[sender] = whole
        return tuple(whole)
