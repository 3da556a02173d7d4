"""How scripts that draw a picture of the code write it, or say that it is old."""

import argparse
import io
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure


def svg_of(figure: Figure) -> bytes:
    """A figure as a file, without the date."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def write_or_check(path: Path, draw: Callable[[], bytes], about: str | None) -> int:
    """The whole of such a script: an exit code."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the picture is old")
    check, drawn = parser.parse_args().check, draw()
    if check:
        return int(not path.exists() or path.read_bytes() != drawn)
    path.write_bytes(drawn)
    return 0
