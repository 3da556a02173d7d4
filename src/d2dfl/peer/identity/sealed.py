"""Documents with a signature: requests, rosters, policies. JSON, so that people can read what they trust."""

import json
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.identity.keys import PUBLIC_BYTES, SIGNATURE_BYTES, Signer, Verify
from d2dfl.storage import read_bytes

LARGEST = 900_000  # bytes of a document: it must fit into one frame


def seal(kind: str, content: dict[str, Any], signer: Signer) -> bytes:
    """A document of this kind, signed. A signature under one kind is none under another."""
    signature = signer.sign(_signed(kind, content))
    document = {"kind": kind, "content": content, "signer": signer.public.hex(), "signature": signature.hex()}
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"


def unseal(kind: str, data: bytes, verify: Verify, signer: bytes | None, what: str) -> tuple[dict[str, Any], bytes]:
    """Content and signer of a document; refused unless `signer` signed it (None: whoever it says)."""
    if len(data) > LARGEST:
        raise UserError(f"{what} has {len(data):,} bytes: it may have {LARGEST:,}")
    try:
        document = json.loads(data)
        content, found, signature = document["content"], document["signer"], document["signature"]
        public, proof = bytes.fromhex(found), bytes.fromhex(signature)
        said = document["kind"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{what} is not a signed document of d2dfl") from None
    if said != kind or not isinstance(content, dict):
        raise UserError(f"{what} is a {said!r:.40}: a {kind} is needed")
    if len(public) != PUBLIC_BYTES or len(proof) != SIGNATURE_BYTES:
        raise UserError(f"{what} has a signature of the wrong size")
    if signer is not None and public != signer:
        raise UserError(f"{what} is signed by somebody else: it needs the signature of its owner")
    if not verify(public, _signed(kind, content), proof):
        raise UserError(f"{what} was changed after it was signed: get it anew")
    return content, public


def read_document(path: Path, what: str) -> bytes:
    """The bytes of a document."""
    return read_bytes(path, what, LARGEST)


def _signed(kind: str, content: dict[str, Any]) -> bytes:
    """The bytes that are signed: one encoding for one content."""
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise UserError(f"a {kind} holds something that cannot be signed") from None
    return b"d2dfl/" + kind.encode() + b"/1\0" + text.encode()
