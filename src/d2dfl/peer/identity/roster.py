"""The roster: who belongs to a fleet. Signed by its owner and numbered.

Adding a device touches no other: the new one brings the newer roster along, and whoever hears of a newer one that the
same owner signed takes it. A device that was thrown out keeps its place, marked, so that numbers of devices never change.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.identity.keys import PUBLIC_BYTES, Signer, Verify, fingerprint
from d2dfl.peer.identity.sealed import seal, unseal

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_ADDRESS = re.compile(r"([A-Za-z0-9.-]{1,200}|\[[0-9a-fA-F:]{2,40}\]):([0-9]{1,5})")
ADDRESS_WANTED = "give host:port with a port from 1 to 65535"
MOST_MEMBERS = 2000
MOST_ALLOWED = 1e9  # datapoints a device
KIND, REQUEST = "roster", "request"


@dataclass(frozen=True)
class Member:
    """A device of the fleet."""

    name: str
    public: bytes
    box: bytes  # public key for what only it may read
    address: str  # host:port where it listens
    revoked: bool = False

    @cached_property
    def fingerprint(self) -> bytes:
        return fingerprint(self.public)


@dataclass(frozen=True)
class Roster:
    """Members in the order in which they joined: their places are the numbers of devices in a graph."""

    number: int
    owner: bytes  # public key
    members: tuple[Member, ...]
    cluster: tuple[int, ...] = ()  # reliable cluster of each of the first members; () while all are one
    allowance: float = 0.0  # datapoints that a cluster may take from outside, for each of its devices

    @cached_property
    def by_fingerprint(self) -> dict[bytes, Member]:
        return {member.fingerprint: member for member in self.members}

    def active(self, who: bytes) -> Member | None:
        """The member with this fingerprint, unless it was thrown out."""
        member = self.by_fingerprint.get(who)
        return None if member is None or member.revoked else member

    @cached_property
    def clusters(self) -> tuple[list[int], list[float]]:
        """The reliable cluster of each member, and the budget of each cluster. Who joined since they were made is one by itself."""
        if not self.cluster:
            return [0] * len(self.members), [0.0]
        alone = len(self.members) - len(self.cluster)
        found = [*self.cluster, *range(max(self.cluster) + 1, max(self.cluster) + 1 + alone)]
        size = Counter(place for place, member in zip(found, self.members, strict=True) if not member.revoked)
        return found, [self.allowance * size[place] for place in range(max(found) + 1)]

    def in_clusters(self, cluster: Sequence[int], allowance: float) -> "Roster":
        """A newer roster with these clusters."""
        return replace(self, number=self.number + 1, cluster=tuple(cluster), allowance=allowance)

    def others(self, own: bytes) -> Iterator[Member]:
        """All who may be spoken to."""
        return (member for member in self.members if not member.revoked and member.fingerprint != own)

    def name_of(self, who: bytes) -> str:
        """What people call a device: its name, or the start of its fingerprint."""
        member = self.by_fingerprint.get(who)
        return member.name if member else who.hex()[:16]

    def named(self, name: str) -> Member:
        """The member of this name, or with a fingerprint that starts so."""
        found = [item for item in self.members if item.name == name]
        found = found or [item for item in self.members if len(name) >= 8 and item.fingerprint.hex().startswith(name)]
        if len(found) != 1:
            raise UserError(f"the roster has no device {name!r:.60}: it has {', '.join(m.name for m in self.members)}")
        return found[0]

    def with_member(self, member: Member) -> "Roster":
        """A newer roster with one more device."""
        there = self.by_fingerprint.get(member.fingerprint)
        if there is not None and there.revoked:
            raise UserError(f"{there.name} was thrown out, and its key stays out: make a new key under another name")
        if any(item.name == member.name for item in self.members):
            raise UserError(f"the roster has a device {member.name!r} already: give the new one another name")
        if member.fingerprint in self.by_fingerprint:
            raise UserError(f"the roster has this key already, as {self.name_of(member.fingerprint)!r}")
        if len(self.members) >= MOST_MEMBERS:
            raise UserError(f"the roster is full: it may have {MOST_MEMBERS} devices")
        return replace(self, number=self.number + 1, members=(*self.members, member))

    def without(self, name: str) -> "Roster":
        """A newer roster in which a device is thrown out."""
        gone = self.named(name)
        if gone.revoked:
            raise UserError(f"{gone.name} is thrown out already: there is nothing more to do")
        members = tuple(replace(item, revoked=True) if item is gone else item for item in self.members)
        return replace(self, number=self.number + 1, members=members)

    def sealed(self, signer: Signer) -> bytes:
        members = [
            {
                "name": item.name,
                "public": item.public.hex(),
                "box": item.box.hex(),
                "address": item.address,
                "revoked": item.revoked,
            }
            for item in self.members
        ]
        content: dict[str, Any] = {"number": self.number, "members": members}
        if self.cluster:
            content |= {"cluster": list(self.cluster), "allowance": self.allowance}
        return seal(KIND, content, signer)


def open_roster(data: bytes, owner: bytes | None, verify: Verify, what: str = "the roster") -> Roster:
    """A roster that its owner signed."""
    content, public = unseal(KIND, data, verify, owner, what)
    try:
        members = tuple(_member(item, what) for item in _listed(content["members"]))
        cluster = tuple(_place(place) for place in _listed(content.get("cluster", [])))
        roster = Roster(_whole(content["number"]), public, members, cluster, _amount(content.get("allowance", 0.0)))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{what} lacks a part of it, or holds one that is none") from None
    if len(cluster) > len(members):
        raise UserError(f"{what} puts more devices into clusters than it has")
    if len(roster.by_fingerprint) < len(members) or len({item.name for item in members}) < len(members):
        raise UserError(f"{what} names a device twice")
    return roster


def make_request(name: str, address: str, signer: Signer, box: bytes) -> bytes:
    """What a new device asks with: signed with its own key, so that nobody asks with the key of another."""
    member = _checked(Member(name, signer.public, box, address), "the request")
    return seal(REQUEST, {"name": member.name, "address": member.address, "box": box.hex()}, signer)


def open_request(data: bytes, verify: Verify, what: str) -> Member:
    """The device that asks."""
    content, public = unseal(REQUEST, data, verify, None, what)
    try:
        box = bytes.fromhex(content["box"])
        return _checked(Member(str(content["name"]), public, box, str(content["address"])), what)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{what} lacks a part of it") from None


def is_address(text: str) -> bool:
    """Whether it is host:port, and the port is one that can be listened on."""
    place = _ADDRESS.fullmatch(text)
    return place is not None and 1 <= int(place[2]) <= 65535


def _checked(member: Member, what: str) -> Member:
    if not NAME.fullmatch(member.name):
        raise UserError(f"{what} has the name {member.name!r:.60}: give small letters, digits, - . _, at most 40")
    if not is_address(member.address):
        raise UserError(f"{what} has the address {member.address!r:.60}: {ADDRESS_WANTED}")
    if len(member.box) != PUBLIC_BYTES:
        raise UserError(f"{what} has a key of the wrong size")
    return member


def _member(item: Any, what: str) -> Member:
    public = bytes.fromhex(item["public"])
    if len(public) != PUBLIC_BYTES or not isinstance(item["revoked"], bool):
        raise ValueError
    box = bytes.fromhex(item["box"])
    return _checked(Member(str(item["name"]), public, box, str(item["address"]), item["revoked"]), what)


def _listed(items: Any) -> list[Any]:
    if not isinstance(items, list) or len(items) > MOST_MEMBERS:
        raise ValueError
    return items


def _place(place: Any) -> int:
    if type(place) is not int or not 0 <= place < MOST_MEMBERS:
        raise ValueError
    return place


def _amount(amount: Any) -> float:
    if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0.0 <= amount <= MOST_ALLOWED:
        raise ValueError
    return float(amount)


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise ValueError
    return number
