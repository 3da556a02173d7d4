"""Frames are read by the names of their rows and columns, whatever their order; names that do not fit are refused."""

from typing import Any

import numpy as np
import pytest

from d2dfl import Network, ShareResult, UserError, share
from d2dfl.network.frames import by_device

ROWS = 240
DRAWS = np.random.default_rng(0)
Y = DRAWS.integers(0, 3, ROWS)
X = DRAWS.normal(size=(ROWS, 4)) + 2 * np.eye(4)[Y]
NAMES = ["attic", "cellar", "hall", "kitchen"]
DEVICE = np.array(NAMES)[(Y + (DRAWS.random(ROWS) < 0.2)) % 4]
LINKS = DRAWS.uniform(0.0, 0.3, (4, 4))
TRUST = DRAWS.random((4, 4, 3)) < 0.6


class Table:
    """As much of a frame of pandas as is looked at."""

    def __init__(self, values: Any, index: Any = None, columns: Any = None) -> None:
        self.values = np.asarray(values)
        self.index = range(len(self.values)) if index is None else index
        self.columns = range(self.values.shape[1]) if columns is None else columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self) -> int:
        return len(self.values)


class Rowless(Table):
    """As much of a frame of polars."""

    index = None

    def __init__(self, values: Any, columns: Any) -> None:
        self.values, self.columns = np.asarray(values), columns


def mixed(values: Any, rows: tuple[int, ...] = (2, 0, 3, 1), columns: tuple[int, ...] = (1, 3, 2, 0)) -> Table:
    """The same values with rows and columns in another order."""
    return Table(np.asarray(values)[np.ix_(rows, columns)], [NAMES[n] for n in rows], [NAMES[n] for n in columns])


def shared(**changes: Any) -> ShareResult:
    return share(X, Y, DEVICE, **{"links": LINKS, "trust": TRUST, "method": "closest", **changes})


def same(one: ShareResult, other: ShareResult) -> bool:
    return one.graph.edges == other.graph.edges and all(
        np.array_equal(one.rows[name], other.rows[name]) for name in NAMES
    )


def test_links_power_and_trust_are_found_by_name() -> None:
    holes = np.where(np.eye(4, dtype=bool), np.nan, LINKS)  # what a device loses to itself is nobody's business
    assert same(shared(links=mixed(holes)), shared())
    power = DRAWS.uniform(0.1, 1.0, (4, 4))
    assert same(shared(links=None, rss=mixed(power)), shared(links=None, rss=power))
    plain, by_name = shared(trust=TRUST[..., 0]), shared(trust=mixed(TRUST[..., 0]))
    assert same(plain, by_name)
    assert not same(plain, shared())
    by_class = {label: mixed(TRUST[..., label]) for label in (2, 0, 1)}
    assert same(shared(trust=by_class), shared())
    assert same(shared(trust={str(label): TRUST[..., label] for label in range(3)}), shared())


def test_a_row_goes_to_nobody_who_was_not_trusted() -> None:
    """Only the kitchen trusts anybody, and only the attic."""
    table = np.zeros((4, 4))
    table[0, 3] = 1
    result = shared(links=np.zeros((4, 4)), trust=mixed(table))
    assert {(a, b) for b, part in result.received.items() for a, rows in part.items() if len(rows)} == {
        ("kitchen", "attic")
    }


def test_frames_without_names_are_read_by_place() -> None:
    assert same(shared(links=Table(LINKS)), shared())
    assert same(shared(links=Rowless(LINKS, [f"column_{n}" for n in range(4)])), shared())
    dealt = share(X, Y, links=mixed(LINKS), method="closest")
    assert dealt.names == ("hall", "attic", "kitchen", "cellar")
    numbers = Table([[0, 1], [2, 3]], [7, 5], [5, 7])
    assert by_device("links", numbers, [5, 7]).tolist() == [[2, 3], [0, 1]]


def test_a_network_of_frames_has_one_order() -> None:
    given: dict[str, Any] = {"counts": Table(np.ones((4, 2)), NAMES, ["cat", "dog"]), "threshold": np.ones((4, 2))}
    given |= {"trust": np.ones((4, 4, 2)), "drop": Table(LINKS, NAMES, NAMES)}
    assert Network.from_arrays(**given).devices == 4
    for name, other in (("drop", mixed(LINKS)), ("drop", Table(LINKS, NAMES, NAMES[::-1]))):
        with pytest.raises(
            UserError, match=f"the rows of counts and the .* of {name} name devices in different orders"
        ):
            Network.from_arrays(**given | {name: other})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trust": Table(TRUST[..., 0], [*NAMES[:3], "shed"], NAMES)}, "trust has the row 'shed', which is no device"),
        ({"trust": Table(TRUST[..., 0], NAMES, [*NAMES[:3], "shed"])}, "trust has the column 'shed', which is no dev"),
        ({"trust": Table(TRUST[:3, :, 0], NAMES[:3], NAMES)}, "trust has no row for the device kitchen"),
        ({"trust": Table(TRUST[..., 0], [*NAMES[:3], "hall"], NAMES)}, "trust has two of the row 'hall'"),
        ({"links": Table(LINKS, [*NAMES[:3], "shed"], [*NAMES[:3], "shed"])}, "links has the row 'shed'"),
        ({"links": Table(LINKS, NAMES)}, "links names only its rows"),
        ({"links": Table(LINKS, None, NAMES)}, "links names only its columns"),
        ({"links": Rowless(LINKS, NAMES)}, "links names only its columns"),
        ({"links": None, "rss": Table(LINKS, [*NAMES[:3], "shed"], NAMES)}, "rss has the row 'shed'"),
        ({"trust": [Table(TRUST[..., 0])] * 3}, "trust is a list of frames: give a dictionary"),
        ({"trust": {0: TRUST[..., 0], 1: TRUST[..., 1]}}, "trust has no table for the class 2"),
        ({"trust": {0: TRUST[..., 0], 1: TRUST[..., 1], "cat": LINKS}}, "trust has the class 'cat', which is no class"),
        ({"trust": {0: TRUST[..., 0], 1: TRUST[..., 1], 2: [1]}}, "trust has tables of the shape"),
        ({"trust": {0: LINKS}, "paradigm": "unsupervised"}, "the data has no classes"),
    ],
)
def test_names_that_do_not_fit_are_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        shared(**changes)
    assert "\n" not in str(caught.value)
