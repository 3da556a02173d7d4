"""Files and arrays about networks that others made: each is a network or one sentence, and costs no more than it holds."""

import gzip
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from attack import network_files
from d2dfl import METHODS, Network, UserError, discover, preset
from d2dfl.data.arrays import read_npy
from d2dfl.network.files import load_network, save_network
from d2dfl.network.power_files import read_csv


def refused(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments, **named)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    good, sentences = 0, []
    for _, path, reader in network_files.mutated(13, 600, tmp_path):
        try:
            reader(path)
            good += 1
        except UserError as error:
            sentences.append(str(error))
        path.unlink()
    assert good > 40  # some harm does not matter
    assert len(sentences) > 300
    assert not [sentence for sentence in sentences if "\n" in sentence or len(sentence) > 500]


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def test_a_header_that_claims_more_than_there_is(tmp_path: Path) -> None:
    file = tmp_path / "trust.npy"
    file.write_bytes(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999999), }", b"12345678"))
    assert "8 bytes of data where its header says" in refused(read_npy, file)
    file.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{")
    assert "header of 2,147,483,648 bytes" in refused(read_npy, file)
    file.write_bytes(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04N."))
    assert "'|O'" in refused(read_npy, file)
    for header in ("", "(" * 4000, "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} 1"):
        file.write_bytes(npy(header, bytes(8)))
        refused(read_npy, file)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["?", "i1", "<u2", ">i4", "i8", "f2", ">f4", "f8"])
def test_whatever_numpy_writes_comes_back(tmp_path: Path, kind: str, order: Literal["C", "F"]) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4) % 2, dtype=kind, order=order)
    np.save(tmp_path / "a.npy", array)
    again = read_npy(tmp_path / "a.npy")
    assert again.dtype == array.dtype
    assert (again == array).all()
    np.save(tmp_path / "a.npy", np.zeros((0, 3)))
    assert read_npy(tmp_path / "a.npy").shape == (0, 3)
    np.save(tmp_path / "a.npy", np.float64(3))
    assert read_npy(tmp_path / "a.npy") == 3


def archive(path: Path, method: int = zipfile.ZIP_DEFLATED, **changes: Any) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, array in {**network_files.good(), **changes}.items():
            content = io.BytesIO()
            np.save(content, array)
            file.writestr(f"{name}.npy", content.getvalue())
    return path


def patched(path: Path, offset: int, layout: str, value: int) -> Path:
    """Change a field of the first entry of an archive's directory."""
    content = bytearray(path.read_bytes())
    struct.pack_into(layout, content, content.find(b"PK\x01\x02") + offset, value)
    path.write_bytes(content)
    return path


def test_archives_that_lie(tmp_path: Path) -> None:
    file = tmp_path / "net.npz"
    assert load_network(archive(file)).devices == network_files.DEVICES
    assert "encrypted" in refused(load_network, patched(archive(file), 8, "<H", 1))
    assert "another way than deflate" in refused(load_network, patched(archive(file), 10, "<H", 9))
    assert "another way than deflate" in refused(load_network, archive(file, zipfile.ZIP_LZMA))
    assert "more than it can hold" in refused(load_network, patched(archive(file), 24, "<I", 2**31))
    assert "bytes of data where its header says" in refused(load_network, patched(archive(file), 24, "<I", 20_000))
    with zipfile.ZipFile(archive(file), "a") as twice, pytest.warns(UserWarning, match="Duplicate name"):
        twice.writestr("counts.npy", b"")
    assert "counts twice" in refused(load_network, file)
    broken = bytearray(archive(file).read_bytes())
    broken[broken.find(b"\x93NUMPY") if b"\x93NUMPY" in broken else 60] ^= 255
    file.write_bytes(broken)
    assert "not a whole .npz archive" in refused(load_network, file)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    file = archive(tmp_path / "net.npz")
    for place in range(file.read_bytes().count(b"PK\x01\x02")):  # every member claims 1 GiB of a ratio that may be
        content = bytearray(file.read_bytes())
        at = -1
        for _ in range(place + 1):
            at = content.find(b"PK\x01\x02", at + 1)
        struct.pack_into("<II", content, at + 20, 2**30, 2**32 - 2)
        file.write_bytes(content)
    assert "it may hold" in refused(load_network, file)


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    for name, reader in (
        ("p.npz", load_network),
        ("p.json", load_network),
        ("p.csv", read_csv),
        ("p.csv.gz", read_csv),
    ):
        os.mkfifo(tmp_path / name)
        assert "is a pipe" in refused(reader, tmp_path / name)
    os.mkfifo(tmp_path / "p.npy")
    settings = preset("best").with_(**{"network.trust": str(tmp_path / "p.npy")})
    assert "is a pipe" in refused(Network.generate, settings)


