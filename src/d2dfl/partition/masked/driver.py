"""Masked sums in one process: messages are delivered one after the other, those of vanished devices are not."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from d2dfl.partition.masked.device import FROM_CHILDREN, MaskedDevice, SumOutcome
from d2dfl.partition.masked.messages import Kind, Message
from d2dfl.partition.masked.pads import Pads
from d2dfl.partition.masked.plan import SumPlan
from d2dfl.partition.masked.words import Words


@dataclass(frozen=True, eq=False)
class Transcript:
    """All that was sent in a sum, and how it ended for each device."""

    messages: tuple[Message, ...]
    outcomes: tuple[SumOutcome | None, ...]  # [device]
    bits: int

    @property
    def total(self) -> Words | None:
        """What the devices know at the end; None where the sum failed."""
        return next((item.words for item in self.outcomes if item and item.words is not None), None)


def masked_devices(plan: SumPlan, pads: Pads) -> list[MaskedDevice]:
    """All devices of a plan, in one process."""
    return [MaskedDevice(device, plan, pads) for device in range(plan.devices)]


def run_sum(
    devices: Sequence[MaskedDevice],
    number: int,
    words: Sequence[Words],
    silent: Mapping[int, Kind] | None = None,
    late: Mapping[int, Kind] | None = None,
) -> Transcript:
    """One sum of words[device].

    A device in `silent` sends nothing from this step on; one in `late` likewise, but its message of this step is sent, and
    arrives when everything is over.
    """
    silent, late = silent or {}, late or {}
    stops = {**silent, **late}
    plan, sent, held = devices[0].plan, list[Message](), list[Message]()
    line = deque(message for device in devices for message in device.begin(number, words[device.device]))

    def deliver() -> None:
        while line:
            message = line.popleft()
            stop = stops.get(message.sender)
            if stop is None or message.kind.value < stop.value:
                sent.append(message)
                line.extend(devices[message.receiver].receive(message))
            elif late.get(message.sender) is message.kind:
                held.append(message)

    deliver()
    upwards = sorted(range(plan.devices), key=lambda device: -plan.depth[device])
    waits = [*FROM_CHILDREN, Kind.PRESENT, Kind.LOST, Kind.TOTAL]  # timers of children's answers are the shorter ones
    for _ in range(len(waits) * plan.devices):
        waiting = [item for item in upwards if devices[item].awaits(number) is not None]
        if not waiting:
            break
        first = min(waiting, key=lambda item: devices[item].awaits(number) not in FROM_CHILDREN)
        line.extend(devices[first].stop_waiting(number))
        deliver()
    for message in held:
        sent.append(message)
        line.extend(devices[message.receiver].receive(message))
        deliver()
    outcomes = tuple(device.outcome(number) for device in devices)
    return Transcript(tuple(sent), outcomes, sum(message.bits(plan.bits, plan.id_bits) for message in sent))
