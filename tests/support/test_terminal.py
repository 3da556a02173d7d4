"""Terminals that cannot say everything, and texts that would act on one."""

import io
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

import d2dfl
from d2dfl.terminal import SAMPLE, WORDS, no_minus_zero, number, plain, speakable

EVERY = "".join(filter(str.isprintable, map(chr, range(0x2500, 0x25A0)))) + "αβτΩ×…±–é²"


def said(text: str, encoding: str, errors: str = "strict") -> str:
    """What a reader in this encoding sees."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors, newline="")
    speakable(stream)
    stream.write(text)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]  # a stream over bytes in memory


@pytest.mark.parametrize("errors", ["strict", "backslashreplace", "surrogateescape", "replace"])
def test_the_nearest_ascii(errors: str) -> None:
    text = "3 × 4 ± 0.5 – 1…2, α ∝ τ → Ω, ê ≈ e\u0301, 日\udc80"
    assert said(text, "ascii", errors) == "3 x 4 +/- 0.5 - 1...2, alpha ~ tau -> Omega, e ~ e, ??"
    assert said("┌─┬━┐│║█⠋", "ascii", errors) == "+-+-+||#*"


def test_what_an_encoding_has_stays() -> None:
    assert said("× ± é – …", "latin-1") == "× ± é - ..."
    assert said("× – … →", "cp1252") == "× – … ->"
    assert said(EVERY, "utf-8") == EVERY
    assert said("a\udc80b", "utf-8") == "a?b"


def test_a_stream_that_says_everything_is_left_alone() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    speakable(stream)
    assert stream.errors == "backslashreplace"
    speakable(io.StringIO())
    speakable(None)  # a program without a console


@given(st.text(st.characters()))
def test_any_text_is_written(text: str) -> None:
    for encoding in ("ascii", "latin-1", "cp437"):
        assert len(said(text, encoding)) >= sum(not unicodedata.combining(item) for item in text)


def test_all_our_own_characters_have_a_word() -> None:
    folder = Path(d2dfl.__file__).parent
    used = {item for path in folder.rglob("*.py") for item in path.read_text(encoding="utf-8") if ord(item) > 127}
    assert used >= {"×", "…", "±", "–"}
    assert "?" not in said("".join(sorted(used | {*SAMPLE, *WORDS})), "ascii")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_tables_and_bars(encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    speakable(stream)
    console = Console(file=stream, width=40, force_terminal=True, legacy_windows=False)
    for kind in (box.HEAVY_HEAD, box.SIMPLE_HEAD, box.DOUBLE, box.ROUNDED):
        table = Table("α", "score ±", box=kind, safe_box=False)
        table.add_row("a name that is far too long for its column", "0.5 ± 0.1 → –", style="bold")
        console.print(table)
    with Progress(SpinnerColumn(), BarColumn(), TextColumn("{task.completed}/{task.total} …"), console=console) as bar:
        bar.advance(bar.add_task("", total=3), 2)
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]  # a stream over bytes in memory
    assert "alpha" in text
    assert "2/3 ..." in text
    assert "?" not in text.replace("\x1b[?25", "")  # the sequences that hide and show the cursor


def test_a_program_on_an_ascii_terminal() -> None:
    script = (
        "import sys; from d2dfl.terminal import no_minus_zero, speakable; speakable(sys.stdout); speakable(sys.stderr);"
        "from rich.console import Console; Console().print('3 × 4 …'); print('± –', file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=True)
    assert done.stdout == b"3 x 4 ...\n"
    assert done.stderr == b"+/- -\n"


def test_control_characters_are_shown_and_do_nothing() -> None:
    assert plain("\x1b[2J\x07a\nb\x9b\u202egnp.exe\ud800\0") == "\\x1b[2J\\x07a\\nb\\x9b\\u202egnp.exe\\ud800\\x00"
    assert plain("Énergie: 3 × 4\u00a0%, 日本") == "Énergie: 3 × 4\u00a0%, 日本"
    assert plain(Path("a\x1bb")) == "a\\x1bb"


@given(st.text(st.characters()))
def test_nothing_but_spaces_and_what_one_sees_is_left(text: str) -> None:
    assert all(unicodedata.category(item)[0] not in "C" and item not in "\u2028\u2029" for item in plain(text))


def test_only_zero_loses_its_minus() -> None:
    assert [no_minus_zero(text) for text in ("-0.00", "-0", "-0.01", "-1,000.0", "0.0", "-inf", "nan")] == [
        "0.00",
        "0",
        "-0.01",
        "-1,000.0",
        "0.0",
        "-inf",
        "nan",
    ]
    assert number(-float("inf"), 2) == "-inf"
