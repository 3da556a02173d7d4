"""PAPER.md names things that exist."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from d2dfl.config import Config, split_path

PAGE = Path(__file__).parents[2] / "PAPER.md"
NAMES = sorted(set(re.findall(r"`(d2dfl(?:\.\w+)+)`", PAGE.read_text(encoding="utf-8"))))
SECTIONS = "|".join(field.name for field in dataclasses.fields(Config))
FIELDS = sorted(set(re.findall(rf"`((?:{SECTIONS})\.\w+)`", PAGE.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_resolves(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            annotations = getattr(thing, "__annotations__", {})
            assert hasattr(thing, attribute) or attribute in annotations, name
            thing = getattr(thing, attribute, None)
        return
    pytest.fail(name)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_exists(field: str) -> None:
    split_path(field)


def test_there_is_something_to_resolve() -> None:
    assert len(NAMES) > 20
    assert len(FIELDS) > 10
