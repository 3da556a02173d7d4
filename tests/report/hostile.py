"""Texts that try to break out of a page, in every place of a record."""

import dataclasses
from typing import Any

HOSTILE = '</script><img src=x onerror="window.pwned=1">\'&amp;<!--\u2028]]>${x}'


def everywhere(value: Any, text: str) -> Any:
    """The same record with this text in every field of text, but for names of files."""
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(everywhere(item, text) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name != "file"]
        return dataclasses.replace(value, **{name: everywhere(getattr(value, name), text) for name in names})
    return value
