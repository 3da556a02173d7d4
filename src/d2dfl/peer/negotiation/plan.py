"""What an owner decides about a discovery, and what a discovery asks the peer in which it happens."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Protocol

from d2dfl.config import Config


@dataclass(frozen=True)
class Plan:
    """What an owner decides. The values of whoever invites count; a device set up for other labels stays away."""

    config: Config
    seed: int = 0
    at_once: bool = True  # else a token goes round: one revision at a time
    message_s: float = 0.02  # what a message takes, by which pauses between revisions are measured
    gather_s: float = 10.0  # how long others are waited for
    asks_all: bool = True  # else it asks only members to whom it grants something: what it asks for tells what it holds

    def digest(self, labels: tuple[str, ...]) -> bytes:
        """Of all that must be the same everywhere."""
        config = self.config
        told = [labels, asdict(config.reward), config.marginal.spread, config.marginal.temperature]
        told += [config.marginal.patience, config.marginal.cycle, config.network.threshold, config.discovery.no_link]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


class Surroundings(Protocol):
    """What a negotiation asks the peer."""

    own: bytes
    labels: tuple[str, ...]

    @property
    def consent_number(self) -> int:
        """Changes whenever what may be told has changed."""

    def visible(self, receiver: bytes, now: float) -> dict[str, int]: ...
    def granted(self, receiver: bytes, now: float) -> dict[str, int]:
        """What the policy lets it have in all, whatever of it is here and was given to it already."""

    def held(self) -> tuple[dict[str, int], dict[str, int]]:
        """Datapoints here by label, and those of them that are its own to give."""

    def loss(self, sender: bytes) -> float: ...
    def silent(self, other: bytes, now: float) -> bool: ...
    def secret(self, purpose: bytes) -> bytes: ...
    def next_number(self) -> bytes:
        """Another one every time, in every round and after every start."""
