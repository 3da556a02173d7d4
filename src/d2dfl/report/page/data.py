"""What the page reads: records of findings, the versions beside them, and their pictures."""

import base64
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.report.findings import FILE, Findings, Picture
from d2dfl.storage import MARK, read_bytes, read_json
from d2dfl.terminal import plain

KINDS = {".png": "image/png", ".svg": "image/svg+xml"}
Natural = list[tuple[str, int, str]]
LARGEST = 20_000_000  # bytes of a picture: more would make the page unreadable


@dataclass(frozen=True)
class PageEntry:
    """One record, and the folder it lies in."""

    findings: Findings
    folder: Path
    versions: tuple[tuple[str, str], ...]  # what the numbers were made with, where that is known


def load_entries(folders: Sequence[Path]) -> list[PageEntry]:
    """All records in or below the folders: folder by folder, in each by figure of the paper, then by name."""
    found: dict[Path, PageEntry] = {}
    for folder in folders:
        entries = [_entry(path, folder) for path in _records(folder)]
        for entry in sorted(entries, key=_order):
            found.setdefault(entry.folder.resolve(), entry)
    if not found:
        raise UserError("there is nothing to report: give at least one run folder")
    return list(found.values())


def _records(folder: Path) -> list[Path]:
    if folder.name == FILE and os.path.isfile(folder):
        return [folder]
    if os.path.isfile(folder):
        raise UserError(f"{plain(folder)} is a file: give the folder that a command made with --out")
    if not os.path.isdir(folder):
        raise UserError(f"there is no folder {str(folder)!r}: give one that a command made with --out")
    paths = sorted(_below(folder))
    if not paths and (folder / MARK).is_file():
        raise UserError(f"{folder} holds a run that is not finished: go on with it by --resume")
    if not paths:
        raise UserError(
            f"{plain(folder)} holds no {FILE}, nor do its folders: give one that run, compare, reproduce, discover or compare-graphs made"
        )
    return paths


def _below(folder: Path) -> Iterator[Path]:
    """Records at any depth. Links to folders are not followed; a folder that cannot be read may hold one, so it is said."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as inside:
                for item in inside:
                    if item.is_dir(follow_symlinks=False):
                        waiting.append(here / item.name)
                    elif item.name == FILE:
                        yield here / item.name
        except OSError as error:
            raise UserError(f"cannot look into the folder {str(here)!r:.200}: {error.strerror}") from None


def _entry(path: Path, folder: Path) -> PageEntry:
    return PageEntry(Findings.load(path), path.parent, _versions(path.parent) or _versions(folder))


def _order(entry: PageEntry) -> tuple[bool, Natural, Natural, str]:
    figure, path = entry.findings.figure, str(entry.folder)
    return not figure, _natural(figure), _natural(path), path


def _natural(text: str) -> Natural:
    """A key by which fig2 comes before fig10. Of two numbers without leading zeros, the longer one is the larger."""
    parts = re.findall(r"([^0-9]*)0*([0-9]*)", text)
    return [(word, len(number), number) for word, number in parts]


def _versions(folder: Path) -> tuple[tuple[str, str], ...]:
    """Versions from the run.json of a run folder; nothing where there is none, since the page can do without."""
    try:
        content = read_json(folder / MARK)
    except UserError:
        return ()
    versions = content.get("versions") if isinstance(content, dict) else None
    if not isinstance(versions, dict):
        return ()
    return tuple((name, version) for name, version in versions.items() if isinstance(version, str))


def picture_uri(folder: Path, picture: Picture) -> str:
    """A picture beside the record as a data URI. The record names it, so the name is not trusted."""
    name = picture.file
    kind = KINDS.get(Path(name).suffix.lower())
    path = folder / name
    if kind is None or not re.fullmatch(r"[\w][\w .()+-]*", name):
        raise UserError(
            f"{plain(folder / FILE)} names the picture {name!r:.80}: it must be a .png or .svg file beside it"
        )
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):  # a link to somewhere else
        raise UserError(f"{plain(path)} leads out of its folder: put the picture itself there")
    content = read_bytes(path, "a picture", LARGEST)
    if kind == "image/png" and not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise UserError(f"{plain(path)} is not a PNG picture")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def picture_size(address: str) -> tuple[int, int] | None:
    """Width and height of an embedded PNG, which its first bytes tell; None of another picture."""
    start, _, content = address.partition(",")
    if not start.startswith("data:image/png"):
        return None
    header = base64.b64decode(content[:32])
    return int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
