"""How records show themselves: one line in a terminal, a small table in a notebook."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def line(name: str, *facts: str) -> str:
    """What `repr` says: <Network: 25 devices, 10 partitions>."""
    return f"<{name}: {', '.join(facts)}>"


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """A title and what is known, one line each."""
    return table_html(title, (), list(facts.items()))


def table_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """A table for a notebook; every text is escaped."""
    head = f"<thead><tr>{_cells('th', columns)}</tr></thead>" if columns else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    foot = f"<div>{escape(note)}</div>" if note else ""
    return f"<div><strong>{escape(title)}</strong><table>{head}<tbody>{body}</tbody></table>{foot}</div>"


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(
        f'<{tag} style="text-align:{"left" if place == 0 else "right"}">{escape(text)}</{tag}>'
        for place, text in enumerate(texts)
    )
