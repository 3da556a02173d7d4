"""Pickles are read without running what is in them."""

import os
import pickle
import zlib
from pathlib import Path

import joblib
import numpy as np
import pytest
from originals import python2_array

from d2dfl.data.pickles import load_joblib_table, load_pickle
from d2dfl.errors import UserError


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_refused(tmp_path: Path, protocol: int) -> None:
    file, mark = tmp_path / "evil.pkl", tmp_path / "it ran"
    file.write_bytes(pickle.dumps({"data": Evil(mark)}, protocol=protocol))
    with pytest.raises(UserError, match=r"evil.pkl is not the dataset .* it asks for .*mkdir"):
        load_pickle(file)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["builtins eval", "builtins getattr", "numpy load", "numpy.core.multiarray scalar"])
def test_only_four_names_are_known(tmp_path: Path, name: str) -> None:
    file = tmp_path / "odd.pkl"
    file.write_bytes(b"c%s\n%s\n." % tuple(part.encode() for part in name.split()))
    with pytest.raises(UserError, match="it asks for"):
        load_pickle(file)


def test_no_decompressor_hides_behind_a_text_encoding(tmp_path: Path) -> None:
    file = tmp_path / "bomb.pkl"
    file.write_bytes(b"c_codecs\nencode\n(Vabc\nVzlib\ntR.")
    with pytest.raises(UserError, match="encoding 'zlib' is not allowed"):
        load_pickle(file)


@pytest.mark.parametrize("kind", ["u1", "<f4", "<f8", ">i2"])
def test_arrays_of_python_2_and_3_come_back(tmp_path: Path, kind: str) -> None:
    array = np.random.default_rng(0).integers(0, 200, (3, 4, 5)).astype(kind)
    (tmp_path / "old").write_bytes(b"(dS'x'\n" + python2_array(array) + b"s.")
    np.testing.assert_array_equal(load_pickle(tmp_path / "old")["x"], array)
    for protocol in (0, 1, 2, 3, 4):
        content = pickle.dumps({"x": array}, protocol=protocol)
        (tmp_path / "new").write_bytes(
            content.replace(b"numpy._core.multi", b"numpy.core.multi") if protocol < 4 else content
        )
        np.testing.assert_array_equal(load_pickle(tmp_path / "new")["x"], array)


def test_damaged_pickles_are_one_sentence(tmp_path: Path) -> None:
    whole = b"(dS'x'\n" + python2_array(np.arange(50.0)) + b"s."
    file = tmp_path / "cut.pkl"
    for length in [*range(0, len(whole), 37), 1, 5, len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"cut.pkl is not the dataset it should be"):
            load_pickle(file)
    with pytest.raises(UserError, match="there is no file"):
        load_pickle(tmp_path / "missing.pkl")


@pytest.mark.parametrize("order", ["C", "F"])
def test_joblib_tables_come_back(tmp_path: Path, order: str) -> None:
    table = np.asarray(np.random.default_rng(1).normal(size=(7, 9)), order=order)
    joblib.dump(table, tmp_path / "table.pkz", compress=6)
    np.testing.assert_array_equal(load_joblib_table(tmp_path / "table.pkz"), table)


def test_joblib_tables_of_older_versions_have_no_padding(tmp_path: Path) -> None:
    table = np.arange(6.0).reshape(2, 3)
    state = {"subclass": np.ndarray, "shape": (2, 3), "order": "C", "dtype": table.dtype, "allow_mmap": True}
    (tmp_path / "old.pkz").write_bytes(zlib.compress(_record(state) + table.tobytes() + b"."))
    np.testing.assert_array_equal(load_joblib_table(tmp_path / "old.pkz"), table)


def _record(state: dict[str, object]) -> bytes:
    """The opcodes that joblib writes in front of an array's bytes."""
    head = b"\x80\x03cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81"
    return head + pickle.dumps(state, protocol=3)[2:-1] + b"b"


def test_joblib_cannot_smuggle_objects(tmp_path: Path) -> None:
    file, mark = tmp_path / "evil.pkz", tmp_path / "it ran"
    joblib.dump(np.array([Evil(mark)], dtype=object), file, compress=3)
    with pytest.raises(UserError, match="other than numbers in an array"):
        load_joblib_table(file)
    joblib.dump(Evil(mark), file, compress=3)
    with pytest.raises(UserError, match="it asks for"):
        load_joblib_table(file)
    joblib.dump([1, 2], file, compress=3)
    with pytest.raises(UserError, match="does not hold one array"):
        load_joblib_table(file)
    assert not mark.exists()


def test_damaged_joblib_files_are_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "cut.pkz"
    joblib.dump(np.arange(90.0).reshape(10, 9), file, compress=6)
    whole, content = file.read_bytes(), zlib.decompress(file.read_bytes())
    damaged = [whole[:length] for length in (0, 10, len(whole) // 2, len(whole) - 1)]
    damaged += [zlib.compress(content[:length]) for length in (5, 100, 300, len(content) - 1)]
    for part in damaged:
        file.write_bytes(part)
        with pytest.raises(UserError, match=r"cut.pkz is not the dataset it should be"):
            load_joblib_table(file)
