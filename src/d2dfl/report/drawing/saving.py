"""How a figure of matplotlib becomes a file: in the format that its name asks for, whole, the same bytes every time."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from d2dfl.errors import UserError
from d2dfl.storage import write_whole

UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def suffix_among(path: str | Path, suffixes: Sequence[str]) -> str:
    """The format that a file's name asks for, or a sentence that lists those there are."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise UserError(f"cannot draw {str(path)!r}: name a file that ends in {', '.join(suffixes)}")
    return suffix


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure; whoever wants equal bytes of .svg sets "svg.hashsalt"."""
    suffix = path.suffix.lower()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=UNDATED.get(suffix, {}))
    write_whole(path, buffer.getvalue())
