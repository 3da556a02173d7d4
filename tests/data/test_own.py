"""Whatever a user brings becomes the same arrays, or is refused in one sentence that names the argument."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Subset, TensorDataset

from d2dfl import UserError
from d2dfl.data.own import OwnData, own_data

ROWS = 40
DRAWS = np.random.default_rng(0)
CLASSES = DRAWS.integers(0, 3, ROWS)
X = DRAWS.normal(size=(ROWS, 4))
DEVICE = np.arange(ROWS) % 4
LABELS = np.array(["cat", "dog", "emu"])[CLASSES]


class Frame:
    """As much of a data frame as is looked at: names and columns."""

    def __init__(self, **columns: Any) -> None:
        self.held = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return self.held[name]


class Hub:
    """As much of a dataset of Hugging Face as is looked at."""

    def __init__(self, columns: dict[str, Any], names: list[str] | None = None) -> None:
        self.held, self.column_names = columns, list(columns)
        self.features = {"label": type("ClassLabel", (), {"names": names})()}

    def with_format(self, kind: str) -> "Hub":
        assert kind == "numpy"
        return self

    def __getitem__(self, which: Any) -> Any:
        return self.held


class Named(TorchDataset[dict[str, Any]]):
    """A dataset whose items are dictionaries, and which says how they are called; nothing else of a table."""

    column_names = ("x", "label", "who")

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, place: int) -> dict[str, Any]:
        return {"x": X[place], "label": int(CLASSES[place]), "who": int(DEVICE[place])}


class Pairs(TorchDataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        return torch.tensor(X[place]), int(CLASSES[place])


def frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


SAME: dict[str, Callable[[], OwnData]] = {
    "arrays": lambda: own_data(X, CLASSES, DEVICE),
    "lists": lambda: own_data(X.tolist(), CLASSES.tolist(), DEVICE.tolist()),
    "lists of arrays": lambda: own_data(list(X), list(CLASSES), list(DEVICE)),
    "read-only": lambda: own_data(frozen(X), frozen(CLASSES), frozen(DEVICE)),
    "objects": lambda: own_data(X.astype(object), CLASSES.astype(object), DEVICE.astype(object)),
    "columns of one": lambda: own_data(X, CLASSES[:, None], DEVICE[:, None]),
    "whole floats as devices": lambda: own_data(X, CLASSES, DEVICE.astype(np.float64)),
    "tensors": lambda: own_data(torch.tensor(X, requires_grad=True), torch.tensor(CLASSES), torch.tensor(DEVICE)),
    "dictionary": lambda: own_data({"x": X, "y": CLASSES, "d": DEVICE}, "y", "d"),
    "frame": lambda: own_data(Frame(**{f"c{n}": X[:, n] for n in range(4)}, y=CLASSES, d=DEVICE), "y", "d"),
    "items with names": lambda: own_data(Named(), "label", "who"),
    "frame and array": lambda: own_data(Frame(x=X, d=DEVICE), CLASSES, "d"),
    "torch pairs": lambda: own_data(Pairs(), device=DEVICE),
    "torch tensors": lambda: own_data(TensorDataset(torch.tensor(X), torch.tensor(CLASSES)), device=DEVICE),
    "torch subset": lambda: own_data(Subset(Pairs(), range(ROWS)), device=DEVICE),
    "torch inputs alone": lambda: own_data(TensorDataset(torch.tensor(X)), CLASSES, DEVICE),
    "sparse": lambda: own_data(csr_matrix(X), CLASSES, DEVICE),
    "hub": lambda: own_data(Hub({"x": X, "label": CLASSES, "d": DEVICE}), "label", "d"),
}


@pytest.mark.parametrize("name", SAME)
def test_all_forms_hold_the_same(name: str) -> None:
    found = SAME[name]()
    np.testing.assert_allclose(found.inputs, X)
    assert found.targets.tolist() == CLASSES.tolist()
    assert found.class_names == ("0", "1", "2")
    assert found.owners is not None
    assert found.owners.tolist() == DEVICE.tolist()
    assert found.devices == (0, 1, 2, 3)


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(object), LABELS.astype(np.bytes_), LABELS.tolist()])
def test_labels_may_be_text(labels: Any) -> None:
    found = own_data(X, labels, DEVICE)
    assert found.class_names == ("cat", "dog", "emu")
    assert found.targets.tolist() == CLASSES.tolist()


def test_labels_need_not_count_from_zero() -> None:
    found = own_data(X, CLASSES * 10 - 7, DEVICE)
    assert found.class_names == ("-7", "3", "13")
    assert found.targets.tolist() == CLASSES.tolist()
    named = own_data(Hub({"x": X, "label": CLASSES, "d": DEVICE}, ["a", "b", "c"]), "label", "d")
    assert named.class_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("shape", "kind", "dtype", "laid_out"),
    [
        ((ROWS,), "table", np.float64, (1,)),
        ((ROWS, 5), "table", np.uint8, (5,)),
        ((ROWS, 9, 7), "image", np.uint8, (1, 9, 7)),
        ((ROWS, 3, 7), "image", np.uint8, (1, 3, 7)),
        ((ROWS, 28, 28), "image", np.float32, (1, 28, 28)),
        ((ROWS, 2, 128), "signal", np.float32, (2, 128)),
        ((ROWS, 9, 7, 3), "image", np.uint8, (3, 9, 7)),
        ((ROWS, 3, 9, 7), "image", np.float32, (3, 9, 7)),
        ((ROWS, 9, 7, 1), "image", np.float32, (1, 9, 7)),
        ((ROWS, 3, 9, 3), "image", np.uint8, (3, 3, 9)),  # channels last, as image files have them
        ((ROWS, 3, 9, 3), "image", np.float32, (3, 9, 3)),  # channels first, as tensors have them
    ],
)
def test_channels_come_first(shape: tuple[int, ...], kind: str, dtype: Any, laid_out: tuple[int, ...]) -> None:
    values = (100 * DRAWS.random(shape)).astype(dtype)
    found = own_data(values, CLASSES, DEVICE)
    assert (found.kind, found.inputs.shape[1:]) == (kind, laid_out)
    assert np.sort(found.inputs.ravel()).tolist() == np.sort(values.ravel()).tolist()
    if laid_out == (3, 9, 7) and dtype == np.uint8:
        assert (found.inputs[5, 2] == values[5, :, :, 2]).all()
    assert own_data(values, CLASSES, DEVICE, kind="table").inputs.shape == (ROWS, int(np.prod(shape[1:])))


def test_numbers_with_a_point_are_a_regression() -> None:
    prices = 3e5 + 1e5 * DRAWS.random(ROWS)
    found = own_data(X, prices, DEVICE)
    assert found.class_names == ()
    dataset = found.dataset(tested=False)
    assert dataset.train_targets.std() == pytest.approx(1.0, rel=1e-3)
    assert "divided by" in dataset.note
    np.testing.assert_allclose(
        dataset.train_targets * prices.astype(np.float32).std() + prices.mean(), prices, rtol=1e-4
    )
    assert own_data(X, np.arange(ROWS), DEVICE, learning="numbers").class_names == ()
    assert own_data(X, CLASSES.astype(float), DEVICE, learning="classes").class_names == ("0", "1", "2")


def test_devices_by_number_and_by_name() -> None:
    assert own_data(X, CLASSES, DEVICE * 100 + 7).devices == (7, 107, 207, 307)
    with_empty = own_data(X, CLASSES, DEVICE, devices=6)
    assert with_empty.devices == tuple(range(6))
    owners = with_empty.dataset(tested=False).owners
    assert owners is not None
    assert [len(held) for held in owners.holdings] == [10, 10, 10, 10, 0, 0]
    names = own_data(X, CLASSES, [f"d{n}" for n in DEVICE], devices=["d3", "nobody", "d2", "d1", "d0"])
    assert names.owners is not None
    assert names.owners.tolist() == (np.array([4, 3, 2, 0])[DEVICE]).tolist()
    from_one = own_data(X, CLASSES, DEVICE + 1, devices=4)  # 1 to 4, four of them: in their order
    assert from_one.owners is not None
    assert from_one.owners.tolist() == DEVICE.tolist()


def test_a_fifth_is_kept_for_tests_and_no_device_loses_its_only_row() -> None:
    device = np.where(np.arange(ROWS) == 3, 9, DEVICE)
    found = own_data(X, CLASSES, device)
    dataset = found.dataset()
    assert dataset.owners is not None
    assert dataset.rows is not None
    assert len(dataset.test_inputs) == 8
    assert 3 in dataset.rows
    for number, held in enumerate(dataset.owners.holdings):
        assert set(device[dataset.rows[held]]) == {[0, 1, 2, 3, 9][number]}
    assert sorted(np.concatenate(dataset.owners.holdings)) == list(range(32))
    assert dataset.train_targets.tolist() == CLASSES[dataset.rows].tolist()
    whole = found.dataset(tested=False)
    assert len(whole.train_inputs) == ROWS
    assert len(whole.test_inputs) == 0
    given = own_data(X, LABELS, DEVICE, test=(X[:6], LABELS[:6])).dataset()
    assert len(given.train_inputs) == ROWS
    assert given.test_targets.tolist() == CLASSES[:6].tolist()
    np.testing.assert_allclose(given.test_inputs, given.train_inputs[:6])


def test_users_arrays_are_not_changed() -> None:
    inputs, targets = X.astype(np.float32), CLASSES.copy()
    own_data(inputs, targets, DEVICE).dataset()
    assert (inputs == X.astype(np.float32)).all()
    assert (targets == CLASSES).all()


class Endless:
    def __iter__(self) -> Any:
        return iter([1])


holed = X.copy()
holed[7, 2] = np.nan
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("X holds NaN or infinity in row 7", (holed, CLASSES, DEVICE), {}),
    ("X holds None|X holds nothing in row 0", (np.full((ROWS, 2), None), CLASSES, DEVICE), {}),
    ("X holds text, such as a", (np.array([["a"]] * ROWS), CLASSES, DEVICE), {}),
    ("X holds complex", (X + 1j, CLASSES, DEVICE), {}),
    ("X holds dates", (np.zeros((ROWS, 1), "M8[s]"), CLASSES, DEVICE), {}),
    ("X holds values beyond a billion", (1e12 * X, CLASSES, DEVICE), {}),
    ("X is not a regular array", ([[1, 2], [3]], [0, 1], [0, 1]), {}),
    ("X has the shape", (X[:0], CLASSES[:0], DEVICE[:0]), {}),
    ("X has the shape", (np.zeros((ROWS, 1, 2, 2, 2)), CLASSES, DEVICE), {}),
    ("X has masked values", (np.ma.masked_greater(X, 1.0), CLASSES, DEVICE), {}),
    ("X is an int", (3, CLASSES, DEVICE), {}),
    ("X is None", (None, CLASSES, DEVICE), {}),
    ("X is a str", ("data", CLASSES, DEVICE), {}),
    ("X is an Endless", (Endless(), CLASSES, DEVICE), {}),
    ("X has two columns 'a'", (type("F", (), {"columns": ["a", "a", "y"]})(), "y", DEVICE), {}),
    ("X, column 'b', holds text", (Frame(a=X[:, 0], b=["u"] * ROWS), CLASSES, DEVICE), {}),
    ("X has the column 'b' of shape", (Frame(a=X[:, 0], b=X), CLASSES, DEVICE), {}),
    ("X has no columns beside", (Frame(y=CLASSES), "y", DEVICE), {}),
    ("X has no rows", (TensorDataset(torch.zeros(0, 2), torch.zeros(0)),), {}),
    ("items are not pairs", (TensorDataset(torch.tensor(X)),), {}),
    ("y is missing", (X,), {}),
    ("y is missing: name the column", (Frame(a=X[:, 0]),), {}),
    ("y names the column 'label', and X has no columns", (X, "label", DEVICE), {}),
    ("y names the column 'label', which X does not have", (Frame(a=X[:, 0]), "label"), {}),
    ("y has 39 values and X 40 rows", (X, CLASSES[:-1], DEVICE), {}),
    ("y has the shape", (X, np.eye(3)[CLASSES], DEVICE), {}),
    ("y holds no label in row 2", (X, ["a", "b", None, *["a"] * (ROWS - 3)], DEVICE), {}),
    ("y holds NaN or infinity in row 0", (X, np.full(ROWS, np.nan), DEVICE), {}),
    ("y holds one class only, 0", (X, np.zeros(ROWS, int), DEVICE), {}),
    ("y holds one number only", (X, np.ones(ROWS), DEVICE), {}),
    ("y holds values of the type datetime", (X, np.zeros(ROWS, "M8[s]"), DEVICE), {}),
    ("y holds numbers with a point", (X, CLASSES + 0.5, DEVICE), {"learning": "classes"}),
    ("y holds 3,000 classes", (np.zeros((3000, 1)), np.arange(3000), np.zeros(3000, int)), {}),
    ("device has the shape", (X, CLASSES, DEVICE[:-1]), {}),
    ("device names nobody in row 0", (X, CLASSES, [None, *["a"] * (ROWS - 1)]), {}),
    ("device holds numbers with a point", (X, CLASSES, DEVICE + 0.5), {}),
    ("device names 4, such as 3, and devices says 3", (X, CLASSES, DEVICE), {"devices": 3}),
    ("device names 3, which devices does not have: it has 0, 1, 2", (X, CLASSES, DEVICE), {"devices": [0, 1, 2]}),
    ("devices names 1 twice", (X, CLASSES, DEVICE), {"devices": [0, 1, 1]}),
    ("devices cannot be 0", (X, CLASSES, DEVICE), {"devices": 0}),
    ("device holds text and numbers, such as '1' and 1", (X, CLASSES, [1, "1"] * (ROWS // 2)), {}),
    ("y holds text and numbers, such as '1' and 1", (X, [1, "1"] * (ROWS // 2), DEVICE), {}),
    ("such as '1' and 0: give", (X, CLASSES, [np.int64(0), "1"] * (ROWS // 2)), {}),
    ("device holds text and numbers", (X, CLASSES, np.array([1, "1"] * (ROWS // 2), dtype=object)), {}),
    ("devices holds text and numbers", (X, CLASSES, DEVICE), {"devices": [0, 1, 2, 3, "1"]}),
    ("X, column 'b', holds 'u' in row 1", (Frame(a=X[:, 0], b=["1.5", "u"] * (ROWS // 2)), CLASSES, DEVICE), {}),
    ("kind cannot be 'film'", (X, CLASSES, DEVICE), {"kind": "film"}),
    ("test is no pair", (X, CLASSES, DEVICE), {"test": X}),
    ("the test part has inputs of the shape", (X, CLASSES, DEVICE), {"test": (X[:3, :2], CLASSES[:3])}),
    ("the test part has the label '7'", (X, CLASSES, DEVICE), {"test": (X[:1], [7])}),
    ("the test part has the label '0.7', which y does not have", (X, CLASSES, DEVICE), {"test": (X[:2], [1.0, 0.7])}),
    ("the test part has the label 'nan', which y does not have", (X, CLASSES, DEVICE), {"test": (X[:1], [np.nan])}),
]


@pytest.mark.parametrize(
    ("says", "given", "named"), REFUSED, ids=[f"{n}-{case[0][:30]}" for n, case in enumerate(REFUSED)]
)
def test_what_cannot_be_is_one_sentence(says: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=says) as caught:
        own_data(*given, **named)
    assert "\n" not in str(caught.value)


class Index(list[int]):
    def equals(self, other: "Index") -> bool:
        return self == other


class Indexed:
    """As much of a column of pandas as is looked at here."""

    def __init__(self, values: Any, index: list[int]) -> None:
        self.values, self.index = values, Index(index)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.asarray(self.values)


class IndexedFrame(Frame):
    def __init__(self, index: list[int], **columns: Any) -> None:
        super().__init__(**columns)
        self.index = Index(index)

    def __len__(self) -> int:
        return len(self.index)


def test_columns_whose_index_names_other_rows_are_not_paired_by_place() -> None:
    order = list(range(ROWS))
    frame = IndexedFrame(order, a=X[:, 0])
    own_data(frame, Indexed(CLASSES, order), Indexed(DEVICE, order))
    for y, device, name in (
        (Indexed(CLASSES, order[::-1]), DEVICE, "y"),
        (CLASSES, Indexed(DEVICE, order[::-1]), "device"),
    ):
        with pytest.raises(UserError, match=rf"^{name} has another index than X: give {name}.loc\[X.index\]"):
            own_data(frame, y, device)
    own_data(X, Indexed(CLASSES, order[::-1]), DEVICE)  # an array has no index: by place


def test_too_few_rows_for_a_test_part() -> None:
    with pytest.raises(UserError, match="too few to keep some for tests"):
        own_data(X[:4], [0, 1, 0, 1], [0, 0, 1, 1]).dataset()
