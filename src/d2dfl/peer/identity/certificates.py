"""X.509 certificates for the transport. They are the outer fence only: whom to believe is decided by signed messages."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from d2dfl.errors import UserError
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member

YEARS = 5
DAY = datetime.timedelta(days=1)


def authority(owner: Key, now: datetime.datetime) -> bytes:
    """The certificate of the roster's owner, in PEM."""
    name = _name("d2dfl fleet " + owner.fingerprint.hex()[:16])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    built = (
        _builder(name, name, owner.private.public_key(), now - DAY, now + YEARS * 365 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return built.sign(owner.private, None).public_bytes(serialization.Encoding.PEM)


def certify(member: Member, owner: Key, now: datetime.datetime, days: float = YEARS * 365) -> bytes:
    """The certificate of a member, in PEM: its fingerprint as name, and the host on which it listens."""
    issuer = _name("d2dfl fleet " + owner.fingerprint.hex()[:16])
    public = Ed25519PublicKey.from_public_bytes(member.public)
    host = member.address.rpartition(":")[0].strip("[]")
    try:
        place: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        place = x509.DNSName(host)
    start = min(now, now + days * DAY) - DAY
    built = (
        _builder(_name(member.fingerprint.hex()), issuer, public, start, now + days * DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([place]), critical=False)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
    )
    return built.sign(owner.private, None).public_bytes(serialization.Encoding.PEM)


def validity(pem: bytes, public: bytes, what: str) -> tuple[datetime.datetime, datetime.datetime]:
    """From when until when a certificate counts; refused if it is of another key."""
    try:
        found = x509.load_pem_x509_certificate(pem)
        key = found.public_key()
    except ValueError:
        raise UserError(f"{what} is no certificate in PEM: get it anew from the roster's owner") from None
    if not isinstance(key, Ed25519PublicKey) or key.public_bytes_raw() != public:
        raise UserError(f"{what} is the certificate of another key: get it anew from the roster's owner")
    return found.not_valid_before_utc, found.not_valid_after_utc


def check_issued(certificate: bytes, fence: bytes, owner: bytes, what: str) -> None:
    """Refuse a certificate that was not issued with the key of the roster's owner, or an authority that is not that key's."""
    try:
        own, found = x509.load_pem_x509_certificate(certificate), x509.load_pem_x509_certificate(fence)
        found.verify_directly_issued_by(found)
        own.verify_directly_issued_by(found)
        key = found.public_key()
    except (ValueError, TypeError, InvalidSignature):
        raise UserError(f"{what} holds a certificate that its authority did not issue: get it anew") from None
    if not isinstance(key, Ed25519PublicKey) or key.public_bytes_raw() != owner:
        raise UserError(f"{what} holds certificates of somebody else than the roster's owner: get it anew")


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: Ed25519PublicKey,
    start: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])
