"""What stands in a folder of findings and is no good record: pictures, links in circles, files without rights."""

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import demo_findings as demo
from calling import call
from d2dfl.errors import UserError
from d2dfl.report.findings import FILE, Findings, Picture
from d2dfl.report.page import data as page_data
from d2dfl.report.page.data import load_entries, picture_uri


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "/etc/secret.png",
        "sub/secret.png",
        "..",
        ".",
        "",
        ".png",
        ".hidden.png",
        "a\\b.png",
        "a\0.png",
        "page.html",
        "a.png/",
        "~.png",
        "C:x.png",
        "a\n.png",
    ],
)
def test_a_picture_is_a_plain_file_beside_the_record(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.png").write_bytes(demo.PIXEL)
    folder = tmp_path / "run"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "secret.png").write_bytes(demo.PIXEL)
    with pytest.raises(UserError, match="file beside it"):
        picture_uri(folder, Picture("Title", name))


def test_pictures_that_cannot_be_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(demo.PIXEL)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "text.png").write_text("<svg/>")
    (folder / "good.png").write_bytes(demo.PIXEL)
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    (folder / "circle.png").symlink_to("circle.png")
    for name, sentence in (
        ("link", "leads out"),
        ("text", "not a PNG"),
        ("none", "there is no file"),
        ("folder", "is a folder: give a picture"),
        ("pipe", "is a pipe"),
        ("circle", "cannot read"),
    ):
        with pytest.raises(UserError, match=sentence):
            picture_uri(folder, Picture("Title", f"{name}.png"))
    uri = picture_uri(folder, Picture("Title", "good.png"))
    assert base64.b64decode(uri.removeprefix("data:image/png;base64,")) == demo.PIXEL
    monkeypatch.setattr(page_data, "LARGEST", 10)
    with pytest.raises(UserError, match="a picture may have 10"):
        picture_uri(folder, Picture("Title", "good.png"))


def test_records_are_ordered_by_figure_then_by_name(tmp_path: Path) -> None:
    for name, figure in (("b10", ""), ("b2", ""), ("z", "Fig. 5a"), ("y", "Fig. 10"), ("x", "Fig. 5b")):
        demo.write(Findings(name, name, figure=figure), tmp_path / "all" / name)
    demo.write(Findings("first", "first"), tmp_path / "first")
    entries = load_entries([tmp_path / "first", tmp_path / "all", tmp_path / "first"])
    assert [entry.findings.name for entry in entries] == ["first", "z", "x", "y", "b2", "b10"]


def test_versions_of_the_run_are_those_of_its_parts(tmp_path: Path) -> None:
    demo.write(Findings("part", "part"), tmp_path / "part")
    assert load_entries([tmp_path])[0].versions == ()
    for content in ("[1]", '{"versions": 3}', "{"):
        (tmp_path / "run.json").write_text(content)
        assert load_entries([tmp_path])[0].versions == ()
    (tmp_path / "run.json").write_text('{"versions": {"torch": "2.13"}}')
    assert load_entries([tmp_path])[0].versions == (("torch", "2.13"),)


def test_a_figure_with_a_number_of_5000_digits_is_ordered(tmp_path: Path) -> None:
    for name, figure in (("c", "Fig. " + "9" * 5000), ("b", "Fig. 12"), ("a", "Fig. 007")):
        demo.write(Findings(name, name, figure=figure), tmp_path / name)
    assert [entry.findings.name for entry in load_entries([tmp_path])] == ["a", "b", "c"]


def test_a_folder_with_much_else_and_links_in_circles(tmp_path: Path) -> None:
    demo.write(Findings("deep", "deep"), tmp_path.joinpath(*["d"] * 400))
    for number in range(3000):
        (tmp_path / f"{number}.txt").touch()
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    os.mkfifo(tmp_path / "run.json")
    (entry,) = load_entries([tmp_path])
    assert (entry.findings.name, entry.versions) == ("deep", ())


def test_records_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(UserError, match="is a pipe"):
        load_entries([tmp_path])
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(FILE)
    with pytest.raises(UserError, match="cannot read"):
        load_entries([tmp_path])
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(UserError, match="there is no folder"):
            load_entries([tmp_path / name])


@contextmanager
def without_rights() -> Iterator[None]:
    """As somebody who may not read what nobody may read; the superuser may."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_that_cannot_be_read_is_said() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        demo.write(Findings("open", "open"), top / "open")
        demo.write(Findings("closed", "closed"), top / "closed")
        top.chmod(0o755)
        (top / "closed").chmod(0)
        try:
            with without_rights(), pytest.raises(UserError, match="cannot look into the folder .*closed': Permission"):
                load_entries([top])
        finally:
            (top / "closed").chmod(0o700)


def test_what_a_file_says_does_not_act_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A picture's name, a key and a folder's name, with a sequence that clears the screen."""
    changes: tuple[dict[str, Any], ...] = ({"pictures": [{"title": "t", "file": "\x1b[2J.png"}]}, {"\x1b[2J": 1})
    for number, change in enumerate(changes):
        folder = demo.write(Findings("n", "t"), tmp_path / f"\x1b[2J{number}")
        (folder / FILE).write_text(json.dumps({**json.loads((folder / FILE).read_text()), **change}))
        assert call(monkeypatch, "report", str(folder), "--out", str(tmp_path / "page.html")) == 2
        said = capsys.readouterr().err
        assert "\x1b" not in said
        assert "\\x1b[2J" in said
