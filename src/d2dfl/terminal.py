"""What a terminal can say: characters that its encoding lacks are written in others, and none of a file's acts on it; times for people."""

import codecs
import unicodedata
from typing import TextIO

HANDLER = "d2dfl-speakable"
SAMPLE = "×…±–−→·≈ατ∝─━│█✓"  # of what we write, tables and progress bars included
WORDS = {
    "×": "x",
    "÷": "/",
    "±": "+/-",
    "·": "*",
    "•": "*",
    "‐": "-",
    "‑": "-",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "≈": "~",
    "∝": "~",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "∞": "inf",
    "√": "sqrt",
    "∑": "sum",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "✓": "v",
    "✕": "x",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
}
UNKNOWN = "–"  # where a table has no number
LEVEL, UPRIGHT = "─━┄┅┈┉╌╍═╴╶╸╺╼╾", "│┃┆┇┊┋╎╏║╵╷╹╻╽╿"


def speakable(stream: TextIO | None) -> None:
    """Let a stream write every text: what its encoding lacks becomes the nearest ASCII, or a question mark.

    A stream in UTF-8 lacks only halves of characters, as in names of files that are not UTF-8.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    if stream is None or reconfigure is None or (_says(stream.encoding, SAMPLE) and stream.errors != "strict"):
        return
    codecs.register_error(HANDLER, _nearest)
    reconfigure(errors=HANDLER)


def plain(text: object) -> str:
    """A text in which characters that would act on a terminal, or hide, are written as escapes."""
    return "".join(item if _harmless(item) else item.encode("unicode_escape").decode() for item in str(text))


def shortened(text: str, longest: int) -> str:
    """A text of so many characters at most. Names that begin alike mostly end with what tells them apart."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return text[: longest - 1 - tail].rstrip() + "…" + text[-tail:].lstrip()


def number(value: float | None, digits: int) -> str:
    """A number for people: no -0.00, and a dash where there is none."""
    if value is None:
        return UNKNOWN
    return no_minus_zero(f"{value:,.{digits}f}")


def no_minus_zero(text: str) -> str:
    """A number as text, without a minus before zero."""
    return text.removeprefix("-") if not text.strip("-0.,") else text


def with_ends(mean: float, low: float, high: float, digits: int) -> str:
    """A mean and its interval, with one more digit where an end would read as 0 and both lie on one side of it."""
    while low * high > 0 and digits < 9 and any(not number(end, digits).strip("-0.,") for end in (low, high)):
        digits += 1
    return f"{number(mean, digits)} [{number(low, digits)}, {number(high, digits)}]"


def in_time(seconds: float) -> str:
    """Seconds for people."""
    for unit, name, limit in ((1, "s", 90), (60, "min", 90), (3600, "h", 48), (86400, "days", 1000)):
        if seconds < limit * unit:
            return f"{seconds / unit:.{int(name in ('h', 'days') and seconds < 10 * unit)}f} {name}"
    return "years"


def _harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _says(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """What Python calls for characters that an encoding lacks: other ones, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_word, error.object[error.start : error.end])), error.end


def _word(character: str) -> str:
    """The nearest ASCII."""
    if character in WORDS:
        return WORDS[character]
    number, name = ord(character), unicodedata.name(character, "")
    if 0x2500 <= number < 0x2580:  # lines of tables and bars
        return "-" if character in LEVEL else "|" if character in UPRIGHT else "+"
    if 0x2580 <= number < 0x25A0:  # blocks
        return "#"
    if 0x2800 <= number < 0x2900:  # dots that turn while one waits
        return "*"
    if name.startswith(("GREEK SMALL LETTER ", "GREEK CAPITAL LETTER ")) and " WITH " not in name:
        letter = name.rpartition(" ")[2].lower()
        return letter.capitalize() if "CAPITAL" in name else letter
    if unicodedata.combining(character):  # an accent of its own, behind its letter
        return ""
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"
