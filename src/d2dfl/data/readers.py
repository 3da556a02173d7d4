"""Readers of the datasets' original files: files in, plain arrays out, anything odd is one clear sentence.

No reader takes more memory than a few times what the published files need, whatever a file claims.
"""

import io
import math
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.matlab import read_arrays
from d2dfl.data.packed import read_unpacked
from d2dfl.data.pickles import load_joblib_table, load_pickle
from d2dfl.errors import UserError

Paths = Mapping[str, Path]  # file name as published -> where it is
MODULATIONS = ("8PSK", "AM-DSB", "AM-SSB", "BPSK", "CPFSK", "GFSK", "PAM4", "QAM16", "QAM64", "QPSK", "WBFM")
# Bytes that one file may have and unpack to: more than twice what the published ones need, SVHN's excepted.
LARGEST_IDX = 1 << 27  # Fashion-MNIST: 47 million
LARGEST_BATCH = 1 << 27  # CIFAR-10: 31 million, 90 million in the oldest protocol
LARGEST_MAT = 1 << 28  # SVHN: 225 million
LARGEST_TEXT = 1 << 26  # USPS: 26 million
LARGEST_ROWS = 100_000  # of a text; California Housing has 20,640
LARGEST_ENTRY = 40  # characters of a number in a text, and what is around it
LARGEST_LABEL = 1 << 31
LARGEST_SNR_DB = 100


@dataclass(frozen=True)
class Raw:
    """What the files hold, before splitting and scaling. No test part: the set has no split of its own."""

    inputs: NDArray[Any]
    targets: NDArray[Any]
    test_inputs: NDArray[Any] | None = None
    test_targets: NDArray[Any] | None = None
    snr_db: NDArray[np.int64] | None = None  # radio signals: nominal signal-to-noise ratio of each datapoint
    scale: tuple[float, float] = (0.0, 1.0)  # lowest and highest value that an input can have


