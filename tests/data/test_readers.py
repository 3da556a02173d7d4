"""Readers of the original formats, on small files that the tests write."""

import bz2
import gzip
import os
import pickle
import re
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import originals
import pytest
from scipy.io import savemat

from d2dfl.data import readers
from d2dfl.errors import UserError


def paths(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("packed", [True, False])
def test_fashion(tmp_path: Path, packed: bool) -> None:
    arrays = originals.write_fmnist(tmp_path, packed=packed)
    raw = readers.read_fashion(paths(tmp_path))
    np.testing.assert_array_equal(raw.inputs[:, 0], arrays[originals.FASHION[0]])
    np.testing.assert_array_equal(raw.targets, arrays[originals.FASHION[1]])
    np.testing.assert_array_equal(raw.test_targets, arrays[originals.FASHION[3]])
    assert raw.test_inputs is not None
    assert raw.test_inputs.shape == (12, 1, 28, 28)


@pytest.mark.parametrize("protocol", [None, -1, *range(6)])
def test_cifar10(tmp_path: Path, protocol: int | None) -> None:
    pixels = originals.write_cifar10(tmp_path, each=3, protocol=protocol)
    raw = readers.read_cifar10(paths(tmp_path))
    np.testing.assert_array_equal(raw.inputs, pixels[:15].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(raw.test_inputs, pixels[15:].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(raw.targets[:6], [0, 1, 2, 1, 2, 3])
    np.testing.assert_array_equal(raw.test_targets, [5, 6, 7])


@pytest.mark.parametrize("packed", [True, False])
def test_svhn_has_ten_for_zero(tmp_path: Path, packed: bool) -> None:
    pixels = originals.write_svhn(tmp_path, train=12, test=4, packed=packed)
    raw = readers.read_svhn(paths(tmp_path))
    np.testing.assert_array_equal(raw.inputs[7, 2, 5, 9], pixels[5, 9, 2, 7])
    np.testing.assert_array_equal(raw.targets, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2])
    np.testing.assert_array_equal(raw.test_targets, [3, 4, 5, 6])


@pytest.mark.parametrize("libsvm", [True, False])
def test_usps(tmp_path: Path, libsvm: bool) -> None:
    values = originals.write_usps(tmp_path, rows=12, libsvm=libsvm)
    raw = readers.read_usps(paths(tmp_path))
    np.testing.assert_allclose(raw.inputs.reshape(12, 256), values[:12], atol=1e-6)
    np.testing.assert_array_equal(raw.targets, np.arange(12) % 10)
    np.testing.assert_array_equal(raw.test_targets, np.arange(12, 24) % 10)


@pytest.mark.parametrize("form", ["pkz", "data"])
def test_california_is_as_scikit_learn_defines_it(tmp_path: Path, form: str) -> None:
    table = originals.write_california(tmp_path, form)
    raw = readers.read_california(paths(tmp_path))
    longitude, latitude, age, rooms, bedrooms, people, homes, income, value = table[3]
    expected = [income, age, rooms / homes, bedrooms / homes, people, people / homes, latitude, longitude]
    np.testing.assert_allclose(raw.inputs[3], expected)
    assert raw.targets[3] == pytest.approx(value / 100_000)


@pytest.mark.parametrize("protocol", range(-1, 6))
def test_radioml(tmp_path: Path, protocol: int) -> None:
    cells = originals.write_radioml(tmp_path, protocol=protocol)
    raw = readers.read_radioml(paths(tmp_path))
    assert raw.snr_db is not None
    assert raw.inputs.shape == (30, 2, 128)
    for (modulation, snr), signals in cells.items():
        at = (raw.targets == readers.MODULATIONS.index(modulation)) & (raw.snr_db == snr)
        np.testing.assert_array_equal(raw.inputs[at], signals)


READERS = {
    "fmnist": (lambda folder: originals.write_fmnist(folder), readers.read_fashion),
    "fmnist unpacked": (lambda folder: originals.write_fmnist(folder, packed=False), readers.read_fashion),
    "cifar10": (lambda folder: originals.write_cifar10(folder), readers.read_cifar10),
    "cifar10 of Python 3": (lambda folder: originals.write_cifar10(folder, protocol=4), readers.read_cifar10),
    "svhn": (lambda folder: originals.write_svhn(folder), readers.read_svhn),
    "svhn unpacked": (lambda folder: originals.write_svhn(folder, packed=False), readers.read_svhn),
    "usps": (lambda folder: originals.write_usps(folder), readers.read_usps),
    "usps zip": (lambda folder: originals.write_usps(folder, libsvm=False), readers.read_usps),
    "california": (lambda folder: originals.write_california(folder, "pkz"), readers.read_california),
    "california text": (lambda folder: originals.write_california(folder, "data"), readers.read_california),
    "radioml": (lambda folder: originals.write_radioml(folder), readers.read_radioml),
}
DAMAGES = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "another file": lambda content: b"<html>404 not found</html>\n" * 20,
    "zeros": lambda content: bytes(len(content)),
}


# A text that ends early can still be a table; there the number of rows tells (test_datasets).
CASES = [(name, damage) for name in READERS for damage in DAMAGES if "text" not in name or "short" not in damage]


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damaged_files_are_one_sentence_that_names_them(tmp_path: Path, name: str, damage: str) -> None:
    write, read = READERS[name]
    write(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        path.write_bytes(DAMAGES[damage](whole))
        with pytest.raises(UserError) as caught:
            read(paths(tmp_path))
        assert path.name in str(caught.value)
        assert "\n" not in str(caught.value)
        path.write_bytes(whole)
    read(paths(tmp_path))  # all are whole again: the sentences above were about the damage


def test_labels_and_shapes_that_cannot_be(tmp_path: Path) -> None:
    originals.write_svhn(tmp_path)
    savemat(tmp_path / "test_32x32.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [11]])})
    with pytest.raises(UserError, match="labels from 1 to 11: they must be from 1 to 10"):
        readers.read_svhn(paths(tmp_path))
    savemat(tmp_path / "test_32x32.mat", {"X": np.zeros((28, 28, 3, 2), np.uint8), "y": np.array([[1], [2]])})
    with pytest.raises(UserError, match="no 'X' of 32 x 32 x 3"):
        readers.read_svhn(paths(tmp_path))
    savemat(tmp_path / "test_32x32.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1]])})
    with pytest.raises(UserError, match="2 datapoints and 1 labels"):
        readers.read_svhn(paths(tmp_path))
    batch = originals.cifar_batch(np.zeros((2, 3072), np.uint8), [1])
    (tmp_path / "test_batch").write_bytes(batch)
    with pytest.raises(UserError, match="test_batch has 2 datapoints and 1 labels"):
        readers._cifar_batch(tmp_path / "test_batch")
    (tmp_path / "images.gz").write_bytes(gzip.compress(originals.idx(np.zeros(5, np.uint8))))
    with pytest.raises(UserError, match="does not hold images"):
        readers.read_idx_pair(tmp_path / "images.gz", tmp_path / "images.gz")


def test_radioml_with_unknown_entries(tmp_path: Path) -> None:
    file = tmp_path / "RML2016.10a_dict.pkl"
    good = np.zeros((2, 2, 128), np.float32)
    for cells, message in [
        ({("FSK9", 2): good}, "an entry"),
        ({("QPSK", 2): good[:, :1]}, "QPSK at 2 dB is not an array of 2 x 128"),
        ({("QPSK", 101): good}, "an entry \\('QPSK', 101\\)"),
        ({("QPSK", 2**62): good}, "an entry"),
        ({}, "no table"),
    ]:
        file.write_bytes(originals.radioml_pickle(cells))
        with pytest.raises(UserError, match=message):
            readers.read_radioml({file.name: file})


@pytest.mark.parametrize(
    "cells",
    [
        {("QPSK", True): np.zeros((2, 2, 128), np.float32)},
        {("QPSK", 2, 2): np.zeros((2, 2, 128), np.float32)},
        {"QPSK": np.zeros((2, 2, 128), np.float32)},
        {("QPSK", 2): [1.0]},
        {("QPSK", 2): np.zeros((2, 2, 128), np.int64)},
        {("QPSK", 2): np.float64(1.0).tolist()},
        ["QPSK"],
    ],
)
def test_radioml_of_another_form(tmp_path: Path, cells: object) -> None:
    file = tmp_path / "RML2016.10a_dict.pkl"
    file.write_bytes(pickle.dumps(cells))
    with pytest.raises(UserError, match="is not RadioML 2016.10a"):
        readers.read_radioml({file.name: file})


@pytest.mark.parametrize("labels", [["1", "2"], [True, False], [1.0, 2.0], "12", None, [1, None], [b"1", 2], (1, 2)])
def test_labels_are_whole_numbers_and_nothing_like_them(tmp_path: Path, labels: object) -> None:
    batch = {"data": np.zeros((2, 3072), np.uint8), "labels": labels}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch, protocol=4))
    with pytest.raises(UserError, match="test_batch has no labels that are whole numbers"):
        readers._cifar_batch(tmp_path / "test_batch")


@pytest.mark.parametrize("name", READERS)
def test_pipes_and_folders_in_place_of_files_are_refused(tmp_path: Path, name: str) -> None:
    write, read = READERS[name]
    write(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        found = paths(tmp_path)
        whole = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(UserError, match=f"{re.escape(path.name)}' is a pipe"):
            read(found)
        path.unlink()
        path.mkdir()
        with pytest.raises(UserError, match=f"{re.escape(path.name)}' is a folder"):
            read(found)
        path.rmdir()
        path.write_bytes(whole)


BOMBS = {
    "fmnist": ("LARGEST_IDX", "holds more than 262,144"),
    "svhn": ("LARGEST_MAT", "holds more than any such file"),
    "usps": ("LARGEST_TEXT", "holds more than 262,144"),
    "usps zip": ("LARGEST_TEXT", "holds more than 262,144"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    limit, message = BOMBS[name]
    monkeypatch.setattr(readers, limit, 1 << 18)
    write, read = READERS[name]
    write(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        whole, zeros = path.read_bytes(), bytes(1 << 23)
        packers = {".gz": gzip.compress, ".bz2": bz2.compress}
        squeezed = zlib.compress(zeros)
        mat = whole[:128] + struct.pack("<II", 15, len(squeezed)) + squeezed
        path.write_bytes(packers[path.suffix](zeros) if path.suffix in packers else mat)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        try:
            with pytest.raises(UserError, match=message):
                read(paths(tmp_path))
            assert tracemalloc.get_traced_memory()[1] - before < 1 << 23
        finally:
            tracemalloc.stop()
        path.write_bytes(whole)


def test_texts_of_too_many_rows_or_columns(tmp_path: Path) -> None:
    for name in ("zip.train.gz", "usps.bz2"):
        path = tmp_path / name
        packer = gzip.compress if path.suffix == ".gz" else bz2.compress
        read = readers._zip_digits if path.suffix == ".gz" else lambda path: readers._libsvm(path, 256)
        path.write_bytes(packer(b"1\n" * 100_001))
        with pytest.raises(UserError, match="has 100,001 rows: it may have 100,000"):
            read(path)
        path.write_bytes(packer(b" ".join([b"1"] * 100_000)))
        with pytest.raises(UserError, match="a row of 199,999 characters"):
            read(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"# only a comment\n", b" \x0b \n", b"1,2\n1\n", b"\xff\xfe", b"1,2,a", b"\0" * 50, b'"1"'],
)
def test_texts_that_are_no_tables(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cal_housing.data").write_bytes(content)
    with pytest.raises(UserError, match="cal_housing.data is damaged: it is not a table of numbers"):
        readers.read_california(paths(tmp_path))


@pytest.mark.parametrize("shape", [(2**31, 2**31, 4), (2**32 - 1, 0, 28), (2**16,) * 4, ()])
def test_idx_files_that_claim_too_much(tmp_path: Path, shape: tuple[int, ...]) -> None:
    head = b"\0\0\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
    (tmp_path / "images").write_bytes(head)
    with pytest.raises(UserError, match="images is cut short or damaged: it announces"):
        readers.read_idx(tmp_path / "images")
