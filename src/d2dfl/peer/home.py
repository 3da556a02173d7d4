"""A peer's folder: settings, keys, policy, certificate, store. Everything in it is checked when it is opened."""

import datetime
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.peer.discovery import DiscoveryProtocol, GraphFile, stored_graph
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.certificates import check_issued, validity
from d2dfl.peer.identity.keys import Key, load_key, verify
from d2dfl.peer.identity.roster import ADDRESS_WANTED, NAME, Roster, is_address, make_request, open_roster
from d2dfl.peer.identity.sealed import LARGEST
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.peer import Peer
from d2dfl.peer.policy import NOTHING, Policy, check_succession, open_policy, read_rules, sign_policy
from d2dfl.peer.settings import read_settings, read_settings_text
from d2dfl.peer.store.operations import Fact
from d2dfl.peer.store.store import Store, StoreFullError
from d2dfl.peer.surroundings import PeerSurroundings
from d2dfl.peer.wire.negotiation import MOST_TOLD
from d2dfl.storage import TakenError, locked, new_files, read_bytes, read_json, read_text, write_whole

NEW_FILES = ("device.key", "owner.key", "store.db", "store.db-journal", "policy.toml", "policy.signed", "peer.toml")
ADMISSION = ("roster", "certificate", "authority")
EMPTY_POLICY = """\
# Who may have what of this device. Nothing else is shared. After a change: d2dfl peer policy --sign
#
# [[grant]]
# to = "64 hexadecimal digits"   # a receiver's fingerprint, as `d2dfl peer members` shows it
# labels = ["3", "7"]            # or ["*"]
# number = 100                   # datapoints of each of these labels that it may ever see
# until = 2027-06-30
#
# [[forbid]]                     # beats every grant
# to = "*"
# labels = ["9"]
"""