def arrays(**changes: Any) -> dict[str, Any]:
    given = {**network_files.good(), "format": None, **changes}  # only files have a format
    return {name: value for name, value in given.items() if value is not None}


COUNTS = network_files.good()["counts"]
ODD = {
    "texts": (COUNTS.astype(str), "texts"),
    "a text in a row": ([["1", 2, 3]] * 4, "'1', which is a text"),
    "complex": (COUNTS + 1j, "complex"),
    "a complex number in a row": ([[1j, 2, 3]] * 4, "complex"),
    "nothing": ([[None, 2, 3]] * 4, "None, which is nothing"),
    "truths": (COUNTS > 1, "true or false"),
    "a truth in a row": ([[True, 2, 3]] * 4, "True, which is true or false"),
    "ragged": ([[1, 2, 3], [1], [1], [1]], "equally long rows"),
    "too large an integer": ([[10**30, 2, 3]] * 4, "100 bits"),
    "far too large an integer": ([[10**4999, 2.5, 3]] * 4, "counts"),
    "dates": (COUNTS.astype("M8[s]"), "dates"),
    "void": (np.zeros((4, 3), dtype="V8"), "something other"),
    "fields": (np.zeros((4, 3), dtype=[("a", float)]), "something other"),
    "an object": ({"a": 1}, "something other"),
    "a long double": (np.full((4, 3), np.finfo(np.longdouble).max), "counts"),
    "much": (np.full((4, 3), 1e16), "from 0 to 1e+15"),
    "very much": (np.full((4, 3), 1e308), "from 0 to 1e+15"),
}


@pytest.mark.parametrize("kind", ODD)
def test_only_numbers_are_numbers(kind: str) -> None:
    value, reason = ODD[kind]
    assert reason in refused(Network.from_arrays, **arrays(counts=value))


@pytest.mark.parametrize("name", ["threshold", "positions", "budget", "drop"])
def test_finite_numbers_that_are_too_large(name: str) -> None:
    value = np.asarray(network_files.good()[name]).copy()
    value.flat[1] = 1e308
    assert name in refused(Network.from_arrays, **arrays(**{name: value}))
    assert "rss" in refused(Network.from_arrays, **arrays(drop=None, rss=np.full((4, 4), 1e308)))


def test_cluster_numbers_are_checked_before_they_are_counted() -> None:
    for wrong in (2**31 - 1, 2**31, 4, -1, 1e300):
        assert "cluster" in refused(Network.from_arrays, **arrays(cluster=[0, 0, 0, wrong], budget=None))
    assert "without a gap" in refused(Network.from_arrays, **arrays(cluster=[0, 0, 0, 3], budget=None))


