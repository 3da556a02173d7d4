"""The record of findings: it comes back as it was, and a bad file is one sentence."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import demo_findings as demo
from d2dfl.errors import UserError
from d2dfl.report.findings import FILE, Bars, Chart, Findings, Line, Link, Map, Table, span
from d2dfl.report.page.data import PageEntry
from d2dfl.report.page.page import page
from d2dfl.words import counted

SMALL = Findings(
    name="small",
    title="Small",
    verdicts=demo.experiments()[0].verdicts[:1],
    tables=(Table("Numbers", ("a", "b"), (("1", "2"),)),),
    charts=(Chart("Curve", "x", "y", (Line("marginal", "Ours", (1, 2.5), (3, 4), (2, 3), (4, 5)),)),),
    bars=(Bars("Energy", "J", ("a", "b"), ("x",), ((1, 2),)),),
    maps=(demo.device_map(4),),
    notes=("a note",),
)


def written(findings: Findings, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A folder whose record was changed by hand."""
    content = json.loads(findings.to_json())
    change(content)
    (folder / FILE).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("findings", [demo.comparison(), *demo.experiments(), SMALL, Findings("n", "only a title")])
def test_a_record_comes_back_as_it_was(tmp_path: Path, findings: Findings) -> None:
    findings.save(tmp_path)
    first = (tmp_path / FILE).read_bytes()
    assert Findings.load(tmp_path) == findings
    assert Findings.load(tmp_path / FILE) == findings
    Findings.load(tmp_path).save(tmp_path)
    assert (tmp_path / FILE).read_bytes() == first


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(-1e9, 1e9)


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    length = draw(st.integers(0, 4))
    values = [tuple(draw(st.lists(numbers, min_size=length, max_size=length))) for _ in range(4)]
    return Chart(draw(texts), draw(texts), draw(texts), (Line(draw(texts), draw(texts), *values),))


@given(name=texts, title=texts, notes=st.lists(texts, max_size=3), found=st.lists(charts(), max_size=2))
def test_any_texts_and_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, title: str, notes: list[str], found: list[Chart]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    findings = Findings(name, title, notes=tuple(notes), charts=tuple(found))
    findings.save(folder)
    assert Findings.load(folder) == findings


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another version": lambda it: it.update(format=2),
    "no version": lambda it: it.pop("format"),
    "no title": lambda it: it.pop("title"),
    "a field too many": lambda it: it.update(colour="red"),
    "a number as title": lambda it: it.update(title=3),
    "a text as list": lambda it: it.update(notes="a note"),
    "a null": lambda it: it.update(notes=[None]),
    "a table in a table": lambda it: it["tables"][0].update(rows=[[["1", "2"]]]),
    "a short row": lambda it: it["tables"][0].update(rows=[["1"]]),
    "a number as cell": lambda it: it["tables"][0].update(rows=[["1", 2]]),
    "a text as number": lambda it: it["charts"][0]["lines"][0].update(mean=["3", "4"]),
    "a truth as number": lambda it: it["charts"][0]["lines"][0].update(mean=[True, 4]),
    "infinite": lambda it: it["charts"][0]["lines"][0].update(mean=[1e300, 4]),
    "not a number": lambda it: it["charts"][0]["lines"][0].update(mean=[float("nan"), 4]),
    "a huge whole number": lambda it: it["charts"][0]["lines"][0].update(mean=[10**400, 4]),
    "a short line": lambda it: it["charts"][0]["lines"][0].update(low=[2]),
    "a line that is a text": lambda it: it["charts"][0].update(lines=["line"]),
    "a part without bars": lambda it: it["bars"][0].update(parts=["x", "y"]),
    "a negative bar": lambda it: it["bars"][0].update(values=[[1, -2]]),
    "no device": lambda it: it["maps"][0].update(positions=[], cluster=[], threshold=[], before=[], layers=[]),
    "three coordinates": lambda it: it["maps"][0]["positions"][0].append(1.0),
    "a device too few": lambda it: it["maps"][0]["cluster"].pop(),
    "a partition too many": lambda it: it["maps"][0]["before"][0].append(1.0),
    "a link to nowhere": lambda it: it["maps"][0]["layers"][0]["links"][0].update(receiver=9),
    "a link to itself": lambda it: it["maps"][0]["layers"][0]["links"][0].update(receiver=1, transmitter=1),
    "half a device": lambda it: it["maps"][0]["layers"][0]["links"][0].update(receiver=1.5),
    "a loss above one": lambda it: it["maps"][0]["layers"][0]["links"][0].update(loss=1.5),
    "more trusted than there are": lambda it: it["maps"][0]["layers"][0]["links"][0].update(trusted=11),
    "more satisfied than there are": lambda it: it["maps"][0]["layers"][0].update(satisfied=[11, 0, 0, 0]),
    "half a character": lambda it: it.update(title="\ud800"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_bad_record_is_one_sentence(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(UserError) as caught:
        Findings.load(written(SMALL, tmp_path, change))
    assert str(caught.value).startswith(str(tmp_path / FILE))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}', b"9" * 5000, b'{"format": 1, "format": 1}'],
    ids=range(9),
)
def test_a_file_that_is_no_record(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UserError) as caught:
        Findings.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_record_that_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(UserError, match="is a pipe"):
        Findings.load(tmp_path)
    with pytest.raises(UserError, match="is a device"):
        Findings.load(Path("/dev/zero"))


def test_a_record_too_large_to_be_one(tmp_path: Path) -> None:
    with (tmp_path / FILE).open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no room on the disk
    with pytest.raises(UserError, match="1,099,511,627,776 bytes"):
        Findings.load(tmp_path)


def test_a_folder_without_record(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no findings.json"):
        Findings.load(tmp_path)


def places(content: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain data."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [here, *(place for key, value in inside for place in places(value, (*here, key)))]


PLAIN = json.loads(SMALL.to_json())
PLACES = [place for place in places(PLAIN) if place]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(place=st.sampled_from(PLACES), value=anything)
def test_whatever_is_in_the_file_gives_a_page_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    content = copy.deepcopy(PLAIN)
    target = content
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    (folder / FILE).write_text(json.dumps(content), encoding="utf-8")
    try:
        found = Findings.load(folder)
    except UserError:
        return
    assert page([PageEntry(found, folder, ())])


def test_links_and_maps_are_checked_when_built() -> None:
    with pytest.raises(ValueError, match="impossible amount"):
        Link(0, 1, 0.1, 3, (-1.0,))
    with pytest.raises(ValueError, match="no device"):
        Map("Empty", (), (), (), (), (), ())


def test_numbers_in_sentences() -> None:
    assert [counted(number, "seed") for number in (0, 1, 2, 1200)] == ["0 seeds", "1 seed", "2 seeds", "1,200 seeds"]
    assert span([40, 40]) == "40"
    assert span([1500, 3, 40]) == "3 to 1,500"
