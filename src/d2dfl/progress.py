"""Who is told how far something is."""

from collections.abc import Callable

Share = Callable[[float], None]  # called with the share of the work that is done
Step = Callable[[str, float], None]  # called with what is being done, and its share


def silent(*_: object) -> None:
    """Nobody watches."""