def test_json_files_of_all_kinds(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    good = {name: value.tolist() for name, value in network_files.good().items()}
    file.write_text(json.dumps(good))
    assert load_network(file).devices == 4
    for content, reason in (
        (json.dumps(good)[:-1] + ', "counts": [[1]]}', "stands twice"),
        (json.dumps(good).replace("[", "[" + "9" * 5000 + ",", 1), "JSON"),
        ('{"counts":' + "[" * 100_000, "nested too deeply"),
        (json.dumps({**good, "counts": [["1"] * 3] * 4}), "a text"),
        (json.dumps({**good, "x" * 9999: 1}), "which no network has"),
    ):
        file.write_text(content)
        assert reason in refused(load_network, file)


def test_tables_of_received_power(tmp_path: Path) -> None:
    file, packed = tmp_path / "rss.csv", tmp_path / "rss.csv.gz"
    file.write_bytes(b"\xef\xbb\xbfnan,1\n2,inf\n")
    assert read_csv(file).tolist() == [[0, 1], [2, 0]]  # a device's own power is not looked at
    packed.write_bytes(gzip.compress(b"0,1\n2,0\n"))
    assert read_csv(packed).tolist() == [[0, 1], [2, 0]]
    file.write_text("7")
    assert read_csv(file).tolist() == [[0]]
    for content, reason in (
        (b"", "empty"),
        (b"\n \n# only this\n", "empty"),
        (b"1,2,3\n", "1 rows and 3 columns"),
        (b"0,nan\n1,0\n", "nan"),
        (b"0,1e308\n1,0\n", "1e+308"),
        (b"0,x" + b"x" * 10_000 + b"\n1,0\n", "numbers separated by commas"),
        (b"\xff\xfe", "UTF-8"),
    ):
        file.write_bytes(content)
        assert reason in refused(read_csv, file)
        packed.write_bytes(gzip.compress(content))
        assert reason in refused(read_csv, packed)
    whole = gzip.compress(b"0,1\n2,0\n" * 50)
    for content in (whole[:-9], whole[:12], whole[:20] + b"\x00\xff" + whole[22:], b"0,1\n2,0\n", b"", whole + b"more"):
        packed.write_bytes(content)
        refused(read_csv, packed)


def test_arrays_of_any_layout_make_the_same_network() -> None:
    given = arrays()
    other = {name: np.asfortranarray(value).astype(value.dtype.newbyteorder()) for name, value in given.items()}
    for value in other.values():
        value.flags.writeable = False
    one, two = Network.from_arrays(**given), Network.from_arrays(**other)
    for name in ("counts", "threshold", "trust", "drop", "candidates", "cluster", "budget", "positions"):
        first, second = getattr(one, name), getattr(two, name)
        assert (first == second).all()
        assert second.flags.c_contiguous
        assert second.flags.writeable
        assert second.dtype.isnative


def odd_network(seed: int) -> dict[str, Any]:
    """Arrays at the edges of what is allowed."""
    generator = np.random.default_rng(seed)
    devices, partitions = int(generator.choice([1, 2, 3, 5])), int(generator.choice([1, 2, 4]))
    extremes = [0, 1e-300, 1, 150, 1e15]
    given: dict[str, Any] = {
        "counts": generator.choice(extremes, (devices, partitions)) * generator.integers(2),
        "threshold": generator.choice(extremes, (devices, partitions)),
        "trust": generator.choice([0, 1], (devices, devices, partitions)) * generator.integers(2),
    }
    if generator.random() < 0.5:
        given["drop"] = generator.choice([0, 1, 1 - 1e-16, 1e-300, 0.5], (devices, devices))
    else:
        given["rss"] = generator.choice([0, 5e-324, 1e-300, 1e15, 0.3], (devices, devices)) * generator.integers(2)
    if generator.random() < 0.3:
        cluster = np.unique(generator.integers(0, devices, devices), return_inverse=True)[1]
        given |= {"cluster": cluster, "budget": generator.choice([0, 1e-300, 1, 1e30], cluster.max() + 1)}
    if generator.random() < 0.3:
        size = generator.choice([0, 1e-8, 1, 1e14])
        root = generator.normal(size=(devices, partitions, 2, 1)) * size
        given |= {
            "centroids": generator.normal(size=(devices, partitions, 2)) * size,
            "covariances": root @ np.swapaxes(root, 2, 3),
            "request": generator.choice(extremes, devices),
        }
    return given


def test_flat_clusters_without_datapoints_have_a_shape_too() -> None:
    flat = np.full((4, 3, 2, 2), 1e20)
    given = arrays(counts=np.zeros((4, 3)), centroids=np.zeros((4, 3, 2)), covariances=flat, request=np.ones(4))
    found = discover(Network.from_arrays(**given), preset("best"), method="closest")
    assert np.isfinite(found.evaluation.objective)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "gcn"])
def test_odd_networks_are_discovered(method: str, tmp_path: Path) -> None:
    config = preset("best").with_(
        **{"discovery.edges": 2, "qlearning.steps": 10, "bandit.steps": 10, "marginal.messages": 20},
        **{"optimum.starts": 2, "optimum.sweeps": 5, "optimum.messages": 10, "optimum.nodes": 100},
    )
    for seed in range(60):
        network = Network.from_arrays(**odd_network(seed))
        found = discover(network, config, seed=seed, method=method)
        after = found.evaluation.counts_after
        assert np.isfinite(found.evaluation.objective)
        assert np.isfinite(after).all()
        assert (after >= 0).all()
        if seed % 10 == 0:
            save_network(network, tmp_path / "net.npz")
            assert load_network(tmp_path / "net.npz").devices == network.devices


def test_a_header_of_nothing_but_digits_is_refused_at_once(tmp_path: Path) -> None:
    text = b"{'shape': (" + b"1" * 3000 + b"x"
    (tmp_path / "evil.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(UserError, match="numpy.save"):
        read_npy(tmp_path / "evil.npy")


def test_a_truth_value_is_0_or_1(tmp_path: Path) -> None:
    np.save(tmp_path / "trust.npy", np.array([True, False, True]))
    content = (tmp_path / "trust.npy").read_bytes()
    (tmp_path / "trust.npy").write_bytes(content[:-3] + b"\x02\x00\xff")
    assert read_npy(tmp_path / "trust.npy").view(np.uint8).tolist() == [1, 0, 1]


def test_an_archive_of_too_many_members_is_refused_before_they_are_listed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number}.npy", b"")
    assert "too many members" in refused(load_network, tmp_path / "many.npz")
