"""Markup that cannot forget to escape: plain text becomes text, only what `tag` made is markup."""

import json
from html import escape
from typing import Any

EMPTY = ("img", "input", "link", "meta")  # elements that have no end tag


class Html(str):
    """Markup, to be written as it is."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | bool) -> Html:
    """An element; `class_` stands for class, `data_x` for data-x, True for an attribute without value."""
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not False:
            words.append(f'{key}="{escape(value)}"')
    start = f"<{' '.join(words)}>"
    return Html(start) if name in EMPTY else Html(f"{start}{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Children side by side."""
    return Html("".join(child if isinstance(child, Html) else escape(child, quote=False) for child in children))


def embedded(data: Any) -> Html:
    """Data for the page's script; no text in it can end the element or start another."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json">{text}</script>')
