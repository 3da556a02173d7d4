"""d2dfl: graph discovery for federated learning with device-to-device data exchange.

from d2dfl import Network, discover, preset

config = preset("best")
network = Network.generate(config, seed=0)
result = discover(network, config, seed=0)
print(result.graph.edges, result.evaluation.objective)
"""

from d2dfl.config import Config
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.graph import Graph
from d2dfl.methods import METHODS, Discovery, discover
from d2dfl.network import Network
from d2dfl.presets import preset

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
