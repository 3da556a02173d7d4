"""What a discovery will need: memory before it begins, and time before it is spent."""

from dataclasses import replace

from d2dfl.config import Config
from d2dfl.config.needs import FOREVER, PAIRS, NetworkShape, played_bytes
from d2dfl.discovery.methods import METHODS, Method
from d2dfl.discovery.methods.costs import Game, layout
from d2dfl.memory import check_memory

OVERHEAD_S = 0.01


def check_discovery(method: Method, config: Config, shape: NetworkShape) -> None:
    """Refuse a discovery that does not fit beside its network."""
    needed = discovery_bytes(method, config, shape)
    parts = f", {shape.partitions:,} partitions" if acted(method, config, shape) != shape or shape.components else ""
    what = f"{method.name} in a network of {shape.devices:,} devices with {shape.slots:,} candidates each{parts} needs"
    advice = method.costs.advice if method.costs else ""
    check_memory(needed, what, f"take a smaller network, or another method{advice}")


def discovery_bytes(method: Method, config: Config, shape: NetworkShape) -> float:
    """Peak of a discovery in a network that is there already."""
    whole, shape = shape, acted(method, config, shape)
    links, devices = float(shape.devices) * shape.slots, float(shape.devices)
    needed = links * (10.0 + 2.2 * shape.partitions)
    needed += played_bytes(shape.devices, shape.partitions, config.discovery.edges)
    if shape != whole:
        needed += links * (20.0 + 2.0 * shape.partitions)  # by_partition
    if method.costs is not None:
        needed += method.costs.more_bytes(config, whole, shape)
    if shape.components:
        clusters = float(shape.partitions)
        needed += 8.0 * links * clusters * (clusters * shape.moments + 2.0)
        if config.reward.agreement != "ratio":  # all pairs, for the whole discovery
            needed += 24.0 * (devices * clusters) ** 2
        elif shape.devices <= PAIRS:
            needed += 8.0 * (devices * clusters) ** 2
    return needed


def acted(method: Method, config: Config, shape: NetworkShape) -> NetworkShape:
    """R17: a learner that chooses partitions has a slot for each partition of each candidate."""
    split = config.discovery.action == "partition" and method.learns
    return replace(shape, slots=shape.slots * shape.partitions) if split else shape


def discovery_seconds(name: str, config: Config, shape: NetworkShape) -> float:
    """About how long a discovery takes on one core, compilation apart; 0 for a method whose costs nobody knows."""
    method = METHODS.get(name)
    if method is None or method.costs is None:
        return 0.0
    work = discovery_work(method, config, shape)
    seconds = sum(cost * amount for cost, amount in zip(method.costs.seconds, work, strict=True))
    return min(seconds + OVERHEAD_S, FOREVER)


def discovery_work(method: Method, config: Config, shape: NetworkShape) -> tuple[float, ...]:
    """Amounts of each kind of work that a method does, in the order of its costs."""
    shape = acted(method, config, shape)
    edges = config.discovery.edges
    at_once = edges if config.discovery.edge_mode == "joint" and method.joint else 1
    game = Game.of(shape, edges, at_once)
    return layout(game, shape), *(method.costs.work(config, game) if method.costs else ())
