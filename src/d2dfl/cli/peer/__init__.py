"""What the commands of one device do: how it joins, how it runs, what it shows."""

from d2dfl.errors import MissingExtraError

try:
    import cryptography as _cryptography  # noqa: F401  # only to see whether it is there
    import msgspec as _msgspec  # noqa: F401  # likewise
except ImportError:
    raise MissingExtraError("a peer", "msgspec and cryptography", "peer") from None
