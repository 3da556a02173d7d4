"""How a device comes into a fleet: its key, the roster, what its owner allows."""

import re
import sys
import time
from pathlib import Path

from d2dfl.cli.output import say
from d2dfl.errors import UserError
from d2dfl.peer import reports, service
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.wire.messages import MOST_LABELS
from d2dfl.terminal import plain


def labels_of(text: str) -> tuple[str, ...]:
    """Names by commas, or how many: a number that is no count, such as -1 or 1e3, is no name."""
    if re.fullmatch(r"[+-]?[0-9]+([.eE][0-9.+-]*)?", text):
        if not text.isdecimal() or len(text) > 9 or not 0 < int(text) <= MOST_LABELS:
            raise UserError(f"there are {text:.20} labels: give 1 to {MOST_LABELS:,}, or their names by commas")
        return tuple(map(str, range(int(text))))
    return tuple(part.strip() for part in text.split(","))


def init_and_print(folder: Path, name: str, data: str, labels: str, listen: str, address: str) -> None:
    request = make_home(folder, name, data, labels_of(labels), listen, address=address)
    home = Home(folder)
    say(f"fingerprint {home.key().fingerprint.hex()}")
    say(f"wrote {request}: give it to the roster's owner, who runs `d2dfl fleet approve {request.name}`")
    if ".py:" not in data and not (folder / data).is_dir():
        say(f"there is no folder {str(folder / data)!r} yet: put .npz files with inputs and targets there before a run")
    say("nothing is shared: policy.toml says who may have what; owner.key signs it, and may be kept elsewhere")


def join_and_print(folder: Path, admission: Path) -> None:
    say(service.join(Home(folder), admission))


def policy_and_print(folder: Path, sign: bool) -> None:
    home = Home(folder)
    if sign:
        say(f"signed: policy number {home.sign_policy()}")
    with reports.reading(home) as store:
        found = home.policy(store)
        name_of = reports.namer(home, store)
        known = reports.known_prints(home, store)
    for rule in found.grants:
        until = time.strftime("%Y-%m-%d", time.gmtime(rule.until_s - 1))
        labels = "all labels" if rule.labels is None else ", ".join(sorted(rule.labels))
        over = " (it is over)" if rule.until_s <= time.time() else ""
        to = rule.to or b""
        who = name_of(to) + ("" if to in known else " (not in the roster here)")
        sys.stdout.write(plain(f"grant {who}: {rule.number} each of {labels}, until {until}{over}") + "\n")
    for rule in found.forbids:
        labels = "all labels" if rule.labels is None else ", ".join(sorted(rule.labels))
        sys.stdout.write(plain(f"forbid {'everybody' if rule.to is None else name_of(rule.to)}: {labels}") + "\n")
    if not found.grants:
        sys.stdout.write("nothing is shared\n")


def members_and_print(folder: Path) -> None:
    home = Home(folder)
    with reports.reading(home) as store:
        roster, _ = home.roster(store)
    for member, cluster in zip(roster.members, roster.clusters[0], strict=True):
        more = ", thrown out" if member.revoked else ", this device" if member.public == home.key().public else ""
        text = f"{member.name}  {member.fingerprint.hex()}  {member.address}  cluster {cluster}{more}"
        sys.stdout.write(plain(text) + "\n")
