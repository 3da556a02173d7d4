"""Markup that cannot forget to escape: plain text becomes text, only what `tag` made is markup."""

import base64
import hashlib
import json
from html import escape
from typing import Any

from d2dfl import __version__

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


def embedded(data: Any, **attributes: str | bool) -> Html:
    """Data for the page's script; no text in it can end the element or start another."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return tag("script", Html(text), type="application/json", **attributes)


def head(
    title: str, style: str, *more: Html, scripts: str, styles: str = "", images: str = "data:", connects: str = ""
) -> Html:
    """The head of a page that works offline. `scripts`, `styles` and `images` are the sources that its policy allows, `connects`
    those that a script may ask.

    Only our own scripts run, and nothing can be fetched or sent: a second wall behind the escaping.
    """
    ours = f"style-src {styles or source(style)}; script-src {scripts}; img-src {images}"
    ours += f"; connect-src {connects}" if connects else ""
    policy = f"default-src 'none'; {ours}; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="generator", content=f"d2dfl {__version__}"),
        *more,
        tag("link", rel="icon", href="data:,"),  # or a server would be asked for one
        tag("title", title),
        tag("style", Html(style)),
    )


def source(text: str) -> str:
    """A script or a style as a policy names it: by its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
