"""What all devices of our learner agree on, in plain Python: the compiled learner and peers on real devices go by the same numbers."""

import math

from d2dfl.config.sections.graph import MarginalConfig
from d2dfl.partition.masked.bill import SumCost, masked_sum_cost
from d2dfl.partition.masked.words import WORD_BITS, FixedPoint

NEGOTIATION = 3  # messages V, Q and U over each final link, whatever the method
COLD = 0.7  # share of an account from which on only improvements are kept
RESTLESS = 0.6  # of the first temperature: proposals of a device with one link are at least so noisy
LARGEST_GAIN = 1e6  # that a device adds to the mean gain
GAINS = (
    3  # numbers of the second sum: best own gain, links over which something could move, whether it would claim a pair
)
END = 2  # messages a device: a cycle is over, stay or go back, and its answer


def gain_words(devices: int) -> FixedPoint:
    """How devices write the numbers of the second sum."""
    return FixedPoint(devices, LARGEST_GAIN, WORD_BITS)


def sums_cost(devices: int, partitions: int, sketches: list[int]) -> SumCost:
    """The cost of the masked sums: the population's counts, gains, and sketches where there are some."""
    return masked_sum_cost(devices, [partitions, GAINS, *sketches], word_bits=WORD_BITS)


def cycles_of(config: MarginalConfig) -> int:
    """Coolings that the budget is for."""
    return max(1, config.messages // config.cycle)


def sure_costs(edges: int, lists: float, sums: SumCost, devices: int, cycles: int) -> int:
    """Messages that a device puts by, besides its introductions."""
    return NEGOTIATION * edges + END * cycles + int(lists) + math.ceil(sums.messages / devices)


def first_temperature(config: MarginalConfig, unit: float, choices: float) -> float:
    """unit: the mean over the devices of what each expects of its best link; choices: links that each may weigh, in the mean."""
    # The largest of n Gumbel draws grows with ln(n): dividing by it keeps the noise alike for few and many choices.
    return config.temperature * unit / max(math.log(choices), 1.0)


def restless(edges: int) -> float:
    """How noisy proposals stay, in first temperatures. Each link of several is worth less than a single one."""
    return RESTLESS / math.sqrt(edges)
