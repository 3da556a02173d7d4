"""What a device's owner lets others have. Nothing is shared unless it is granted, and `forbid` beats `grant`.

    [[grant]]
    to = "1f5c…"            # the receiver's fingerprint, 64 hexadecimal digits; a name would be whatever it claims
    labels = ["3", "7"]     # or ["*"]
    number = 100            # datapoints of each of these labels that this receiver may ever see
    until = 2027-06-30      # it ends with this day (UTC)

    [[forbid]]
    to = "*"
    labels = ["9"]

`d2dfl peer policy --sign` numbers this file and signs it with the owner's key; peers obey the signed file alone.
"""

import datetime
import hashlib
import tomllib
import unicodedata
from dataclasses import dataclass
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.handover.limits import DAY_S
from d2dfl.peer.identity.keys import PRINT_BYTES, Signer, Verify
from d2dfl.peer.identity.sealed import seal, unseal

KIND = "policy"
ANY = "*"
MOST_RULES = 10_000
MOST = 1 << 40
LONGEST_LABEL = 100


@dataclass(frozen=True)
class Rule:
    """A grant or a forbid."""

    to: bytes | None  # a fingerprint; None: everybody
    labels: frozenset[str] | None  # None: all
    number: int = 0
    until_s: float = 0.0  # seconds since 1970; the first moment at which it no longer counts

    def concerns(self, receiver: bytes, label: str) -> bool:
        return (self.to is None or self.to == receiver) and (self.labels is None or label in self.labels)


@dataclass(frozen=True)
class Policy:
    """Rules with a number: a later one replaces an earlier one, never the other way round."""

    number: int = 0
    grants: tuple[Rule, ...] = ()
    forbids: tuple[Rule, ...] = ()

    def allowance(self, receiver: bytes, label: str, now: float) -> int:
        """Datapoints of a label that a receiver may ever see, as things stand at this moment."""
        if any(rule.concerns(receiver, label) for rule in self.forbids):
            return 0
        open_now = (rule.number for rule in self.grants if now < rule.until_s and rule.concerns(receiver, label))
        return max(open_now, default=0)


NOTHING = Policy()


def read_rules(text: str, what: str) -> dict[str, Any]:
    """The rules of a policy file as plain values, checked."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise UserError(f"{what} is not readable as TOML: {error!s:.120}") from None
    odd = [name for name in content if name not in ("grant", "forbid")]
    if odd:
        raise UserError(f"{what} holds {odd[0]!r:.60}: a policy has [[grant]] and [[forbid]]")
    rules: dict[str, Any] = {}
    for kind in ("grant", "forbid"):
        listed = content.get(kind, [])
        if not isinstance(listed, list) or len(listed) > MOST_RULES:
            raise UserError(
                f"{what} gives {kind} in another form: write [[{kind}]] before each, at most {MOST_RULES:,}"
            )
        rules[kind] = [_plain_rule(item, kind, what) for item in listed]
    return rules


def sign_policy(rules: dict[str, Any], number: int, owner: Signer) -> bytes:
    """A signed policy."""
    return seal(KIND, {"number": number, **rules}, owner)


def open_policy(data: bytes, owner: bytes, verify: Verify) -> Policy:
    """A policy that its owner signed."""
    content, _ = unseal(KIND, data, verify, owner, "the policy")
    number = content.get("number")
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise UserError("the policy has no number")
    try:
        grants = tuple(_rule(item) for item in content["grant"])
        forbids = tuple(_rule(item) for item in content["forbid"])
    except (KeyError, TypeError, ValueError):
        raise UserError("the policy holds a rule that is none") from None
    return Policy(number, grants, forbids)


def check_succession(policy: Policy, data: bytes, newest: int, print_: bytes | None) -> None:
    """Refuse a policy that is older than the newest that was in force, or another one with its number. `print_`: the newest's, where it is known."""
    if policy.number < newest:
        raise UserError(f"the policy is number {policy.number}, and {newest} was in force: an older one is refused")
    if policy.number == newest and print_ is not None and hashlib.sha256(data).digest() != print_:
        raise UserError(f"two policies have the number {policy.number}: sign it again")


def _plain_rule(item: Any, kind: str, what: str) -> dict[str, Any]:
    allowed = ("to", "labels", "number", "until") if kind == "grant" else ("to", "labels")
    if not isinstance(item, dict) or sorted(item) != sorted(allowed):
        raise UserError(f"{what}: each [[{kind}]] has {', '.join(allowed)}, and nothing else")
    to, labels = item["to"], item["labels"]
    if not isinstance(to, str) or (to != ANY and not _is_print(to)):
        any_ = "" if kind == "grant" else ", or *"
        raise UserError(f"{what}: to is {to!r:.80}: give a fingerprint of 64 hexadecimal digits{any_}")
    if kind == "grant" and to == ANY:
        raise UserError(f"{what}: a grant to everybody is none that one can take back: name each receiver")
    texts = isinstance(labels, list) and all(isinstance(one, str) and 0 < len(one) <= LONGEST_LABEL for one in labels)
    if not texts or not labels:
        raise UserError(f'{what}: labels is {labels!r:.80}: give a list of names, or ["*"]')
    labels = [unicodedata.normalize("NFC", one) for one in labels]
    if kind == "forbid":
        return {"to": to.lower(), "labels": labels}
    number, until = item["number"], item["until"]
    if type(number) is not int or not 0 <= number <= MOST:
        raise UserError(f"{what}: number is {number!r:.40}: give how many datapoints of each label, 0 to {MOST:,}")
    if not isinstance(until, datetime.date) or isinstance(until, datetime.datetime):
        raise UserError(f"{what}: until is {str(until)!r:.40}: give a date, as in 2027-06-30")
    return {"to": to.lower(), "labels": labels, "number": number, "until": until.isoformat()}


def _is_print(text: str) -> bool:
    return len(text) == 2 * PRINT_BYTES and all(digit in "0123456789abcdefABCDEF" for digit in text)


def _rule(item: dict[str, Any]) -> Rule:
    to = None if item["to"] == ANY else bytes.fromhex(item["to"])
    if to is not None and len(to) != PRINT_BYTES:
        raise ValueError
    labels = None if ANY in item["labels"] else frozenset(map(str, item["labels"]))
    if "until" not in item:
        return Rule(to, labels)
    day = datetime.date.fromisoformat(item["until"])
    end = datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp() + DAY_S
    number = item["number"]
    if type(number) is not int or not 0 <= number <= MOST:
        raise ValueError
    return Rule(to, labels, number, end)
