"""Readers of the datasets' original files: files in, plain arrays out, anything odd is one clear sentence."""

import bz2
import gzip
import struct
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.pickles import load_joblib_table, load_pickle
from d2dfl.errors import UserError

Paths = Mapping[str, Path]  # file name as published -> where it is
MODULATIONS = ("8PSK", "AM-DSB", "AM-SSB", "BPSK", "CPFSK", "GFSK", "PAM4", "QAM16", "QAM64", "QPSK", "WBFM")


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
    content = _unzip(path)
    # Two zero bytes, 8 for unsigned bytes, the number of dimensions, each dimension as a big-endian number.
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise UserError(f"{path} is not an idx file of bytes: its first bytes are wrong")
    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
    if values.size != np.prod(shape, dtype=np.int64):
        raise UserError(f"{path} is cut short or damaged: it announces {shape} and holds {values.size} bytes")
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
    content = load_pickle(path)
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
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns about what it then fails on, or about text in the header
            content = loadmat(path, variable_names=["X", "y"])
    except Exception:  # SciPy's reader fails in many ways on a damaged file
        raise UserError(f"{path} cannot be read as a MATLAB file: it is damaged or cut short") from None
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

    try:
        with bz2.open(path) as file:
            table, labels = load_svmlight_file(file, n_features=features, dtype=np.float32, zero_based=False)
    except (OSError, EOFError, ValueError, OverflowError):
        raise UserError(f"{path} is damaged or not a LIBSVM file of {features} features") from None
    return table.toarray(), _whole_numbers(path, labels) - 1


def _zip_digits(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    table = _text_table(path, _unzip(path), 257, None)
    return table[:, 1:].astype(np.float32), _whole_numbers(path, table[:, 0])


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
        table = _text_table(path, _unzip(path), 9, ",")
        longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    if not np.all(households > 0):
        raise UserError(f"{path} is damaged: it has a block without households")
    per_household = [rooms / households, bedrooms / households]
    features = [income, age, *per_household, population, population / households, latitude, longitude]
    return Raw(np.stack(features, axis=1), value / 100_000.0)


def read_radioml(paths: Paths) -> Raw:
    """RadioML 2016.10a: one pickle, {(modulation, SNR): [n, 2, 128]}."""
    path = paths["RML2016.10a_dict.pkl"]
    cells = load_pickle(path)
    if not isinstance(cells, dict) or not cells:
        raise UserError(f"{path} is not RadioML 2016.10a: it holds no table by modulation and SNR")
    inputs, targets, ratios = [], [], []
    for key in sorted(cells, key=str):
        signals = cells[key]
        if not (isinstance(key, tuple) and len(key) == 2 and key[0] in MODULATIONS and isinstance(key[1], int)):
            raise UserError(f"{path} is not RadioML 2016.10a: it has an entry {str(key)[:40]!r}")
        if not isinstance(signals, np.ndarray) or signals.dtype.kind != "f" or signals.shape[1:] != (2, 128):
            raise UserError(
                f"{path} is not RadioML 2016.10a: {key[0]} at {key[1]} dB is not an array of 2 x 128 numbers"
            )
        inputs.append(signals.astype(np.float32, copy=False))
        targets.append(np.full(len(signals), MODULATIONS.index(key[0]), dtype=np.int64))
        ratios.append(np.full(len(signals), key[1], dtype=np.int64))
    return Raw(np.concatenate(inputs), np.concatenate(targets), snr_db=np.concatenate(ratios))


def _unzip(path: Path) -> bytes:
    """The bytes of a file, gunzipped if its name ends in .gz."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise UserError(f"{path} is damaged or cut short: it does not gunzip") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _text_table(path: Path, content: bytes, columns: int, delimiter: str | None) -> NDArray[np.float64]:
    try:
        lines = content.decode("ascii").split("\n")
        table = np.loadtxt(lines, delimiter=delimiter, ndmin=2) if content.strip() else np.zeros((0, 0))
    except ValueError:  # UnicodeDecodeError is one
        raise UserError(f"{path} is damaged: it is not a table of numbers") from None
    if table.shape[1] != columns:
        raise UserError(f"{path} has {table.shape[1]} columns instead of {columns}")
    return np.asarray(table)


def _whole_numbers(path: Path, labels: Sequence[int] | NDArray[Any] | None) -> NDArray[np.int64]:
    try:
        values = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros((0, 0))
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values != np.round(values)):
        raise UserError(f"{path} has no labels that are whole numbers")
    return values.astype(np.int64)


def _same_length(path: Path, inputs: NDArray[Any], labels: NDArray[Any]) -> None:
    if labels.ndim != 1 or len(inputs) != len(labels):
        raise UserError(f"{path} has {len(inputs)} datapoints and {labels.size} labels")
