"""Frames over eclipse-zenoh: peer to peer, TCP with mutual TLS, each peer subscribed to its own fingerprint.

No scouting, no gossip, no shared memory: peers connect to the addresses of the roster and to nobody else. Callbacks run on
zenoh's threads and must not block: they put the frame into a bounded queue, and drop it where that is full. Certificates and
access rules are the outer fence; every frame is checked by the peer itself.
"""

import json
import secrets
import socket
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from queue import Full, Queue
from typing import Any

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.peer.wire.frames import LARGEST_FRAME

PREFIX = "d2dfl/peer/1"
DROPS = TOO_LARGE, TOO_MANY = "too large", "too many at once"
LOWEST_PORT, HIGHEST_PORT = 12_000, 32_000


class ZenohTransport:
    """One peer's end."""

    def __init__(
        self, own: bytes, listen: str, addresses: Iterable[str], files: dict[str, Path], inbox: "Queue[bytes]"
    ) -> None:
        try:
            import zenoh
        except ImportError:
            raise MissingExtraError("a peer on a network", "eclipse-zenoh", "peer") from None
        check_free(listen)
        zenoh.init_log_from_env_or("off")
        self.inbox, self.dropped, self._listen = inbox, Counter(dict.fromkeys(DROPS, 0)), listen
        self._own = f"{PREFIX}/{own.hex()}"
        self._when_full: Any = zenoh.CongestionControl.BLOCK  # few pieces are on their way: it is soon over
        self._config = json.dumps(_config(listen, addresses, files))
        self._open()

    def _open(self) -> None:
        import zenoh

        try:
            self._session: Any = zenoh.open(zenoh.Config.from_json5(self._config))
        except zenoh.ZError as error:
            raise UserError(f"cannot listen on {self._listen}: {error!s:.200}") from None
        self._subscriber = self._session.declare_subscriber(self._own, self._came)
        self._publishers: dict[bytes, Any] = {}

    def _came(self, sample: Any) -> None:
        """On a thread of zenoh: hand over, never wait."""
        payload = sample.payload
        if len(payload) > LARGEST_FRAME:
            self.dropped[TOO_LARGE] += 1
            return
        try:
            self.inbox.put_nowait(payload.to_bytes())
        except Full:
            self.dropped[TOO_MANY] += 1

    def send(self, receiver: bytes, frame: bytes) -> None:
        if receiver not in self._publishers:
            self._publishers[receiver] = self._session.declare_publisher(
                f"{PREFIX}/{receiver.hex()}", congestion_control=self._when_full, express=True
            )
        self._publishers[receiver].put(frame)

    def renew(self) -> None:
        """zenoh reads certificates when a session begins: begin another one."""
        self.close()
        self._open()

    def close(self) -> None:
        self._session.close()


def check_free(listen: str) -> None:
    """Refuse a port in which somebody else listens: zenoh would only say so in a log."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(family[4])
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot listen on {listen}: {reason}") from None


def free_ports(number: int) -> list[int]:
    """Ports of loopback that nobody has now; all are held until all are found.

    Below those that a system gives to connections that go out, else a fleet that connects would take its own.
    """
    sockets: list[socket.socket] = []
    try:
        start = secrets.randbelow(HIGHEST_PORT - LOWEST_PORT)  # fleets made at the same time look in other places
        for step in range(HIGHEST_PORT - LOWEST_PORT):
            if len(sockets) == number:
                break
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", LOWEST_PORT + (start + step) % (HIGHEST_PORT - LOWEST_PORT)))
                sockets.append(one)
            except OSError:
                one.close()
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _config(listen: str, addresses: Iterable[str], files: dict[str, Path]) -> dict[str, Any]:
    private, certificate = str(files["key"]), str(files["certificate"])
    rule = {
        "id": "frames",
        "permission": "allow",
        "flows": ["ingress", "egress"],
        "messages": ["put", "declare_subscriber"],
        "key_exprs": [f"{PREFIX}/*"],
    }
    return {
        "mode": "peer",
        "listen": {"endpoints": [f"tls/{listen}"]},
        "connect": {
            "endpoints": [f"tls/{address}" for address in addresses],
            "exit_on_failure": False,
            "timeout_ms": -1,  # for ever, in the background
            "retry": {"period_init_ms": 500, "period_max_ms": 4000, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {
            "shared_memory": {"enabled": False},
            "link": {
                "protocols": ["tls"],
                "tls": {
                    "root_ca_certificate": str(files["authority"]),
                    "listen_private_key": private,
                    "listen_certificate": certificate,
                    "connect_private_key": private,
                    "connect_certificate": certificate,
                    "enable_mtls": True,
                    "verify_name_on_connect": True,
                    "close_link_on_expiration": True,
                },
            },
        },
        "access_control": {
            "enabled": True,
            "default_permission": "deny",
            "rules": [rule],
            "subjects": [{"id": "members", "link_protocols": ["tls"]}],
            "policies": [{"rules": ["frames"], "subjects": ["members"]}],
        },
    }
