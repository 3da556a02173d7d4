"""The roster's owner: a folder with the owner's key and the roster, out of which admissions are handed."""

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.peer.identity.certificates import DAY, YEARS, authority, certify, validity
from d2dfl.peer.identity.keys import Key, load_key, verify
from d2dfl.peer.identity.roster import Member, Roster, open_request, open_roster
from d2dfl.peer.identity.sealed import read_document
from d2dfl.storage import new_files, write_whole


class FleetFolder:
    """fleet.key, roster.json, authority.pem."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def is_there(self) -> bool:
        return (self.folder / "roster.json").exists()

    def create(self) -> Key:
        """A new fleet without devices."""
        owner = Key.new()
        with new_files(self.folder, ("fleet.key", "authority.pem", "roster.json")):
            owner.save(self.folder / "fleet.key")
            write_whole(self.folder / "authority.pem", authority(owner, datetime.datetime.now(datetime.UTC)))
            write_whole(self.folder / "roster.json", Roster(0, owner.public, ()).sealed(owner))
        return owner

    def key(self) -> Key:
        return load_key(self.folder / "fleet.key")

    def roster(self) -> Roster:
        if not self.is_there:
            raise UserError(f"{str(self.folder)!r} holds no fleet: approve a first request, or give --fleet")
        path = self.folder / "roster.json"
        return open_roster(read_document(path, "a roster"), None, verify, str(path))

    def approve(self, request: Member) -> Path:
        """Put a device into the roster; the path of its admission. One that is there gets its admission again."""
        owner, roster = self.key(), self.roster()
        if roster.owner != owner.public:
            raise UserError(f"the roster in {self.folder} is signed by another key than fleet.key")
        if roster.active(request.fingerprint) != request:
            roster = roster.with_member(request)
        document = roster.sealed(owner)
        certificate = certify(request, owner, datetime.datetime.now(datetime.UTC))
        fence = self._authority(owner)
        admission = self.folder / f"{request.name}.admission"
        parts = {"roster": document.decode(), "certificate": certificate.decode(), "authority": fence.decode()}
        write_whole(self.folder / "roster.json", document)
        write_whole(admission, json.dumps(parts, indent=1).encode())
        return admission

    def _authority(self, owner: Key) -> bytes:
        """The owner's certificate, made anew in its second half: no device's counts longer. Both hold one key, so devices with the old one believe it."""
        path, now = self.folder / "authority.pem", datetime.datetime.now(datetime.UTC)
        found = read_document(path, "the owner's certificate")
        _, ends = validity(found, owner.public, str(path))
        if ends - now < YEARS * 365 * DAY / 2:
            found = authority(owner, now)
            write_whole(path, found)
        return found

    def revoke(self, name: str) -> Roster:
        """Throw a device out; the newer roster spreads with the next device that joins it."""
        roster, owner = self.roster(), self.key()
        newer = roster.without(name)
        write_whole(self.folder / "roster.json", newer.sealed(owner))
        return newer

    def sign_clusters(self, cluster: Sequence[int], allowance: float) -> Roster:
        """Put the devices into clusters; the newer roster spreads likewise."""
        roster = self.roster().in_clusters(cluster, allowance)
        write_whole(self.folder / "roster.json", roster.sealed(self.key()))
        return roster


def read_request(path: Path) -> Member:
    """The device that asks."""
    return open_request(read_document(path, "a request to join"), verify, str(path))
