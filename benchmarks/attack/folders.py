"""Run folders side by side: what two runs of the same thing wrote, but for what tells the time."""

import hashlib
import json
from pathlib import Path
from typing import Any

TIMES = {"seconds", "core_seconds", "checksum", "sha256", "digest"}  # and what is computed from them


def contents(folder: Path, skip: tuple[str, ...] = ()) -> dict[str, str]:
    """path → digest of every file below a folder. Cells and run.json count without their times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink() or not path.is_file() or name in skip:
            continue
        content = path.read_bytes()
        if path.parent.name == "cells" or path.name == "run.json":
            content = _timeless(content)
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def _timeless(content: bytes) -> bytes:
    try:
        return json.dumps(_without(json.loads(content)), sort_keys=True).encode()
    except ValueError:
        return content


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner) for key, inner in value.items() if key not in TIMES}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def difference(mine: dict[str, str], reference: dict[str, str]) -> str:
    """What differs, in words; nothing where all is equal."""
    missing, more = sorted(set(reference) - set(mine)), sorted(set(mine) - set(reference))
    other = sorted(name for name in set(mine) & set(reference) if mine[name] != reference[name])
    parts = [
        f"{word} {names[:4]}"
        for word, names in (("missing", missing), ("too much", more), ("other content", other))
        if names
    ]
    return "; ".join(parts)
