"""Small datasets in the formats of the original distributions, written by the tests."""

import bz2
import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path

import joblib
import numpy as np
from scipy.io import savemat

FASHION = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def python2_array(array: np.ndarray) -> bytes:
    """An array as Python 2's pickle wrote it, in the text protocol that RadioML has."""
    kind = array.dtype.str[1:].encode()
    order = array.dtype.str[:1].encode()
    shape = b"".join(b"I%d\n" % size for size in array.shape)
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(" + shape + b"t"
        b"cnumpy\ndtype\n(S'" + kind + b"'\nI0\nI1\ntR(I3\nS'" + order + b"'\nNNNI-1\nI-1\nI0\ntbI00\n"
        b"S" + repr(array.tobytes())[1:].encode() + b"\ntb"
    )


def python2_binary_array(array: np.ndarray) -> bytes:
    """The same in the binary protocol that CIFAR-10 has."""
    kind, order = array.dtype.str[1:].encode(), array.dtype.str[:1].encode()
    shape = b"(" + b"".join(b"J" + struct.pack("<i", size) for size in array.shape) + b"t"
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\t(K\x01"
        + shape
        + b"cnumpy\ndtype\nq\nU\x02"
        + kind
        + b"K\x00K\x01\x87Rq\x0b(K\x03U\x01"
        + order
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<I", array.nbytes)
        + array.tobytes()
        + b"tb"
    )


def write_fmnist(folder: Path, train: int = 30, test: int = 12, packed: bool = True) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {
        FASHION[0]: rng.integers(0, 256, (train, 28, 28)),
        FASHION[1]: np.arange(train) % 10,
        FASHION[2]: rng.integers(0, 256, (test, 28, 28)),
        FASHION[3]: np.arange(test) % 10,
    }
    for name, array in arrays.items():
        content = idx(array.astype(np.uint8))
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)
    return arrays


def cifar_batch(pixels: np.ndarray, labels: list[int]) -> bytes:
    items = b"".join(b"I%d\na" % label for label in labels)
    return b"(dS'data'\n" + python2_array(pixels) + b"sS'labels'\n(l" + items + b"sS'batch_label'\nS'a batch'\ns."


def cifar_batch_2(pixels: np.ndarray, labels: list[int]) -> bytes:
    """A batch as it is published: protocol 2 of Python 2."""
    names = b"".join(b"U\x05%05dr%s" % (number, struct.pack("<I", 14 + number)) for number in range(len(labels)))
    return (
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x07a batchq\x03U\x06labelsq\x04]q\x05("
        + b"".join(b"K" + bytes([label]) for label in labels)
        + b"eU\x04dataq\x06"
        + python2_binary_array(pixels)
        + b"U\tfilenamesq\x0c]q\x0d("
        + names
        + b"eu."
    )


def write_cifar10(folder: Path, each: int = 10, protocol: int | None = None) -> np.ndarray:
    """Without a protocol: as published. Else as Python 3 writes the same content; -1: Python 2's text protocol."""
    pixels = np.random.default_rng(1).integers(0, 256, (6 * each, 3072)).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        name = f"data_batch_{number + 1}" if number < 5 else "test_batch"
        part = pixels[number * each : (number + 1) * each]
        labels = [(number + i) % 10 for i in range(each)]
        if protocol is None:
            content = cifar_batch_2(part, labels)
        elif protocol < 0:
            content = cifar_batch(part, labels)
        else:
            content = pickle.dumps({"data": part, "labels": labels, "batch_label": "a batch"}, protocol=protocol)
        (folder / name).write_bytes(content)
    return pixels


def write_svhn(folder: Path, train: int = 20, test: int = 10, packed: bool = True) -> np.ndarray:
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (32, 32, 3, train + test)).astype(np.uint8)
    labels = (np.arange(train + test) % 10 + 1).astype(np.uint8)[:, None]
    savemat(folder / "train_32x32.mat", {"X": pixels[..., :train], "y": labels[:train]}, do_compression=packed)
    savemat(folder / "test_32x32.mat", {"X": pixels[..., train:], "y": labels[train:]}, do_compression=packed)
    return pixels


def write_usps(folder: Path, rows: int = 20, libsvm: bool = True) -> np.ndarray:
    values = np.random.default_rng(3).uniform(-1, 1, (2 * rows, 256)).round(4)
    for number, name in enumerate(("usps.bz2", "usps.t.bz2") if libsvm else ("zip.train.gz", "zip.test.gz")):
        lines = []
        for row in range(number * rows, (number + 1) * rows):
            if libsvm:
                pairs = " ".join(f"{i + 1}:{value:.6f}" for i, value in enumerate(values[row]))
                lines.append(f"{row % 10 + 1} {pairs} \n")
            else:
                lines.append(f"{row % 10:.4f} " + " ".join(f"{value:.4f}" for value in values[row]) + " \n")
        content = "".join(lines).encode()
        (folder / name).write_bytes(bz2.compress(content) if libsvm else gzip.compress(content))
    return values


def housing(rows: int = 50) -> np.ndarray:
    """Columns in the order of the original text file: longitude, latitude, ..., income, value."""
    return np.random.default_rng(4).uniform(1, 100, (rows, 9)).round(3)


def write_california(folder: Path, form: str, rows: int = 50) -> np.ndarray:
    table = housing(rows)
    text = "\n".join(",".join(f"{value:.6f}" for value in row) for row in table).encode()
    if form == "pkz":
        joblib.dump(table[:, [8, 7, 2, 3, 4, 5, 6, 1, 0]], folder / "cal_housing_py3.pkz", compress=6)
    elif form == "data":
        (folder / "cal_housing.data").write_bytes(text)
    else:
        pack(folder / "cal_housing.tgz", {"CaliforniaHousing/cal_housing.data": text})
    return table


def radioml_pickle(cells: dict[tuple[str, int], np.ndarray]) -> bytes:
    entries = b"".join(
        b"(S'%s'\nI%d\nt%ss" % (modulation.encode(), snr, python2_array(array))
        for (modulation, snr), array in cells.items()
    )
    return b"(d" + entries + b"."


def write_radioml(folder: Path, each: int = 5, protocol: int = -1) -> dict[tuple[str, int], np.ndarray]:
    """As Python 3 writes it in a protocol; -1: Python 2's text protocol, as published."""
    rng = np.random.default_rng(5)
    keys = [(modulation, snr) for modulation in ("QPSK", "BPSK", "AM-SSB") for snr in (-2, 10)]
    cells = {key: rng.normal(size=(each, 2, 128)).astype(np.float32) for key in keys}
    content = radioml_pickle(cells) if protocol < 0 else pickle.dumps(cells, protocol=protocol)
    (folder / "RML2016.10a_dict.pkl").write_bytes(content)
    return cells


def pack(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w:bz2") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
