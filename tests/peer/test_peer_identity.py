"""Keys, requests, rosters, certificates."""

import datetime
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="no cryptography: pip install 'd2dfl[peer]'")

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from d2dfl.errors import UserError
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.certificates import authority, certify, check_issued, validity
from d2dfl.peer.identity.keys import Key, fingerprint, load_key, verify
from d2dfl.peer.identity.roster import Member, Roster, make_request, open_request, open_roster
from d2dfl.peer.identity.sealed import seal
from d2dfl.peer.owner import FleetFolder, read_request

NOW = datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC)


def member(name: str = "kitchen", key: Key | None = None, address: str = "127.0.0.1:7447") -> Member:
    key = key or Key.new()
    return Member(name, key.public, KeyBox(key).public, address)


def test_a_key_comes_back_and_nobody_else_reads_it(tmp_path: Path) -> None:
    key, path = Key.new(), tmp_path / "device.key"
    key.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = load_key(path)
    assert again.fingerprint == key.fingerprint == fingerprint(key.public)
    assert verify(key.public, b"message", again.sign(b"message"))
    assert not verify(key.public, b"another", again.sign(b"message"))
    assert not verify(Key.new().public, b"message", again.sign(b"message"))
    with pytest.raises(UserError, match="a key is never replaced"):
        Key.new().save(path)
    path.chmod(0o640)
    with pytest.raises(UserError, match="others can read the key"):
        load_key(path)


def test_odd_keys_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    with pytest.raises(UserError, match="there is no file"):
        load_key(path)
    path.touch(0o600)
    path.chmod(0o600)
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match="no key that can be read"):
        load_key(path)
    other = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(other.private_bytes(*pem))
    with pytest.raises(UserError, match="a key of another kind"):
        load_key(path)


def test_a_request_is_signed_by_the_key_that_it_names() -> None:
    key = Key.new()
    data = make_request("kitchen", "127.0.0.1:7447", key, KeyBox(key).public)
    found = open_request(data, verify, "it")
    assert (found.name, found.fingerprint) == ("kitchen", key.fingerprint)
    stolen = data.replace(key.public.hex().encode(), Key.new().public.hex().encode())
    with pytest.raises(UserError, match="changed after it was signed"):
        open_request(stolen, verify, "it")
    with pytest.raises(UserError, match="is a 'request': a roster is needed"):
        open_roster(data, None, verify, "it")
    for name, address in (
        ("Küche", "127.0.0.1:7447"),
        ("a/b", "127.0.0.1:1"),
        ("kitchen", "nowhere"),
        ("kitchen", "h:99999"),
    ):
        with pytest.raises(UserError, match="has the (name|address)"):
            make_request(name, address, key, KeyBox(key).public)


def test_a_roster_grows_without_changing_numbers_of_devices() -> None:
    owner = Key.new()
    first, second = member("one"), member("two", address="[::1]:7447")
    roster = Roster(0, owner.public, ()).with_member(first).with_member(second)
    again = open_roster(roster.sealed(owner), owner.public, verify)
    assert again == roster
    without = again.without("one")
    assert without.number == 3
    assert [item.name for item in without.members] == ["one", "two"]
    assert without.active(first.fingerprint) is None
    assert without.active(second.fingerprint) == second
    assert [item.name for item in without.others(b"")] == ["two"]
    with pytest.raises(UserError, match="has a device 'one' already"):
        without.with_member(member("one"))
    with pytest.raises(UserError, match="one was thrown out, and its key stays out"):
        without.with_member(Member("three", first.public, first.box, "127.0.0.1:1"))
    with pytest.raises(UserError, match="has this key already, as 'two'"):
        without.with_member(Member("three", second.public, second.box, "127.0.0.1:1"))
    with pytest.raises(UserError, match="no device 'four'"):
        without.without("four")


@pytest.mark.parametrize(
    "part",
    [
        {"cluster": [0, 1]},
        {"cluster": [-1]},
        {"cluster": [2000]},
        {"cluster": ["0"]},
        {"cluster": 3},
        {"allowance": -1.0},
    ],
)
def test_clusters_that_are_none_are_refused(part: dict[str, object]) -> None:
    owner = Key.new()
    whole = Roster(1, owner.public, (member(),)).in_clusters([0], 2.5)
    document = whole.sealed(owner)
    assert open_roster(document, owner.public, verify) == whole
    content = json.loads(document)["content"] | part
    with pytest.raises(UserError):
        open_roster(seal("roster", content, owner), owner.public, verify)


def test_foreign_and_changed_rosters_are_refused() -> None:
    owner, roster = Key.new(), Roster(1, b"", (member(),))
    with pytest.raises(UserError, match="signed by somebody else"):
        open_roster(roster.sealed(Key.new()), owner.public, verify)
    data = roster.sealed(owner)
    with pytest.raises(UserError, match="changed after it was signed"):
        open_roster(data.replace(b"kitchen", b"kitchem"), owner.public, verify)
    twice = Roster(1, b"", (member("a"), member("a")))
    with pytest.raises(UserError, match="names a device twice"):
        open_roster(twice.sealed(owner), owner.public, verify)
    with pytest.raises(UserError, match="may have"):
        open_roster(b" " * 1_000_000, owner.public, verify)


def test_certificates_are_of_the_device_and_its_address() -> None:
    owner, key = Key.new(), Key.new()
    pem = certify(member(key=key), owner, NOW)
    found = x509.load_pem_x509_certificate(pem)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority(owner, NOW)))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    start, end = validity(pem, key.public, "it")
    assert start < NOW < end
    with pytest.raises(UserError, match="the certificate of another key"):
        validity(pem, Key.new().public, "it")
    with pytest.raises(UserError, match="no certificate in PEM"):
        validity(b"x", key.public, "it")


def test_who_is_approved_again_gets_a_certificate_that_lasts(tmp_path: Path) -> None:
    """The owner's certificate ends after years, too: none of a device counts longer."""
    fleet, old = FleetFolder(tmp_path / "fleet"), datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1800)
    owner = fleet.create()
    (tmp_path / "fleet" / "authority.pem").write_bytes(authority(owner, old))
    asking = member()
    first = json.loads(fleet.approve(asking).read_text())
    again = json.loads(fleet.approve(asking).read_text())
    assert first["authority"] == again["authority"]  # made anew once
    for part, public in (("authority", owner.public), ("certificate", asking.public)):
        _, ends = validity(again[part].encode(), public, part)
        assert ends > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1800)
    check_issued(again["certificate"].encode(), authority(owner, old), owner.public, "one with the old certificate")


def test_a_fleet_folder_admits_and_throws_out(tmp_path: Path) -> None:
    fleet = FleetFolder(tmp_path / "fleet")
    with pytest.raises(UserError, match="holds no fleet"):
        fleet.roster()
    fleet.create()
    key = Key.new()
    request = tmp_path / "k.request"
    request.write_bytes(make_request("k", "127.0.0.1:7447", key, KeyBox(key).public))
    admission = fleet.approve(read_request(request))
    assert admission.name == "k.admission"
    assert fleet.roster().number == 1
    fleet.approve(read_request(request))  # again: the same roster
    assert fleet.roster().number == 1
    assert fleet.revoke("k").active(key.fingerprint) is None
    with pytest.raises(UserError, match="make a new key"):
        fleet.approve(read_request(request))  # a key that was thrown out does not come back
    with pytest.raises(UserError, match="k is thrown out already"):
        fleet.revoke("k")
    assert fleet.roster().number == 2
    os.remove(tmp_path / "fleet" / "fleet.key")
    with pytest.raises(UserError, match="there is no file"):
        fleet.revoke("k")
