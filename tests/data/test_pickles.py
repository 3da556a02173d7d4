"""Pickles are read without running what is in them."""

import os
import pickle
import tracemalloc
import zlib
from pathlib import Path

import joblib
import numpy as np
import pytest
from originals import python2_array, python2_binary_array

from d2dfl.data import opcodes
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


@pytest.mark.parametrize(
    "name",
    [
        "builtins eval",
        "builtins getattr",
        "numpy load",
        "numpy.core.multiarray scalar",
        "joblib.numpy_pickle NumpyArrayWrapper",
    ],
)
def test_only_a_few_names_are_known(tmp_path: Path, name: str) -> None:
    file = tmp_path / "odd.pkl"
    file.write_bytes(b"c%s\n%s\n." % tuple(part.encode() for part in name.split()))
    with pytest.raises(UserError, match="it asks for"):
        load_pickle(file)


def test_no_decompressor_hides_behind_a_text_encoding(tmp_path: Path) -> None:
    file = tmp_path / "bomb.pkl"
    file.write_bytes(b"c_codecs\nencode\n(Vabc\nVzlib\ntR.")
    with pytest.raises(UserError, match="encoding 'zlib' is not allowed"):
        load_pickle(file)


KINDS = [
    "u1",
    "i1",
    "?",
    *(order + kind for kind in ("i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8") for order in "<>"),
]


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_python_2_and_3_come_back(tmp_path: Path, kind: str, layout: str) -> None:
    array = np.random.default_rng(0).integers(0, 200, (3, 4, 5)).astype(kind)
    (tmp_path / "old").write_bytes(b"(dS'x'\n" + python2_array(array) + b"s.")
    np.testing.assert_array_equal(load_pickle(tmp_path / "old")["x"], array)
    (tmp_path / "cifar").write_bytes(b"\x80\x02" + python2_binary_array(array) + b".")
    np.testing.assert_array_equal(load_pickle(tmp_path / "cifar"), array)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        content = pickle.dumps({"x": np.asarray(array, order=layout)}, protocol=protocol)
        for module in (b"numpy._core.multi", b"numpy.core.multi"):  # NumPy 2 and 1
            if protocol < 4 or module in content:
                (tmp_path / "new").write_bytes(content.replace(b"numpy._core.multi", module))
            found = load_pickle(tmp_path / "new")["x"]
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_back(tmp_path: Path, protocol: int) -> None:
    value = {
        "numbers": [0, 1, -1, 255, 256, 65536, -(2**31), 2**31, 2**63 - 1, -(2**63), 1.5, -0.25],
        "texts": ["", "a", "ä\\n\n", "€", "x" * 300, b"", b"\0\xff", b"y" * 300],
        "others": (None, True, False, (1, "a"), ()),
        ("QPSK", -20): "same",
        ("QAM64", 18): "same",
        7: [],
        b"bytes": "more",
    }
    (tmp_path / "a").write_bytes(pickle.dumps(value, protocol=protocol))
    found = load_pickle(tmp_path / "a")
    assert found == value
    assert [type(item) for item in found["numbers"]] == [type(item) for item in value["numbers"]]
    assert list(map(type, found["others"])) == list(map(type, value["others"]))


ODD_ARRAYS = [
    np.zeros(2, dtype=[("a", "O"), ("b", "u1")]),  # with this, NumPy's own reader takes numbers for pointers
    np.zeros(2, dtype="V16"),
    np.array([None, 1], dtype=object),
    np.zeros(2, dtype=complex),
    np.zeros(2, dtype="U5"),
    np.zeros(2, dtype="M8[s]"),
    np.zeros(2, dtype="f2"),
    np.zeros((0, 5)),
]


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("array", ODD_ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
def test_arrays_of_anything_but_numbers_are_refused(tmp_path: Path, array: np.ndarray, protocol: int) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps({"x": array}, protocol=protocol))
    with pytest.raises(UserError, match="a is not the dataset it should be: it "):
        load_pickle(tmp_path / "a")


def array_program(
    shape: bytes, content: bytes = b"C\x02ab", code: bytes = b"U\x02u1", order: bytes = b"U\x01|"
) -> bytes:
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + b"cnumpy\ndtype\n"
        + code + b"K\x00K\x01\x87R(K\x03" + order + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + content + b"tb."
    )  # fmt: skip


