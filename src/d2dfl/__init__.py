"""d2dfl: graph discovery for federated learning with device-to-device data exchange.

import d2dfl

result = d2dfl.share(X, y, device=device_of_row)    # your data, your devices: who should send which rows to whom
result.rows[3], result.plot(), result.compare(rounds=20)

config = d2dfl.preset("best")                        # or step by step
network = d2dfl.Network.generate(config, seed=0)
found = d2dfl.discover(network, config, seed=0)
print(found.graph.edges, found.evaluation.objective)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2dfl.config import Config
    from d2dfl.config.presets import preset
    from d2dfl.data.dataset import Dataset
    from d2dfl.discovery.discover import Discovery, discover
    from d2dfl.discovery.methods import METHODS
    from d2dfl.errors import MissingExtraError, UserError
    from d2dfl.experiment.compare import compare
    from d2dfl.experiment.comparison import Comparison
    from d2dfl.experiment.share import ShareResult, share
    from d2dfl.experiment.training import Trained, train
    from d2dfl.network import Network
    from d2dfl.network.graph import Graph
    from d2dfl.transfer import ExchangeResult, exchange

__version__ = "0.1.0"
__all__ = [
    "METHODS",
    "Comparison",
    "Config",
    "Dataset",
    "Discovery",
    "ExchangeResult",
    "Graph",
    "MissingExtraError",
    "Network",
    "ShareResult",
    "Trained",
    "UserError",
    "compare",
    "discover",
    "exchange",
    "preset",
    "share",
    "train",
]

# Where each name is from. They are loaded when they are asked for: settings and the list of methods need not even NumPy, a
# discovery needs no PyTorch.
_HOMES = {
    "METHODS": "discovery.methods",
    "Comparison": "experiment.comparison",
    "Config": "config",
    "Dataset": "data.dataset",
    "Discovery": "discovery.discover",
    "ExchangeResult": "transfer",
    "Graph": "network.graph",
    "MissingExtraError": "errors",
    "Network": "network",
    "ShareResult": "experiment.share",
    "Trained": "experiment.training",
    "UserError": "errors",
    "compare": "experiment.compare",
    "discover": "discovery.discover",
    "exchange": "transfer",
    "preset": "config.presets",
    "share": "experiment.share",
    "train": "experiment.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
