"""One process a device: the same graph, real datapoints over a real network, and nothing shared without its owner's consent.

`peer.py` is the whole device without I/O; `handover/` says how datapoints change hands exactly once; `runtime.py` gives it a
thread, a clock and a transport. Neither torch nor a compiler is loaded unless `dataset` is asked for. What the commands do is here for Python, too (`service.py`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2dfl.peer.auditing import audit_lines, verify_audit
    from d2dfl.peer.datapoints import dataset
    from d2dfl.peer.home import Home, make_home
    from d2dfl.peer.owner import FleetFolder, read_request
    from d2dfl.peer.peer import Peer
    from d2dfl.peer.preflight import check
    from d2dfl.peer.reports import preview, status
    from d2dfl.peer.service import RunResult, forget, join, run
    from d2dfl.peer.store.store import Store

__all__ = [
    "FleetFolder",
    "Home",
    "Peer",
    "RunResult",
    "Store",
    "audit_lines",
    "check",
    "dataset",
    "forget",
    "join",
    "make_home",
    "preview",
    "read_request",
    "run",
    "status",
    "verify_audit",
]
_HOMES = {
    "FleetFolder": "owner",
    "Home": "home",
    "Peer": "peer",
    "RunResult": "service",
    "Store": "store.store",
    "audit_lines": "auditing",
    "check": "preflight",
    "dataset": "datapoints",
    "forget": "service",
    "join": "service",
    "make_home": "home",
    "preview": "reports",
    "read_request": "owner",
    "run": "service",
    "status": "reports",
    "verify_audit": "auditing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