class Home:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "peer.toml").is_file():
            raise UserError(f"{str(folder)!r} is no folder of a peer: call d2dfl peer init there, or give --home")
        self.settings = read_settings(folder / "peer.toml")

    @property
    def files(self) -> dict[str, Path]:
        """What the transport reads."""
        names = {"key": "device.key", "certificate": "certificate.pem", "authority": "authority.pem"}
        return {kind: self.folder / name for kind, name in names.items()}

    def key(self) -> Key:
        return load_key(self.folder / "device.key")

    def store(self, read_only: bool = False) -> Store:
        path, own = self._store_path(), self.key().fingerprint
        if read_only and path.with_name("store.db-journal").exists():
            with suppress(TakenError), locked(self.folder):  # after a crash: only a writer can roll back
                Store(path, own).close()
        store = Store(path, own, read_only=read_only)
        if store.fact("owner") is None:
            store.close()
            raise UserError(f"the store {path} is damaged: it does not know whose policy to obey; it was left as it is")
        return store

    def _store_path(self) -> Path:
        """Where the store is. It is made once, with the device: another one would know neither what was handed over nor whom to obey."""
        path = self.folder / "store.db"
        if not path.exists() or not path.stat().st_size:
            raise UserError(
                f"the store {path} is gone or empty: bring it back, or let the device join anew from a folder of its own"
            )
        return path

    def roster(self, store: Store) -> tuple[Roster, bytes]:
        document = store.fact("roster")
        if document is None:
            raise UserError(
                f"{self.settings.name} is in no roster yet: let its owner approve the request, then d2dfl peer join"
            )
        return open_roster(document, bytes(store.fact("roster_owner")), verify), bytes(document)

    def policy(self, store: Store) -> Policy:
        """The policy in force; raises where peers would share nothing."""
        data = self.policy_bytes()
        policy = open_policy(data, bytes(store.fact("owner")), verify)
        check_succession(policy, data, int(store.fact("policy") or 0), store.fact("policy_digest"))
        return policy

    def policy_bytes(self) -> bytes:
        return read_bytes(self.folder / "policy.signed", "a signed policy", LARGEST)

    def peer(self, store: Store, now: float, greets_only: bool = False) -> Peer:
        """The peer that lives here, with its policy; who only greets needs none."""
        roster, document = self.roster(store)
        key = self.key()
        if roster.active(key.fingerprint) is None:
            raise UserError(f"{self.settings.name} is not, or no longer, in its roster: ask the roster's owner")
        peer = Peer(
            key, KeyBox(key), store, roster, document, now,
            owner=bytes(store.fact("owner")), limits=self.settings.limits, keep=self.settings.keep,
            labels=self.settings.labels, greets_only=greets_only,
        )  # fmt: skip
        if greets_only:
            return peer
        peer.set_policy(self.policy_bytes(), now)
        labels = json.dumps(self.settings.labels)
        if store.fact("labels") != labels:
            store.apply([Fact("labels", labels)], now)
        return peer

    def graph(self, own: bytes, given: Path | None = None) -> GraphFile | None:
        """The graph that was named, if any."""
        path = given if given is not None else self.folder / self.settings.graph if self.settings.graph else None
        return None if path is None else GraphFile(path, own, self.settings.labels)

    def discovery(self, peer: Peer, now: float, calls: bool = True) -> DiscoveryProtocol:
        """What is left of the last round; else a new one, which the peers find themselves."""
        document, done = peer.store.fact("graph"), peer.store.fact("graph_done")
        if document is not None and calls:
            kept = stored_graph(str(document))
            if kept.round.hex() != done:
                return kept
        if len(self.settings.labels) > MOST_TOLD:
            raise UserError(
                f"there are {len(self.settings.labels):,} labels: devices find a graph themselves with at most {MOST_TOLD:,}; "
                "give one with --graph"
            )
        return Negotiation(PeerSurroundings(peer, now), self.settings.discovery.plan(), now, calls)

    def sign_policy(self) -> int:
        """Number and sign policy.toml; gives the number."""
        path = self.folder / "policy.toml"
        rules = read_rules(read_text(path, "a policy"), str(path))
        named = {label for kind in rules.values() for rule in kind for label in rule["labels"]}
        strange = sorted(named - {*self.settings.labels, "*"})
        if strange:  # a forbid with a typing error would forbid nothing
            raise UserError(f"{path} names the label {strange[0]!r:.60}, which peer.toml does not: nothing was signed")
        owner = load_key(self.folder / "owner.key")
        store = self.store(read_only=True)
        try:
            if owner.public != store.fact("owner"):
                raise UserError("owner.key is not the key that this peer obeys")
            newest = max(int(store.fact("policy") or 0), self._signed_number(store))
        finally:
            store.close()
        write_whole(self.folder / "policy.signed", sign_policy(rules, newest + 1, owner))
        return newest + 1

    def _signed_number(self, store: Store) -> int:
        try:
            return self.policy(store).number
        except UserError:
            return NOTHING.number

    def join(self, admission: Path) -> Roster:
        """Take what the roster's owner has signed for this device: an admission, or later a newer roster alone. Gives the newest."""
        parts = read_admission(admission)
        document = parts["roster"].encode()
        with _written(self._store_path(), self.key().fingerprint) as store:
            roster = open_roster(document, store.fact("roster_owner"), verify, str(admission))
            if roster.active(self.key().fingerprint) is None:
                raise UserError(f"{admission} admits other devices than {self.settings.name}")
            self.check_certificates(parts, roster, str(admission))
            document_here = store.fact("roster")
            here = None if document_here is None else open_roster(bytes(document_here), roster.owner, verify)
            self.write_certificates(parts, roster.owner)
            if here is not None and here.number >= roster.number:
                return here
            store.apply([Fact("roster_owner", roster.owner), Fact("roster", document)], time.time())
        return roster

    def certificates(self, owner: bytes) -> tuple[bytes, bytes]:
        """The device's certificate and the one of the roster's owner, as they lie here; refused if they are not these."""
        path, fence = self.files["certificate"], self.files["authority"]
        pem, issuer = read_bytes(path, "a certificate", LARGEST), read_bytes(fence, "the owner's certificate", LARGEST)
        validity(pem, self.key().public, str(path))
        validity(issuer, owner, str(fence))
        check_issued(pem, issuer, owner, str(path))
        return pem, issuer

    def check_certificates(self, parts: dict[str, str], roster: Roster, what: str) -> None:
        """Refuse an admission with certificates of another device or of somebody else than the roster's owner."""
        if "certificate" in parts:
            pem = parts["certificate"].encode()
            validity(pem, self.key().public, what)
            check_issued(pem, parts["authority"].encode(), roster.owner, what)

    def write_certificates(self, parts: dict[str, str], owner: bytes) -> None:
        """What the transport shows and believes, unless those here last longer; a peer that runs goes on with them within a second."""
        if "certificate" in parts and not self._last_longer(parts["certificate"].encode(), owner):
            for part in ("certificate", "authority"):
                write_whole(self.folder / f"{part}.pem", parts[part].encode())

    def _last_longer(self, other: bytes, owner: bytes) -> bool:
        """Whether the certificate that is here counts now, and for longer than another."""
        public = self.key().public
        try:
            starts, ends = validity(self.certificates(owner)[0], public, "")
        except UserError:
            return False
        return starts <= datetime.datetime.now(datetime.UTC) and ends > validity(other, public, "")[1]


