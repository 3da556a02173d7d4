"""The links that a device has while it negotiates, written down a line a change: for whoever may read its folder, and nobody else."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.peer.negotiation.attempt import Step
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.peer import Peer


@dataclass(frozen=True)
class DeviceMove:
    """What one device has at one moment."""

    time_s: float
    transmitters: tuple[str, ...]  # fingerprints of whom it would receive from
    messages: int  # that it has sent in this attempt
    share: float  # of its account that is spent
    temperature: float


class MoveFile:
    """Writes a line whenever the links of a peer are others than before."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise UserError(f"{path} is there already: name another file with --moves") from None
        except OSError as error:
            raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
        self._last: tuple[bytes, tuple[str, ...]] | None = None

    def __call__(self, peer: Peer, now: float) -> None:
        talk = peer.discovery
        attempt = talk.attempt if isinstance(talk, Negotiation) else None
        if attempt is None or attempt.step < Step.REVISING or attempt.seat.size == 1:
            return
        assert isinstance(talk, Negotiation)
        device = attempt.device
        names = (talk.members[device.holdings.heard[link.slot].device].hex() for link in device.holdings.links if link)
        transmitters = tuple(sorted(names))
        if (talk.id, transmitters) == self._last:
            return
        self._last = (talk.id, transmitters)
        share = min(device.spent / max(device.account, 1), 1.0)
        move = DeviceMove(round(now, 4), transmitters, attempt.sent.total(), round(share, 4), device.temperature)
        with suppress(OSError):  # a full disk: nobody gives up a hand-over because it cannot be watched
            self._file.write(json.dumps(asdict(move)) + "\n")
            self._file.flush()

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


class MoveReader:
    """Reads what has come since the last time. A line that is only half there is read later."""

    def __init__(self, path: Path) -> None:
        self.path, self._read = path, 0

    def newer(self) -> list[DeviceMove]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        rows = [json.loads(line) for line in whole.splitlines()]
        return [DeviceMove(**{**row, "transmitters": tuple(row["transmitters"])}) for row in rows]
