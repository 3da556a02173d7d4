"""What a command leaves for a peer that runs, and so has its folder for itself."""

import json
import secrets
import time
from pathlib import Path

from d2dfl.peer.runtime import WISHES
from d2dfl.storage import make_folder, write_whole


def leave_wish(folder: Path, wish: dict[str, object]) -> None:
    """Put a wish where the peer looks every second."""
    make_folder(folder / WISHES)
    write_whole(folder / WISHES / f"{time.time_ns()}-{secrets.token_hex(4)}.json", json.dumps(wish).encode())
