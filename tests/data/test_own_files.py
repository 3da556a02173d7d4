"""Files of a user's own: the same data from every format, and a changed or damaged file is one sentence."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2dfl import Config, UserError
from d2dfl.data.own.files import checksum, is_file, read_own
from d2dfl.experiment.inputs import data_set, pinned

ROWS = 30
DRAWS = np.random.default_rng(1)
X = DRAWS.normal(size=(ROWS, 2)).round(3)
LABELS = np.array(["cat", "dog"])[np.arange(ROWS) % 2]
DEVICE = np.arange(ROWS) % 3


def config_of(path: Path, **changes: Any) -> Config:
    return Config().with_(**{"data.dataset": str(path), **changes})


def npz(path: Path, **changes: Any) -> Path:
    arrays = {"X": X, "y": LABELS, "device": DEVICE, **changes}
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})
    return path


def table(path: Path, separator: str = ",", names: tuple[str, ...] = ("a", "b", "label", "device")) -> Path:
    lines = [separator.join(names)]
    lines += [
        f"{a}{separator}{b}{separator}{y}{separator}site {d}" for (a, b), y, d in zip(X, LABELS, DEVICE, strict=True)
    ]
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_holds_what_npz_holds(tmp_path: Path, separator: str) -> None:
    one = read_own(config_of(npz(tmp_path / "mine.npz")))
    other = read_own(config_of(table(tmp_path / "mine.csv", separator)))
    assert (one.inputs == other.inputs).all()
    assert (one.targets == other.targets).all()
    assert one.class_names == other.class_names == ("cat", "dog")
    assert one.owners is not None
    assert other.owners is not None
    assert (one.owners == other.owners).all()
    assert other.devices == ("site 0", "site 1", "site 2")


def test_columns_have_the_names_that_the_user_says(tmp_path: Path) -> None:
    path = table(tmp_path / "mine.csv", names=("a", "b", "species", "place"))
    found = read_own(config_of(path, **{"data.label": "species", "data.device": "place"}))
    assert found.inputs.shape == (ROWS, 2)
    with pytest.raises(
        UserError, match="has no 'label': name the column with --label-column; it has 'a', 'b', 'species'"
    ):
        read_own(config_of(path))
    with pytest.raises(UserError, match="who holds what: name the column with --device-column, or deal"):
        read_own(config_of(path, **{"data.label": "species"}))


def test_rows_may_be_dealt_out(tmp_path: Path) -> None:
    path = npz(tmp_path / "mine.npz", device=None)
    with pytest.raises(UserError, match="has no 'device'"):
        read_own(config_of(path))
    config = pinned(config_of(path, **{"network.devices": 5}), dealt=True)
    assert data_set(config, 0).owners is None
    assert config.network.devices == 5
    with pytest.raises(UserError, match="leave out --devices"):
        pinned(config_of(npz(tmp_path / "both.npz")), dealt=True)


def test_a_regression_and_a_test_part(tmp_path: Path) -> None:
    prices = DRAWS.random(ROWS)
    path = npz(tmp_path / "mine.npz", y=prices, X_test=X[:5], y_test=prices[:5])
    found = read_own(config_of(path), "numbers")
    assert found.class_names == ()
    assert len(found.dataset().test_inputs) == 5
    assert len(found.dataset().train_inputs) == ROWS
    with pytest.raises(UserError, match="no classes: give labels, or --paradigm regression"):
        read_own(config_of(path))


def test_pinned_says_how_many_devices_and_which_file(tmp_path: Path) -> None:
    path = npz(tmp_path / "mine.npz")
    config = pinned(config_of(path))
    assert (config.network.devices, config.network.partitions) == (3, 2)
    assert config.data.sha256 == checksum(path)
    assert len(data_set(config, 0).train_inputs) == 24
    npz(path, y=LABELS[::-1])
    with pytest.raises(UserError, match="is not the file that the run was made with"):
        data_set(config, 0)


def test_links_and_data_must_have_the_same_devices(tmp_path: Path) -> None:
    links = tmp_path / "links.npz"
    np.savez(links, drop=np.full((5, 5), 0.1))
    config = pinned(config_of(npz(tmp_path / "mine.npz"), **{"network.file": str(links)}))
    assert config.network.devices == 5  # two of them hold nothing
    np.savez(links, drop=np.full((2, 2), 0.1))
    with pytest.raises(UserError, match=r"links.npz has 2 devices and device names 3, such as 2: they must"):
        pinned(config_of(tmp_path / "mine.npz", **{"network.file": str(links)}))
    with pytest.raises(UserError, match="is not the file that the run was made with"):
        pinned(config)


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    texts = {
        "empty.csv": ("", "has no rows"),
        "names.csv": ("a,label,device\n", "has no rows"),
        "twice.csv": ("a,a,label,device\n1,2,x,0\n", "two columns 'a'"),
        "short.csv": ("a,label,device\n1,x,0\n1,x\n", "line 3 has 2 cells and the first 3 names"),
        "alone.csv": ("a,label,device\n1,x,0\n1\n", "line 3 has 1 cell and"),
        "quote.csv": ('a,label,device\n"1,x,0\n', "not readable as CSV"),
        "hole.csv": ("a,label,device\n1,x,0\n,y,1\n", "NaN or infinity in line 3"),
        "blank.csv": ('a,label,device\n\n1,"x\ny",0\n\n2,,0\n', "y holds no label in line 6"),
        "nobody.csv": ("a,label,device\n1,x,0\n\n2,y,\n", "device names nobody in line 4"),
        "text.csv": ("a,b,label,device\n1,u,x,0\n2,v,y,1\n", "column 'b', holds 'u' in line 2"),
        "zero.csv": ("a,label,device\n1,x,0\n2\0,y,1\n", "holds a zero byte in line 3"),
        "nothing.csv": ("label,device\nx,0\ny,1\n", "X has no columns beside those of labels and devices: give"),
        "nolabel.csv": ("a,label,device\n1,x,0\n2,,1\n", "y holds no label in line 3"),
    }
    found = {}
    for name, (text, says) in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        found[name] = (folder / name, says)
    (folder / "bytes.csv").write_bytes(b"a,label\n\xff\xfe,1\n")
    np.savez(folder / "object.npz", X=X, y=LABELS.astype(object), device=DEVICE)
    np.savez(folder / "more.npz", X=X, y=LABELS, device=DEVICE, extra=X)
    np.savez(folder / "none.npz", y=LABELS, device=DEVICE)
    np.savez(folder / "half.npz", X=X, y=LABELS, device=DEVICE, X_test=X)
    (folder / "damaged.npz").write_bytes((folder / "more.npz").read_bytes()[:300])
    return {
        **found,
        "bytes.csv": (folder / "bytes.csv", "not text in UTF-8"),
        "object.npz": (folder / "object.npz", "type '|O'"),
        "more.npz": (folder / "more.npz", "'extra', which no set of data has"),
        "none.npz": (folder / "none.npz", "give X, y and device"),
        "half.npz": (folder / "half.npz", "X_test with y_test or neither"),
        "damaged.npz": (folder / "damaged.npz", "damaged.npz"),
        "missing.npz": (folder / "missing.npz", "there is no file"),
        "missing.parquet": (folder / "missing.parquet", "there is no file"),
    }


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    for name, (path, says) in bad_files(tmp_path).items():
        with pytest.raises(UserError) as caught:
            read_own(config_of(path))
        assert says in str(caught.value), name
        assert str(path) in str(caught.value), name
        assert "\n" not in str(caught.value), name


def test_parquet_needs_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"needs pandas and pyarrow: install them with pip install 'd2dfl\[parquet\]'"):
        read_own(config_of(tmp_path / "mine.parquet"))

    class Pandas:
        @staticmethod
        def read_parquet(path: Path) -> Any:
            columns = {"a": X[:, 0], "b": X[:, 1], "label": LABELS.astype(object), "device": DEVICE}
            frame = type("Frame", (), {"columns": list(columns)})
            series = {
                name: type("Series", (), {"to_numpy": lambda self, held=held: held})() for name, held in columns.items()
            }
            frame.__getitem__ = lambda self, name: series[name]  # type: ignore[attr-defined]  # a frame that is none
            return frame()

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    found = read_own(config_of(tmp_path / "mine.parquet"))
    assert (found.inputs == X).all()
    assert found.class_names == ("cat", "dog")


def test_names_of_datasets_are_no_files() -> None:
    assert not is_file("digits")
    assert is_file("digits.CSV")


def test_the_cell_that_is_no_number_is_blamed(tmp_path: Path) -> None:
    lines = table(tmp_path / "mine.csv").read_text(encoding="utf-8").splitlines()
    lines[8] = "oops," + lines[8].partition(",")[2]
    (tmp_path / "mine.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UserError, match=r"mine.csv: X, column 'a', holds 'oops' in line 9: give numbers"):
        read_own(config_of(tmp_path / "mine.csv"))


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_numbers_of_rows_that_pandas_wrote_are_no_feature(tmp_path: Path, name: str) -> None:
    lines = table(tmp_path / "mine.csv").read_text(encoding="utf-8").splitlines()
    numbered = [f"{name},{lines[0]}".replace("\ufeff", "")] + [f"{n},{line}" for n, line in enumerate(lines[1:])]
    (tmp_path / "numbered.csv").write_text("\n".join(numbered), encoding="utf-8")
    one, other = (read_own(config_of(tmp_path / file)) for file in ("mine.csv", "numbered.csv"))
    assert (one.inputs == other.inputs).all()
    assert one.dataset().note == ""
    assert other.dataset().note == "the first column of numbered.csv has no name and is left out"


def test_a_column_cannot_be_labels_and_devices(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("petal,site\n" + "".join(f"{row},{row % 3}\n" for row in range(30)))
    with pytest.raises(
        UserError, match="'site' is named as the column of labels and of devices: name another with --dev"
    ):
        read_own(config_of(path, **{"data.label": "site", "data.device": "site"}))
