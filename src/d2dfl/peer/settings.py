"""peer.toml: what a device is told about itself, checked."""

import re
import tomllib
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from d2dfl.errors import UserError
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.identity.roster import ADDRESS_WANTED, is_address
from d2dfl.peer.negotiation.settings import DiscoverySettings, read_discovery
from d2dfl.peer.store.records import Keeping
from d2dfl.peer.wire.messages import MOST_LABELS
from d2dfl.storage import read_text

LIMITS = {  # peer.toml → bounds
    "points_a_day": (0, 1 << 40),
    "bytes_a_day": (0, 1 << 50),
    "bytes_a_second": (1, 1 << 40),
    "memory_bytes": (1 << 21, 1 << 40),
    "piece_bytes": (1 << 10, 1 << 20),
}
SETTINGS = ("name", "data", "labels", "listen", "keep", "graph", "probe_s", "limits", "discovery")


@dataclass(frozen=True)
class Settings:
    """What peer.toml says."""

    name: str
    data: str
    labels: tuple[str, ...]
    listen: str
    keep: Keeping = "move"
    graph: str = ""
    probe_s: float = 1.0
    limits: Limits = field(default_factory=Limits)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)


def read_settings(path: Path) -> Settings:
    """peer.toml, checked."""
    return read_settings_text(read_text(path, "peer.toml"), str(path))


def read_settings_text(text: str, what: str) -> Settings:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise UserError(f"{what} is not readable as TOML: {error!s:.120}") from None
    odd = [name for name in content if name not in SETTINGS]
    if odd:
        raise UserError(f"{what} holds {odd[0]!r:.60}: it may hold {', '.join(SETTINGS)}")
    labels = content.get("labels")
    if not isinstance(labels, list) or not 0 < len(labels) <= MOST_LABELS or not all(map(_is_label, labels)):
        raise UserError(f"{what}: labels is {labels!r:.60}: give the names of all labels, the same on every device")
    labels = [unicodedata.normalize("NFC", label) for label in labels]  # letters that look alike are alike
    if len(set(labels)) < len(labels):
        raise UserError(f"{what}: a label stands twice in labels")
    for part in ("name", "data", "listen"):
        if not isinstance(content.get(part), str):
            raise UserError(f"{what}: {part} is {content.get(part)!r:.60}: give a text")
    if not is_address(content["listen"]):
        raise UserError(f"{what}: listen is {content['listen']!r:.60}: {ADDRESS_WANTED}")
    keep, probe = content.get("keep", "move"), content.get("probe_s", 1.0)
    if keep not in get_args(Keeping):
        raise UserError(f'{what}: keep is {keep!r:.40}: give "move" or "copy"')
    if not isinstance(probe, int | float) or isinstance(probe, bool) or not 0.1 <= probe <= 3600:
        raise UserError(f"{what}: probe_s is {probe!r:.40}: give seconds between probes, 0.1 to 3600")
    limits, discovery = _limits(content.get("limits", {}), what), read_discovery(content.get("discovery", {}), what)
    graph = content.get("graph", "")
    return Settings(
        content["name"],
        content["data"],
        tuple(labels),
        content["listen"],
        keep,
        str(graph),
        float(probe),
        limits,
        discovery,
    )


def _is_label(label: Any) -> bool:
    return isinstance(label, str) and re.fullmatch(r"[^\x00-\x1f]{1,100}", label) is not None


def _limits(given: Any, what: str) -> Limits:
    if not isinstance(given, dict):
        raise UserError(f"{what}: limits is {given!r:.40}: write [limits]")
    for name, value in given.items():
        if name not in LIMITS:
            raise UserError(f"{what}: there is no limit {name!r:.60}: limits are {', '.join(LIMITS)}")
        low, high = LIMITS[name]
        if type(value) is not int or not low <= value <= high:
            raise UserError(f"{what}: {name} is {value!r:.40}: give a whole number from {low:,} to {high:,}")
    return Limits(**given)
