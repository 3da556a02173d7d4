"""What a computation will need, from the shapes alone, before anything large is made. discovery/needs.py: of a discovery.

Constants are fitted to peaks of memory and to processor time on one core of an AMD EPYC (benchmarks/needs.py takes both and
prints them). Memory is predicted a little too high rather than too low; time within a factor of about 3, without
the first compilation.
"""

from dataclasses import dataclass
from typing import Self

from d2dfl.config.config import Config
from d2dfl.config.sections.learning import RadioSignalsConfig
from d2dfl.memory import check_memory

FULL_MESH = 1000  # devices up to which everybody hears everybody
SLOTS = 64  # candidates beyond
LINKAGE = 2000  # devices up to which clusters come from a table of all pairs
PAIRS = 2000  # devices up to which divergences of data clusters come from a table of all pairs, where a sum is enough
POINTS = 64  # at least so many stand for the datapoints of a remote data cluster; a power of 2
FOREVER = 1e12  # seconds


@dataclass(frozen=True)
class NetworkShape:
    """What a network's arrays look like."""

    devices: int
    slots: int
    partitions: int
    components: int = 0  # of data clusters; 0: partitions are labels

    @classmethod
    def planned(cls, config: Config) -> Self:
        """The shape of the network that a configuration would generate."""
        return cls(config.network.devices, slots_of(config.network.devices, config), config.network.partitions)

    @property
    def moments(self) -> int:
        """Length of a vector of moments of a data cluster."""
        return 1 + self.components + self.components * (self.components + 1) // 2


def slots_of(devices: int, config: Config) -> int:
    """Candidates that a receiver of a generated network hears."""
    wanted = config.channel.slots or (devices if devices <= FULL_MESH else SLOTS)
    return max(1, min(wanted, devices - 1))


def network_bytes(devices: int, slots: int, partitions: int, edges: int = 5) -> float:
    """Peak of generating a network and of our learner's discovery in it, beyond what the process holds already."""
    links = float(devices) * slots
    table = 45.0 * devices**2 if devices <= LINKAGE else 0.0
    drawn = links * (65.0 + 3.2 * partitions) + table
    return max(drawn, links * (20.0 + 3.2 * partitions) + played_bytes(devices, partitions, edges))


def played_bytes(devices: int, partitions: int, edges: int) -> float:
    """Bytes of a game, its graph and its evaluation, beside the network."""
    return devices * (500.0 + partitions * (30.0 + 30.0 * edges))


def check_network(devices: int, slots: int, partitions: int, edges: int) -> None:
    """Refuse a network that is too large to be generated and worked with."""
    fewer = f"fewer candidates with --set channel.slots={slots // 4}" if slots >= 32 else "fewer partitions"
    check_memory(
        network_bytes(devices, slots, partitions, edges),
        f"{devices:,} devices with {slots:,} candidates each need",
        f"take fewer devices, or {fewer}",
    )


def dense_bytes(devices: int, partitions: int) -> float:
    """Peak of making a network of one's own from tables of all pairs, beside these tables."""
    return float(devices) ** 2 * (48.0 + 4.0 * partitions)


def radio_bytes(settings: RadioSignalsConfig) -> float:
    """Peak of generated radio signals: 11 modulations at every ratio, 2 x 128 numbers each, and their copies when split."""
    ratios = max(0, settings.highest_snr_db // 2 + -(settings.lowest_snr_db // 2) + 1)
    return 11.0 * ratios * settings.per_cell * (2 * 128 * 4 * 2.75 + 64) + 64e6
