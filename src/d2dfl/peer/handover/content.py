"""What a transfer hashes to, how datapoints are cut into pieces, and whether what came is what was offered."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from d2dfl.peer.store.records import Incoming
from d2dfl.peer.wire.messages import Point, WireError, decode_points, encode_points

ROOM = 150  # bytes of a datapoint beside its content, label and form: more than its encoding needs


def cut(points: Sequence[Point], piece_bytes: int) -> list[list[Point]]:
    """Pieces of at most this size, in order of the datapoints' numbers; a larger datapoint is a piece of its own."""
    pieces: list[list[Point]] = []
    filled = piece_bytes
    for point in sorted(points, key=lambda item: item.number):
        size = size_of(point)
        if filled + size > piece_bytes:
            pieces.append([])
            filled = 0
        pieces[-1].append(point)
        filled += size
    return pieces


def size_of(point: Point) -> int:
    """Bytes that a datapoint takes in a piece, at most."""
    return len(point.content) + len(point.label.encode()) + len(point.form) + ROOM


def digest(salt: bytes, pieces: Iterable[bytes]) -> bytes:
    """What both sides write into their audits: the salt is known to them alone."""
    whole = hashlib.sha256(salt)
    for content in pieces:
        whole.update(hashlib.sha256(content).digest())
    return whole.digest()


def encoded(pieces: Sequence[Sequence[Point]]) -> list[bytes]:
    return [encode_points(list(points)) for points in pieces]


def labels_of(points: Iterable[Point]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(point.label for point in points).items()))


def is_whole(record: Incoming, pieces: Iterable[bytes], form: str | None) -> bool:
    """Whether pieces that were put aside are what the offer said, and look like what is here by now."""
    contents = list(pieces)
    if record.left != 0 or digest(record.salt, contents) != record.digest:
        return False
    try:
        points = [point for content in contents for point in decode_points(content)]
    except WireError:
        return False
    if {point.form for point in points} != {form or points[0].form}:
        return False
    return labels_of(points) == record.labels and len({point.number for point in points}) == len(points)