def read_admission(path: Path) -> dict[str, str]:
    """Its roster, and unless it is a roster alone a certificate and its authority; who signed them is not looked at yet."""
    content = read_json(path, "an admission", 4 * LARGEST)
    parts = content if isinstance(content, dict) else {}
    if parts.get("kind") == "roster":
        return {"roster": read_text(path)}
    found = {name: str(parts[name]) for name in ADMISSION if isinstance(parts.get(name), str)}
    if len(found) < len(ADMISSION) or not all(text.isascii() for text in found.values()):
        raise UserError(f"{path} is no admission: give the file that `d2dfl fleet approve` wrote")
    return found


@contextmanager
def _written(path: Path, own: bytes) -> Iterator[Store]:
    """A store that takes something in; where it cannot, that is a sentence."""
    store = Store(path, own)
    try:
        yield store
    except StoreFullError as error:
        raise UserError(f"cannot write {path}: {error or 'the disk is full'}") from None
    finally:
        store.close()


def make_home(
    folder: Path, name: str, data: str, labels: tuple[str, ...], listen: str, graph: str = "", address: str = ""
) -> Path:
    """Keys, settings, a policy that shares nothing, an empty store, and a request to join; the request's path.

    `address` is where others reach the device, if that is not where it listens.
    """
    address = address or listen
    if not NAME.fullmatch(name):
        raise UserError(f"the name {name!r:.60} will not do: give small letters, digits, - . _, at most 40")
    odd = [one for one in (listen, address) if not is_address(one)]
    if odd:
        raise UserError(f"the address {odd[0]!r:.60} will not do: {ADDRESS_WANTED}")
    if address.startswith(("0.0.0.0:", "[::]:")):
        raise UserError(f"nobody can reach {address}: give --address host:port, as others see this device")
    taken = [one for one in ("peer.toml", "device.key", "store.db") if (folder / one).exists()]
    if taken:
        raise UserError(f"{folder / taken[0]} is there already: a peer lives in a folder of its own")
    lines = [f"name = {json.dumps(name)}", f"data = {json.dumps(data)}", f"labels = {json.dumps(list(labels))}"]
    lines += [f"listen = {json.dumps(listen)}", 'keep = "move"   # or "copy"', f"graph = {json.dumps(graph)}", ""]
    lines += ["[limits]", "points_a_day = 100000", "bytes_a_day = 10000000000", "bytes_a_second = 100000000", ""]
    settings = "\n".join(lines)
    read_settings_text(settings, "peer.toml")
    device, owner = Key.new(), Key.new()
    wish = make_request(name, address, device, KeyBox(device).public)
    request = folder / f"{name}.request"
    with new_files(folder, (*NEW_FILES, request.name)):
        device.save(folder / "device.key")
        owner.save(folder / "owner.key")
        with _written(folder / "store.db", device.fingerprint) as store:
            store.apply([Fact("owner", owner.public), Fact("labels", json.dumps(labels))], time.time())
        write_whole(folder / "policy.toml", EMPTY_POLICY.encode())
        write_whole(folder / "policy.signed", sign_policy(read_rules(EMPTY_POLICY, "policy.toml"), 1, owner))
        write_whole(request, wish)
        write_whole(folder / "peer.toml", settings.encode())  # last: a folder with it is whole
    return request
