"""The section [discovery] of peer.toml."""

from dataclasses import dataclass, fields
from typing import Any

from d2dfl.config.presets import preset
from d2dfl.errors import UserError
from d2dfl.peer.negotiation.plan import Plan
from d2dfl.peer.wire.negotiation import MOST_LINKS

CHOICES = {"mode": ("at-once", "token"), "ask": ("everybody", "granted")}
BOUNDS: dict[str, tuple[float, float]] = {
    "links": (1, MOST_LINKS),
    "messages": (10, 1_000_000),
    "seed": (0, 1 << 62),
    "message_s": (0.0001, 10.0),
    "gather_s": (0.5, 3600.0),
}


@dataclass(frozen=True)
class DiscoverySettings:
    """How the peers look for their graph; the values of whoever invites count."""

    mode: str = "at-once"
    links: int = 3  # that a device may have
    messages: int = 100  # of a device and link
    seed: int = 0
    message_s: float = 0.005  # what a message takes: pauses are measured by it
    gather_s: float = 10.0  # how long others are waited for
    ask: str = "everybody"  # or "granted": only members to whom this device grants something

    def plan(self) -> Plan:
        changes = {"discovery.edges": self.links, "marginal.messages": self.messages}
        return Plan(
            preset("best").with_(**changes),
            self.seed,
            self.mode == "at-once",
            self.message_s,
            self.gather_s,
            self.ask == "everybody",
        )


def read_discovery(given: Any, what: str) -> DiscoverySettings:
    """Checked."""
    if not isinstance(given, dict):
        raise UserError(f"{what}: discovery is {given!r:.40}: write [discovery]")
    names = {field.name: field.type for field in fields(DiscoverySettings)}
    for name, value in given.items():
        if name not in names:
            raise UserError(f"{what}: there is no setting {name!r:.60} of a discovery: there are {', '.join(names)}")
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise UserError(
                    f"{what}: {name} is {value!r:.40}: give " + " or ".join(f'"{one}"' for one in CHOICES[name])
                )
            continue
        low, high = BOUNDS[name]
        whole = type(getattr(DiscoverySettings, name)) is int
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
            kind = "whole number" if whole else "number"
            raise UserError(f"{what}: {name} is {value!r:.40}: give a {kind} from {low:,} to {high:,}")
    return DiscoverySettings(**given)
