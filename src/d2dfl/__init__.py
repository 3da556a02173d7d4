"""d2dfl: graph discovery for federated learning with device-to-device data exchange.

from d2dfl import Network, discover, preset

config = preset("best")
network = Network.generate(config, seed=0)
result = discover(network, config, seed=0)
print(result.graph.edges, result.evaluation.objective)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d2dfl.config import Config
    from d2dfl.config.presets import preset
    from d2dfl.discovery.discover import Discovery, discover
    from d2dfl.discovery.methods import METHODS
    from d2dfl.errors import MissingExtraError, UserError
    from d2dfl.network import Network
    from d2dfl.network.graph import Graph

__version__ = "0.1.0"
__all__ = [
    "METHODS",
    "Config",
    "Discovery",
    "Graph",
    "MissingExtraError",
    "Network",
    "UserError",
    "discover",
    "preset",
]

# Where each name is from. They are loaded when they are asked for: training alone needs no compiler and no SciPy, which
# take half a second and 130 MB.
_HOMES = {
    "Config": "config",
    "MissingExtraError": "errors",
    "UserError": "errors",
    "Graph": "network.graph",
    "METHODS": "discovery.methods",
    "Discovery": "discovery.discover",
    "discover": "discovery.discover",
    "Network": "network",
    "preset": "config.presets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
