"""One process a device: the same graph, real datapoints over a real network, and nothing shared without its owner's consent.

`peer.py` is the whole device without I/O; `handover/` says how datapoints change hands exactly once; `runtime.py` gives it a
thread, a clock and a transport. Neither torch nor a compiler is loaded unless `dataset` is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2dfl.peer.datapoints import dataset
    from d2dfl.peer.home import Home
    from d2dfl.peer.peer import Peer
    from d2dfl.peer.store.store import Store

__all__ = ["Home", "Peer", "Store", "dataset"]
_HOMES = {"Home": "home", "Peer": "peer", "Store": "store.store", "dataset": "datapoints"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
