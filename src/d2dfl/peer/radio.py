"""How strongly this device hears its radio network, where the platform tells it: Linux in /proc/net/wireless, others not at all.

The kernel knows the strength of the access point (or of the cell of an ad-hoc network), not of every peer behind it: so this stands beside
measured losses, and does not replace them.
"""

import math
import re
from pathlib import Path

WIRELESS = Path("/proc/net/wireless")
MOST_BYTES = 65_536
LINE = re.compile(r"\s*([\w.:@-]{1,32}):\s+[0-9a-fA-F]+\s+(-?[0-9.]+)\s+(-?[0-9.]+)\s+(-?[0-9.]+)")


def signal_dbm(path: Path = WIRELESS) -> dict[str, float]:
    """Interface → received strength in dBm; empty where nobody tells it."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines()[2:]:  # two lines of headings
        parts = LINE.match(line)
        if parts is None:
            continue
        try:
            level = float(parts[3])
        except ValueError:
            continue
        if level > 63:  # old drivers count in bytes from -256
            level -= 256
        if math.isfinite(level) and -200 <= level < 0:
            found[parts[1]] = level
    return found
