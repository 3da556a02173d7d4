"""What a run has measured and written down: links, losses as time went by, the strength of the radio. Checked: it is a file like any other."""

import re
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.home import Home
from d2dfl.storage import read_json

LINKS = "links.json"
PRINT = re.compile("[0-9a-f]{64}")
MOST_BYTES = 1 << 26


def links_of(home: Home) -> dict[str, Any]:
    """What was measured, by the other's fingerprint."""
    links: dict[str, Any] = measured(home)["links"]
    return links


def measured(home: Home) -> dict[str, Any]:
    """All that a run has measured: links, their losses as time went by, the strength of the radio."""
    path = home.folder / LINKS
    nothing: dict[str, Any] = {"links": {}, "history": [], "signal_dbm": {}}
    if not path.exists():
        return nothing
    content = read_json(path, "measured links", MOST_BYTES)
    found = {name: content.get(name, empty) for name, empty in nothing.items()} if isinstance(content, dict) else {}
    good = (
        bool(found)
        and isinstance(found["links"], dict)
        and all(PRINT.fullmatch(who) and _is_link(link) for who, link in found["links"].items())
        and isinstance(found["history"], list)
        and all(map(is_moment, found["history"]))
        and isinstance(found["signal_dbm"], dict)
        and all(_is_number(level) for level in found["signal_dbm"].values())
    )
    if not good:
        raise UserError(f"{path} is not what a run writes: remove it, and it will be measured anew")
    return found


def _is_link(link: Any) -> bool:
    names = ("probes", "heard", "loss", "round_trip_s")
    if not isinstance(link, dict) or any(name not in link for name in names):
        return False
    return all(link.get(name) is None or _is_number(link[name]) for name in (*names, "last_heard_s"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def is_moment(moment: Any) -> bool:
    """Losses by fingerprint at a time."""
    if not isinstance(moment, dict) or not isinstance(moment.get("loss"), dict):
        return False
    time_s = moment.get("time_s")
    good = isinstance(time_s, int | float) and 0 <= time_s < 1e11
    return good and all(isinstance(loss, int | float) and 0 <= loss <= 1 for loss in moment["loss"].values())
