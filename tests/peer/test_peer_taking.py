"""What a receiver takes: no piece too large for a frame, no form that makes no dataset, and one sender's day is not another's."""

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import Small, rules

from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.wire import messages as say


def test_long_labels_do_not_make_a_piece_larger_than_a_frame() -> None:
    small = Small(points=0, limits=Limits(piece_bytes=1 << 20, timeout_s=1.0))
    label = "\u6f22" * 100
    rows = [(small.prints(0), number, label, "|u1:888", bytes(888)) for number in range(1000)]
    small.stores[0].db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)", rows)
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {label: 1000}, small.now)
    small.wait(20.0, step=1.0)
    assert len(small.held(1)) == 1000
    assert all(len(body.content) <= 1 << 20 for body in small.sent(say.Piece) if isinstance(body, say.Piece))