HUGE = b"\x8a\x08" + (2**62).to_bytes(8, "little")
LAUGHS = b"(NNNNNNNNNNt" + b"".join(b"q%c(%st" % (n, b"h%c" % n * 10) for n in range(40)) + b"."
CRAFTED = {
    "a list in itself": (b"]q\0h\0a.", "twice"),
    "a dict in itself": (b"}q\0U\x01ah\0s.", "twice"),
    "a tuple in itself": (b"(]q\0tq\1h\0.", "another way"),
    "a billion laughs": (LAUGHS, "twice"),
    "a doubled value": (b"]2\x86.", "opcode b'2'"),
    "a dict as key": (b"}}NS.".replace(b"S", b"s"), "neither short text nor numbers"),
    "a list as key": (b"}]Ns.", "neither short text nor numbers"),
    "a deep tuple as key": (b"}K\1" + b"\x85" * 20_000 + b"Ns.", "another way"),
    "a deep list": (b"]" * 20_000 + b"a" * 19_999 + b".", "another way"),
    "a deep dict": (b"}U\1a" * 20_000 + b"N" + b"s" * 20_000 + b".", "another way"),
    "a dict in a dict": (b"}U\1a}s.", "another way"),
    "marks without end": (b"(" * 20_000 + b".", "does not hold one value"),
    "too many entries": (b"}(" + b"".join(b"M%sN" % n.to_bytes(2, "little") for n in range(5000)) + b"u.", "4,096 entries"),
    "a key twice": (b"}(K\1NK\1Nu.", "entry 1 twice"),
    "an array twice": (b"}(K\1" + array_program(b"K\2\x85")[:-1] + b"q\0K\2h\0u.", "twice"),
    "a long text twice": (b"(X\0\4\0\0" + b"x" * 1024 + b"q\0h\0t.", "twice"),
    "an array in a list": (b"]" + array_program(b"K\2\x85")[:-1] + b"a.", "another way"),
    "a long whole number": (b"\x8a\x09" + b"\xff" * 9 + b".", "more than 64 bits"),
    "5,000 digits": (b"I" + b"9" * 5000 + b"\n.", "damaged or cut short"),
    "20 digits": (b"I" + b"9" * 19 + b"\n.", "where a whole number should be"),
    "underscores": (b"I1_0\n.", "where a whole number should be"),
    "a text without end": (b"\x8e" + b"\xff" * 8 + b".", "or is damaged"),
    "a text longer than the file": (b"X\xff\xff\xff\x07abc.", "cut short"),
    "a frame longer than the file": (b"\x80\4\x95\xff\0\0\0\0\0\0\0N.", "cut short"),
    "a newer protocol": (b"\x80\x06N.", "protocol 6"),
    "an array that claims more": (array_program(HUGE + b"\x85"), "has 2 bytes"),
    "an array whose size is 0 in 64 bits": (array_program(HUGE + b"K\4\x86", b"C\0"), "has 0 bytes"),
    "a negative size": (array_program(b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86"), "holds nothing"),
    "rows of nothing": (array_program(HUGE + b"K\0\x86", b"C\0"), "holds nothing"),
    "a text as shape": (array_program(b"U\2ab"), "other than numbers"),
    "a shape of texts": (array_program(b"U\2ab\x85"), "shape is not"),
    "9 dimensions": (array_program(b"(" + b"K\1" * 9 + b"t"), "shape is not"),
    "objects": (array_program(b"K\2\x85", code=b"U\1O"), "other than numbers"),
    "no order of bytes": (array_program(b"K\1\x85", code=b"U\2f4"), "other than numbers"),
    "an unfinished type": (b"cnumpy\ndtype\nU\2u1K\0K\1\x87R" + b"N\x85.", "does not hold one"),
    "an unfinished array": (b"}K\1cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87Rs.", "another way"),
    "a call of a number": (b"K\1)R.", "a call that no dataset needs"),
    "a call of a type": (b"cnumpy\nndarray\n)R.", "a call that no dataset needs"),
    "a state of a list": (b"]}b.", "a state that no dataset needs"),
    "characters that are no bytes": (array_program(b"K\2\x85", content=b"X\3\0\0\0\xe2\x82\xac"), "beyond 255"),
    "an unknown escape": (b"S'\\q'\n0.", "opcode b'0'"),
    "a broken escape": (b"S'\\x4'\n.", "broken escape"),
    "one quote": (b"S'\n.", "without quotes"),
    "a name with a line in it": (b"\x8c\4a\nb\n\x8c\1c\x93.", r"asks for 'a\\nb\\n\.c'"),
    "an empty file": (b"", "cut short"),
    "no end": (b"N", "cut short"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_pickles_are_one_sentence(tmp_path: Path, name: str) -> None:
    content, reason = CRAFTED[name]
    (tmp_path / "a").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=f"a is not the dataset it should be: .*{reason}") as caught:
            load_pickle(tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_number_of_opcodes_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"]" + b"Na" * 500 + b".")
    assert load_pickle(tmp_path / "a") == [None] * 500
    monkeypatch.setattr(opcodes, "STEPS", 1000)
    with pytest.raises(UserError, match="more than 1,000 opcodes"):
        load_pickle(tmp_path / "a")


def test_what_is_not_a_plain_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (load_pickle, load_joblib_table):
        with pytest.raises(UserError, match="is a pipe"):
            read(tmp_path / "pipe")
        with pytest.raises(UserError, match="is a folder"):
            read(tmp_path)
    (tmp_path / "a").write_bytes(bytes(100))
    with pytest.raises(UserError, match="has 100 bytes: a pickle may have 99"):
        load_pickle(tmp_path / "a", limit=99)


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


def test_a_joblib_bomb_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "bomb.pkz").write_bytes(zlib.compress(bytes(1 << 26)))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="holds more than 16,777,216 bytes"):
            load_joblib_table(tmp_path / "bomb.pkz")
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shape": (2**40, 2**40)}, "cut short"),
        ({"shape": (-1, 3)}, "holds nothing"),
        ({"order": "K"}, "other than a table"),
        ({"subclass": 1}, "other than a table"),
        ({"dtype": np.dtype("i8")}, "other than a table"),
        ({"dtype": np.dtype("O")}, "other than numbers"),
        ({"numpy_array_alignment_bytes": 200}, "cut short"),
    ],
)
def test_joblib_records_that_claim_too_much(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    state = {"subclass": np.ndarray, "shape": (2, 3), "order": "C", "dtype": np.dtype("f8"), **change}
    (tmp_path / "a.pkz").write_bytes(zlib.compress(_record(state) + b"\xff" + bytes(47) + b"."))
    with pytest.raises(UserError, match=f"a.pkz is not the dataset it should be: .*{reason}"):
        load_joblib_table(tmp_path / "a.pkz")


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
