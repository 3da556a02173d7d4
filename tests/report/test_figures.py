"""Figures for a paper: one column wide, fonts embedded, the same bytes for the same record."""

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

import demo_findings as demo
from calling import call
from d2dfl.errors import UserError
from d2dfl.report.figures import FORMATS, draw_figures
from d2dfl.report.findings import Bars, Chart, Findings, Layer, Line, Map
from d2dfl.report.look import slug

NAMES = ["accuracy-over-rounds", "loss-over-rounds", "energy-until-0-75-accuracy"]
NAMES += [slug(f"who-sends-to-whom-seed-0 {title}") for _, title, _, _ in demo.METHODS]


def test_every_chart_bars_and_map_in_every_format(tmp_path: Path) -> None:
    paths = draw_figures(demo.comparison(), tmp_path)
    assert [path.name for path in paths] == [f"{name}.{suffix}" for name in NAMES for suffix in FORMATS]
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".png":
            assert struct.unpack(">I", content[16:20]) == (1050,)  # 3.5 inches at 300 dots
        elif path.suffix == ".pdf":
            assert re.search(rb"/MediaBox \[ 0 0 252(\.0+)? ", content)
            assert b"/FontFile2" in content  # TrueType, embedded
            assert b"/Type3" not in content
            assert b"CreationDate" not in content
        else:
            assert str(ElementTree.fromstring(content).get("width")).startswith("252")


def test_the_same_record_gives_the_same_bytes(tmp_path: Path) -> None:
    state = dict(matplotlib.rcParams)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        with matplotlib.rc_context({"font.size": 20, "axes.grid": folder.name == "b"}):  # a style of the reader's own
            draw_figures(demo.experiments()[-1], folder)
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()
    assert dict(matplotlib.rcParams) == state


def test_odd_records_are_drawn(tmp_path: Path) -> None:
    text = "_$x^$ <b>&</b> 日本 \x00\n" + "very " * 40
    lines = (Line("none", text, (3.0,), (1.0,), (1.0,), (1.0,)), Line("x", text, (), (), (), ()))
    layer = Layer("none", text, ((0.0,), (0.0,)), (0, 0), ())
    findings = Findings(
        "odd",
        text,
        charts=(Chart(text, text, text, lines), Chart(text, text, text, ()), Chart("empty", "x", "y", ())),
        bars=(Bars(text, text, (text,), (text,), ((0.0,),)), Bars("no bars", "J", (), (), ())),
        maps=(Map(text, (text,), ((1.0, 1.0), (1.0, 1.0)), (0, 7), ((0.0,), (0.0,)), ((0.0,), (0.0,)), (layer,)),),
    )
    paths = draw_figures(findings, tmp_path, ("svg", "png"))
    assert len(paths) == 6  # a chart, bars and a map; what is empty is left out
    assert len({path.name for path in paths}) == 6
    for path in paths[::2]:
        ElementTree.fromstring(path.read_bytes())


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot draw figures as 'gif'"):
        draw_figures(demo.comparison(), tmp_path, ("gif",))


def test_the_report_command_draws_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for found in demo.experiments()[:2]:
        demo.write(found, tmp_path / "runs" / found.name)
    assert call(monkeypatch, "report", str(tmp_path / "runs"), "--out", str(tmp_path / "page.html"), "--figures") == 0
    names = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "page-figures").rglob("*.pdf"))
    assert names == [
        "page-figures/curve-semi/accuracy-over-rounds-semi-supervised.pdf",
        "page-figures/curve-supervised/accuracy-over-rounds-supervised.pdf",
    ]
