"""The page: complete, safe against whatever a record says, and the same bytes for the same records."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE, everywhere
from reading import demo_folders

import demo_findings as demo
from calling import call
from d2dfl import __version__
from d2dfl.discovery.methods import METHODS
from d2dfl.report import look as page_look
from d2dfl.report.drawing import picture as draw
from d2dfl.report.findings import FEW, FILE, REPRODUCED, UNSAID, Chart, Findings, Line, Verdict
from d2dfl.report.look import COLOURS, IID_COLOUR, dash_of, logarithmic, palettes, slug, slugs, titles, told_apart
from d2dfl.report.page.data import PageEntry
from d2dfl.report.page.page import STYLES, page
from d2dfl.report.page.verdicts import verdict_sentence


class Reader(HTMLParser):
    """Elements, texts and data of a page as a browser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[Any] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("img", "input", "link", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and self.elements[-1][1].get("type") == "application/json":
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def test_everything_of_the_records_is_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    demo.write_page(demo_folders(tmp_path), path, "A title")
    reader, found = Reader(path.read_text(encoding="utf-8")), demo.comparison()
    assert not reader.open
    words = "\n".join(reader.texts)
    for text in (
        "A title",
        found.title,
        found.setting,
        found.config,
        *found.notes,
        "torch 2.13.0",
        found.pictures[0].title,
    ):
        assert text in words
    for experiment in demo.experiments():
        for text in (experiment.title, experiment.claim, experiment.figure):
            assert text in words
        for verdict in experiment.verdicts:
            assert words.count(verdict.ours) >= 2  # in its section, and among all verdicts
    assert all(cell in words for row in found.tables[0].rows for cell in row)
    kinds = [attributes["data-widget"] for _, attributes in reader.elements if "data-widget" in attributes]
    assert sorted(kinds) == ["bars", *["chart"] * 7, "map"]
    assert len(reader.data) == len(kinds)
    places = {attributes["id"] for _, attributes in reader.elements if "id" in attributes}
    links = [attributes["href"] for name, attributes in reader.elements if name == "a"]
    assert all(str(link).removeprefix("#") in places for link in links)


def test_the_numbers_of_a_map_reach_the_script(tmp_path: Path) -> None:
    reader, item = (
        Reader(page([PageEntry(demo.comparison(), demo.write(demo.comparison(), tmp_path), ())])),
        demo.device_map(),
    )
    (data, other) = next(data for data in reader.data if "maps" in data)["maps"]
    assert other["title"] == demo.comparison().maps[1].title
    assert data["distance"] == pytest.approx(item.distance, rel=1e-5)
    assert data["partitions"] == list(item.partitions)
    for layer, drawn in zip(item.layers, data["layers"], strict=True):
        assert drawn["satisfied"] == list(layer.satisfied)
        assert drawn["distance"] == pytest.approx(layer.distance, rel=1e-5)
        assert drawn["scores"] == pytest.approx(layer.scores, rel=1e-5)
        assert drawn["went"] == [list(row) for row in layer.went]
        for link, line in zip(layer.links, drawn["links"], strict=True):
            assert (line["from"], line["to"], line["trusted"]) == (link.transmitter, link.receiver, link.trusted)
            assert line["loss"] == pytest.approx(link.loss, rel=1e-5)
            assert line["level"] == (0 if link.trusted < 3 else 1 if link.trusted < 5 else 2)
            assert line["went"] == list(link.went)
            assert dict(map(tuple, line["amounts"])) == {i: n for i, n in enumerate(link.amounts) if n}


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    found = everywhere(dataclasses.replace(demo.comparison(), verdicts=demo.experiments()[0].verdicts), HOSTILE)
    folder = demo.write(found, tmp_path / "run")
    (folder / "run.json").write_text(json.dumps({"versions": {HOSTILE: HOSTILE, "x": [HOSTILE]}}), encoding="utf-8")
    demo.write_page([folder], tmp_path / "report.html", HOSTILE)
    reader = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not reader.open
    images = [attributes for name, attributes in reader.elements if name == "img"]
    assert [str(image["src"]).split(",")[0] for image in images] == ["data:image/png;base64"]
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert len([name for name, _ in reader.elements if name == "script"]) == len(reader.data) + 1
    assert {data["title"] for data in reader.data} == {HOSTILE, "Who sends to whom, 2 networks"}
    assert reader.texts.count(HOSTILE) > 20


def test_the_policy_allows_nothing_but_the_page_itself(tmp_path: Path) -> None:
    text = page([PageEntry(demo.comparison(), demo.write(demo.comparison(), tmp_path), ())])
    policy = next(a["content"] for n, a in Reader(text).elements if n == "meta" and "http-equiv" in a)
    for kind, pattern in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
        (content,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)
    assert "default-src 'none'" in str(policy)
    assert f'<meta name="generator" content="d2dfl {__version__}">' in text
    assert set(re.findall(r"https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    demo.write_page(demo_folders(tmp_path / "one"), first)
    demo.write_page(demo_folders(tmp_path / "two"), second)
    assert first.read_bytes() == second.read_bytes()
    assert str(tmp_path) not in first.read_text(encoding="utf-8")


def record(*names: str) -> Findings:
    return Findings("x", "x", charts=(Chart("t", "x", "y", tuple(Line(name, name, (), (), (), ()) for name in names)),))


def test_a_method_has_one_colour_and_strangers_take_the_others() -> None:
    first, second = palettes([demo.comparison(), record("1 link", "none", "2 links")])
    assert all(first[name] == second[name] == palettes([record()])[0][name] for name in METHODS)
    assert first["none"] is None
    assert first["iid"] == IID_COLOUR
    assert {first[name] for name in METHODS if name != "none"} == set(range(len(COLOURS))) - {IID_COLOUR}
    alone, first, second = palettes(
        [record("a", "b"), record("marginal", "ours, 5 links"), record("c", "ours, 5 links")]
    )
    assert first["ours, 5 links"] == second["ours, 5 links"] != first["marginal"]
    assert second["c"] != second["ours, 5 links"]
    assert alone["a"] != alone["b"]


def test_a_label_has_the_colour_of_its_series_wherever_it_is() -> None:
    named = dataclasses.replace(record("marginal"), charts=(demo.comparison().charts[0],))
    first, second = titles([named, Findings("y", "y")])
    assert first == second
    assert first["marginal (ours)"] == first["marginal"] == 0
    assert first["i.i.d. shuffle"] == first["iid"] == IID_COLOUR


def test_the_style_has_the_colours_of_the_figures() -> None:
    style = "".join((Path(page_look.__file__).parent / "page" / "assets" / name).read_text() for name in STYLES)
    light = dict(re.findall(r"--(\w+): light-dark\((#\w+),", style))
    assert [light[f"colour{number}"] for number in range(len(COLOURS))] == list(COLOURS)
    assert light["grey"] == page_look.GREY
    assert [light[f"part{number}"] for number in range(6)] == list(page_look.PARTS)
    assert [light[f"level{number}"] for number in range(3)] == list(draw.LEVELS)
    assert [light[f"on{number}"] for number in range(3)] == list(draw.ON_LEVELS)
    assert [light[f"tint{number}"] for number in range(6)] == list(draw.TINTS)


def test_dashes_axes_and_names() -> None:
    def made(names: list[str], x: tuple[float, ...]) -> Chart:
        return Chart("t", "x", "y", tuple(Line(name, name, x, x, x, x) for name in names))

    chart = made(["none", "iid", "marginal", "marginal"], (1.0,))
    assert [dash_of(chart, index) for index in range(4)] == ["dotted", "dashed", "solid", "dashed"]
    assert logarithmic(made(["a"], (2, 4, 8, 16, 32)))
    assert logarithmic(made(["a"], (0.01, 0.1, 1, 10)))
    assert not logarithmic(made(["a"], (0, 1, 10, 100)))
    assert not logarithmic(made(["a"], tuple(range(1, 200))))
    assert not logarithmic(made([], ()))
    joules = [Line("a", "a", tuple(x + shift for x in (1, 2, 3, 4, 5)), *[(0.0,) * 5] * 3) for shift in (0, 0.01)]
    assert not logarithmic(Chart("t", "x", "y", tuple(joules)))
    assert slug("Énergie, 0.75 (J)/../x") == "energie-0-75-j-x"
    assert slug("日本") == "untitled"
    assert slugs(["A b", "a-b", "a b"]) == ["a-b", "a-b-2", "a-b-3"]


def test_one_figure_at_two_scales_is_told_apart() -> None:
    same = [Findings("a", "Energy", figure="Fig. 9", scale=scale) for scale in ("small", "paper")]
    others = [Findings("b", "Energy", figure="Fig. 10", scale="small"), Findings("c", "Mine"), Findings("d", "Mine")]
    names = ["Energy, small scale", "Energy, paper scale", "Energy", "Mine", "Mine"]
    assert told_apart([*same, *others]) == names


def test_a_record_with_nothing_but_a_title() -> None:
    text = page([PageEntry(Findings("n", "Only a title"), Path(), ())])
    assert "<h1>Only a title</h1>" in text
    assert "All verdicts" not in text


def test_the_report_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders = demo_folders(tmp_path)
    out = tmp_path / "new" / "page.html"
    assert call(monkeypatch, "report", *map(str, folders), "--out", str(out), "--title", "Mine") == 0
    assert "<h1>Mine</h1>" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", ["missing", "empty", "corrupt", "folder", "unwritable", "nothing"])
def test_bad_input_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    run, out = demo.write(demo.comparison(), tmp_path / "run"), tmp_path / "page.html"
    (tmp_path / "empty").mkdir()
    if case == "corrupt":
        (run / FILE).write_text("{")
    runs = {"missing": [tmp_path / "none"], "empty": [tmp_path / "empty"], "nothing": []}.get(case, [run])
    out = {"folder": tmp_path / "empty", "unwritable": run / FILE / "page.html"}.get(case, out)
    assert call(monkeypatch, "report", *map(str, runs), "--out", str(out)) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("d2dfl: ")
    assert "\n" not in said
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("number", [4, 7])
def test_learners_have_columns_as_long_as_they_fit(number: int) -> None:
    learners = [f"learner {n}" for n in range(number)]
    verdicts = tuple(Verdict("accuracy", name, "above", "0.1", REPRODUCED, 3) for name in learners)
    text = page([PageEntry(Findings("n", "A title", verdicts=verdicts), Path(), ())])
    head = "".join(re.findall(r"<thead>.*?</thead>", text, re.S))
    assert ("learner 3" in head) == (number == 4)
    assert ('scope="col">Measured' in head) == ('class="several"' in text) == (number == 7)
    assert all(f">{name}</span>" in text for name in learners)


def test_on_the_page_of_one_record_what_came_out_stands_first(tmp_path: Path) -> None:
    found = dataclasses.replace(demo.comparison(), pictures=())
    alone = page([PageEntry(found, tmp_path, (("numpy", "2.0"),))])
    assert alone.index('class="takeaway"') < alone.index("numpy 2.0")
    assert alone.count(f">{found.title}</h2>") == 1
    assert f'<h2 id="s-{found.name}-title" class="hidden">' in alone  # the title of the page says it
    both = page([PageEntry(found, tmp_path, ()), PageEntry(Findings("other", "Other"), tmp_path, ())])
    assert f'<h2 id="s-{found.name}-title">' in both


def test_verdicts_that_are_not_of_the_paper_are_one_number_that_says_what_it_is() -> None:
    kinds = (REPRODUCED, "no claim", "nobody can tell", "no claim")
    verdicts = tuple(Verdict(f"q{place}", "ours", "1", "1", kind, 3) for place, kind in enumerate(kinds))
    text = page([PageEntry(Findings("one", "One", verdicts=verdicts), Path(), ())])
    assert 'title="1 nobody can tell, 2 no claim"' in text
    assert "1 reproduced, 1 nobody can tell, 2 no claim." in text


def test_what_the_paper_does_not_say_is_not_one_of_its_numbers() -> None:
    """And every kind of verdict that is counted is explained below its column."""
    verdicts = (
        Verdict("a", "ours", "0.3", "0.3", REPRODUCED, 3),
        Verdict("b", "ours", UNSAID, "0.1", "ahead", 3),
        Verdict("c", "ours", UNSAID, "0.1", "no claim", 3),
    )
    text = page([PageEntry(Findings("one", "One", verdicts=verdicts), Path(), ())])
    assert "1 number of the paper, 2 beside them of which it says nothing; 3 verdicts." in text
    for name in (REPRODUCED, "ahead", "no claim"):
        assert f"<dt>{name}</dt><dd>" in text


def test_too_few_seeds_are_said_on_top() -> None:
    found = demo.experiments()[0]
    few = tuple(dataclasses.replace(item, verdict=FEW) for item in found.verdicts)
    assert verdict_sentence(few) == "Whether the paper's numbers hold cannot be said: too few seeds."
    assert verdict_sentence(()) == ""