def read_idx_pair(images: Path, labels: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images [n, 1, rows, columns] and labels [n] from two idx files."""
    pixels, classes = read_idx(images), read_idx(labels)
    _same_length(images, pixels, classes)
    if pixels.ndim != 3:
        raise UserError(f"{images} does not hold images: it has {pixels.ndim} dimensions instead of 3")
    return pixels[:, None], classes


def read_idx(path: Path) -> NDArray[np.uint8]:
    """One idx file of bytes, gzipped or not."""
    content = read_unpacked(path, "an idx file", LARGEST_IDX)
    # Two zero bytes, 8 for unsigned bytes, the number of dimensions, each dimension as a big-endian number.
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise UserError(f"{path} is not an idx file of bytes: its first bytes are wrong")
    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
    if values.size != math.prod(shape) or not values.size:
        raise UserError(f"{path} is cut short or damaged: it announces {shape!s:.80} and holds {values.size} bytes")
    return values.reshape(shape)


def read_fashion(paths: Paths) -> Raw:
    """Fashion-MNIST: four idx files."""
    files = {name.removesuffix(".gz"): path for name, path in paths.items()}
    train = read_idx_pair(files["train-images-idx3-ubyte"], files["train-labels-idx1-ubyte"])
    test = read_idx_pair(files["t10k-images-idx3-ubyte"], files["t10k-labels-idx1-ubyte"])
    return Raw(*train, *test, scale=(0, 255))


def read_cifar10(paths: Paths) -> Raw:
    """CIFAR-10: five training batches and a test batch, each a pickle of rows of 3 x 32 x 32 bytes."""
    train = [_cifar_batch(path) for name, path in sorted(paths.items()) if name.startswith("data_batch")]
    test = _cifar_batch(paths["test_batch"])
    return Raw(np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train]), *test, scale=(0, 255))


def _cifar_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = load_pickle(path, LARGEST_BATCH)
    pixels = content.get("data") if isinstance(content, dict) else None
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3072,):
        raise UserError(f"{path} is not a CIFAR-10 batch: it has no 'data' of rows of 3,072 bytes")
    labels = _whole_numbers(path, content.get("labels"))
    _same_length(path, pixels, labels)
    return pixels.reshape(-1, 3, 32, 32), labels


def read_svhn(paths: Paths) -> Raw:
    """SVHN cropped digits: two MATLAB files, where label 10 is the digit 0."""
    return Raw(*_svhn_part(paths["train_32x32.mat"]), *_svhn_part(paths["test_32x32.mat"]), scale=(0, 255))


def _svhn_part(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = read_arrays(path, ("X", "y"), LARGEST_MAT)
    pixels, labels = content.get("X"), content.get("y")
    if pixels is None or pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:3] != (32, 32, 3):
        raise UserError(f"{path} has no 'X' of 32 x 32 x 3 bytes for each image")
    classes = _whole_numbers(path, None if labels is None else labels.ravel())
    _same_length(path, pixels[0, 0, 0], classes)
    if classes.size and not 1 <= classes.min() <= classes.max() <= 10:
        raise UserError(f"{path} has labels from {classes.min()} to {classes.max()}: they must be from 1 to 10")
    return np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)), classes % 10


def read_usps(paths: Paths) -> Raw:
    """USPS digits: LIBSVM's pair of files (labels 1 to 10), or zip.train and zip.test (labels 0 to 9)."""
    if "usps.bz2" in paths:
        parts = [_libsvm(paths[name], 256) for name in ("usps.bz2", "usps.t.bz2")]
    else:
        parts = [_zip_digits(paths[name]) for name in ("zip.train.gz", "zip.test.gz")]
    (train, train_labels), (test, test_labels) = parts
    return Raw(train.reshape(-1, 1, 16, 16), train_labels, test.reshape(-1, 1, 16, 16), test_labels, scale=(-1, 1))


def _libsvm(path: Path, features: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    from sklearn.datasets import load_svmlight_file

    content = read_unpacked(path, "a LIBSVM file", LARGEST_TEXT)
    _check_rows(path, content, features)
    try:
        table, labels = load_svmlight_file(io.BytesIO(content), n_features=features, dtype=np.float32, zero_based=False)
    except (ValueError, OverflowError, IndexError, TypeError):
        raise UserError(f"{path} is damaged or not a LIBSVM file of {features} features") from None
    return table.toarray(), _whole_numbers(path, labels) - 1


def _zip_digits(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    table = _text_table(path, 257, None)
    return _as_float32(table[:, 1:]), _whole_numbers(path, table[:, 0])


def read_california(paths: Paths) -> Raw:
    """California Housing: 8 features and the house value in 100,000 dollars, as scikit-learn defines them."""
    if "cal_housing_py3.pkz" in paths:
        path = paths["cal_housing_py3.pkz"]
        table = load_joblib_table(path)
        if table.ndim != 2 or table.shape[1] != 9:
            raise UserError(f"{path} does not hold 9 columns")
        value, income, age, rooms, bedrooms, population, households, latitude, longitude = table.T
    else:
        path = paths["cal_housing.data"]
        table = _text_table(path, 9, ",")
        longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    if not np.all(households > 0):
        raise UserError(f"{path} is damaged: it has a block without households")
    with np.errstate(all="ignore"):  # infinities are found with all other values that cannot be
        ratios = [rooms / households, bedrooms / households, population, population / households]
        return Raw(np.stack([income, age, *ratios, latitude, longitude], axis=1), value / 100_000.0)


def read_radioml(paths: Paths) -> Raw:
    """RadioML 2016.10a: one pickle, {(modulation, SNR): [n, 2, 128]}."""
    path = paths["RML2016.10a_dict.pkl"]
    cells = load_pickle(path)
    if not isinstance(cells, dict) or not cells:
        raise UserError(f"{path} is not RadioML 2016.10a: it holds no table by modulation and SNR")
    for key in cells:
        if not _is_cell(key):
            raise UserError(f"{path} is not RadioML 2016.10a: it has an entry {key!r:.80}")
    inputs, targets, ratios = [], [], []
    for key in sorted(cells, key=str):
        signals = cells[key]
        if not isinstance(signals, np.ndarray) or signals.dtype.kind != "f" or signals.shape[1:] != (2, 128):
            raise UserError(
                f"{path} is not RadioML 2016.10a: {key[0]} at {key[1]} dB is not an array of 2 x 128 numbers"
            )
        inputs.append(_as_float32(signals))
        targets.append(np.full(len(signals), MODULATIONS.index(key[0]), dtype=np.int64))
        ratios.append(np.full(len(signals), key[1], dtype=np.int64))
    return Raw(np.concatenate(inputs), np.concatenate(targets), snr_db=np.concatenate(ratios))


def _is_cell(key: Any) -> bool:
    """Whether an entry of RadioML is a modulation and a signal-to-noise ratio."""
    if not (isinstance(key, tuple) and len(key) == 2 and type(key[1]) is int):
        return False
    return key[0] in MODULATIONS and abs(key[1]) <= LARGEST_SNR_DB


def _text_table(path: Path, columns: int, delimiter: str | None) -> NDArray[np.float64]:
    content = read_unpacked(path, "a table of numbers", LARGEST_TEXT)
    _check_rows(path, content, columns)
    try:
        lines = content.decode("ascii").split("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns about a text without numbers
            table = np.loadtxt(lines, delimiter=delimiter, ndmin=2, comments=None)
    except (ValueError, UserWarning):  # UnicodeDecodeError is a ValueError
        raise UserError(f"{path} is damaged: it is not a table of numbers") from None
    if table.shape[1] != columns:
        raise UserError(f"{path} has {table.shape[1]} columns instead of {columns}")
    return np.asarray(table)


def _check_rows(path: Path, content: bytes, columns: int) -> None:
    """Two bytes in a file can be a whole row in memory, and a row a table's worth of columns."""
    if (rows := content.count(b"\n")) > LARGEST_ROWS:
        raise UserError(f"{path} has {rows:,} rows: it may have {LARGEST_ROWS:,}")
    if (longest := max(map(len, content.split(b"\n")))) > columns * LARGEST_ENTRY:
        raise UserError(f"{path} has a row of {longest:,} characters: {columns} numbers do not need so many")


def _as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, and is found later
        return values.astype(np.float32, copy=False)


def _whole_numbers(path: Path, labels: object) -> NDArray[np.int64]:
    if isinstance(labels, list) and all(type(label) is int for label in labels):
        labels = np.array(labels, dtype=np.int64)  # the pickle's numbers have 64 bits
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iuf":
        values = labels.astype(np.float64)
        if np.all(np.abs(values) < LARGEST_LABEL) and np.all(values == np.round(values)):  # NaN is neither
            return values.astype(np.int64)
    raise UserError(f"{path} has no labels that are whole numbers")


def _same_length(path: Path, inputs: NDArray[Any], labels: NDArray[Any]) -> None:
    if labels.ndim != 1 or len(inputs) != len(labels):
        raise UserError(f"{path} has {len(inputs)} datapoints and {labels.size} labels")
