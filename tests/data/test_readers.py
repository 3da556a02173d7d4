"""Readers of the original formats, on small files that the tests write."""

import gzip
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


def test_cifar10(tmp_path: Path) -> None:
    pixels = originals.write_cifar10(tmp_path, each=3)
    raw = readers.read_cifar10(paths(tmp_path))
    np.testing.assert_array_equal(raw.inputs, pixels[:15].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(raw.test_inputs, pixels[15:].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(raw.targets[:6], [0, 1, 2, 1, 2, 3])
    np.testing.assert_array_equal(raw.test_targets, [5, 6, 7])


def test_svhn_has_ten_for_zero(tmp_path: Path) -> None:
    pixels = originals.write_svhn(tmp_path, train=12, test=4)
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


def test_radioml(tmp_path: Path) -> None:
    cells = originals.write_radioml(tmp_path)
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
    "svhn": (lambda folder: originals.write_svhn(folder), readers.read_svhn),
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
        ({}, "no table"),
    ]:
        file.write_bytes(originals.radioml_pickle(cells))
        with pytest.raises(UserError, match=message):
            readers.read_radioml({file.name: file})
