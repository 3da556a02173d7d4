"""The network: who holds what, who trusts whom with what, how good each radio link is."""

from d2dfl.network.network import Network

__all__ = ["Network"]
