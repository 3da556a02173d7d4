"""The graph-discovery game for other learners: a PettingZoo environment, and many games at once (vector.py)."""

from d2dfl.env.parallel import GraphDiscovery

__all__ = ["GraphDiscovery"]
