"""The two masked sums before devices begin: the population's counts, and the mean of what a best link is expected to bring, in which temperatures are measured.

Devices of discovery and their sides of the masked sums (partition/masked, with keys from partition/masked/keys.py on real devices) stand
side by side: only a device's own numbers go in, and only the total comes out.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from d2dfl.discovery.methods.agreed import LARGEST_GAIN
from d2dfl.discovery.protocol.device import Device
from d2dfl.partition.masked.device import MaskedDevice
from d2dfl.partition.masked.driver import Transcript, run_sum
from d2dfl.partition.masked.messages import Kind
from d2dfl.partition.masked.words import FixedPoint

MOST_DATAPOINTS = 2.0**32  # of one label at one device
COUNTS, GAINS = 0, 1  # numbers of the sums


def tell_population(
    devices: Sequence[Device], sides: Sequence[MaskedDevice], silent: Mapping[int, Kind] | None = None
) -> Transcript:
    """Everybody learns the share of each label among all devices that are counted in. `silent`: who vanishes at which step."""
    code = FixedPoint(len(devices), MOST_DATAPOINTS, sides[0].plan.bits)
    words = [code.words(device.holdings.counts) for device in devices]
    told = run_sum(sides, COUNTS, words, silent)
    for device, outcome in zip(devices, told.outcomes, strict=True):
        if outcome is not None and outcome.words is not None:
            counts = code.numbers(outcome.words)
            device.holdings.population = (counts / max(float(counts.sum()), 1.0)).tolist()
    return told


def tell_unit(
    devices: Sequence[Device], sides: Sequence[MaskedDevice], silent: Mapping[int, Kind] | None = None
) -> tuple[float | None, Transcript]:
    """The mean over devices of what each expects of its best link, once they are introduced; None where the sum failed."""
    code = FixedPoint(len(devices), LARGEST_GAIN, sides[0].plan.bits)
    words = [code.words(np.array([min(device.best_alone(), LARGEST_GAIN)])) for device in devices]
    told = run_sum(sides, GAINS, words, silent)
    outcome = next((item for item in told.outcomes if item is not None and item.words is not None), None)
    if outcome is None or outcome.words is None:
        return None, told
    return float(code.numbers(outcome.words)[0]) / len(outcome.present), told
