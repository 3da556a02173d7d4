"""Ed25519 keys. A peer's identity is the hash of its public key; a name is only what people call it."""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from d2dfl.errors import UserError
from d2dfl.storage import read_bytes, sync_folder

PUBLIC_BYTES = PRINT_BYTES = 32
SIGNATURE_BYTES = 64
LARGEST_KEY = 4096  # bytes of a key's file

Verify = Callable[[bytes, bytes, bytes], bool]  # public key, message, signature


class Signer(Protocol):
    """Whoever can sign. The simulator has a quicker one that only it believes."""

    @property
    def public(self) -> bytes: ...
    def sign(self, message: bytes) -> bytes: ...


def fingerprint(public: bytes) -> bytes:
    """The identity of whoever holds the key."""
    return hashlib.sha256(public).digest()


@dataclass(frozen=True)
class Key:
    """A private key."""

    private: Ed25519PrivateKey

    @classmethod
    def new(cls) -> "Key":
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes_raw()

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(self.public)

    def sign(self, message: bytes) -> bytes:
        return self.private.sign(message)

    def save(self, path: Path) -> None:
        """Write the key where no file is yet; nobody but its owner may read it."""
        content = self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileExistsError:
            raise UserError(f"{path} is there already: a key is never replaced") from None
        except OSError as error:
            raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
        try:
            with os.fdopen(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            path.unlink(missing_ok=True)
            raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
        sync_folder(path.parent)


def load_key(path: Path) -> Key:
    """A key from its file, which must belong to us alone."""
    content = read_bytes(path, "a private key", LARGEST_KEY)
    if hasattr(os, "geteuid"):  # POSIX
        found = path.stat()
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UserError(f"others can read the key {path}: call chmod 600 on it, and think about making a new one")
        if found.st_uid not in (os.geteuid(), 0):
            raise UserError(f"the key {path} belongs to somebody else: run as its owner")
    try:
        private = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UserError(f"{path} holds no key that can be read: give an Ed25519 key in PEM") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise UserError(f"{path} holds a key of another kind: give an Ed25519 key")
    return Key(private)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the holder of a key signed a message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
