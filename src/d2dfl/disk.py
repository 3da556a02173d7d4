"""Files that are written whole or not at all."""

import os
from pathlib import Path

from d2dfl.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: what was there before stays until the new content is safe on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
