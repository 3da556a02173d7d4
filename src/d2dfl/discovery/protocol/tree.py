"""The tree along which devices tell that they are done: device n is below device (n - 1) // 2, and stands in for those above that are gone."""

from collections.abc import Iterator, Set


def _upwards(number: int) -> Iterator[int]:
    """Whom a device tells, the next one if the one before is gone: those above it up to the top, then the first devices."""
    name = number
    while name > 0:
        name = (name - 1) // 2
        yield name
    yield from range(1, number)


def above(number: int, gone: Set[int]) -> int | None:
    """Whom a device tells; nobody: it is at the top itself."""
    return next((name for name in _upwards(number) if name not in gone), None)


def below(number: int, devices: int, gone: Set[int]) -> set[int]:
    """Who tells a device."""
    if not gone:
        return {name for name in (2 * number + 1, 2 * number + 2) if name < devices}
    return {name for name in range(devices) if name not in gone and name != number and above(name, gone) == number}
