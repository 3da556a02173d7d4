"""What `share` says beside its table: why nobody gets anything, how the data was read, and that something is compiled."""

import logging
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from d2dfl import Network, ShareResult, UserError, discover, preset, share
from d2dfl.compiled import COMPILING, logged
from d2dfl.experiment.findings.comparison import table_of
from d2dfl.experiment.findings.summary import NOTHING_HELD

ROWS = 240
DRAWS = np.random.default_rng(0)
Y = DRAWS.integers(0, 3, ROWS)
X = DRAWS.normal(size=(ROWS, 4)) + 2 * np.eye(4)[Y]
DEVICE = (Y + (DRAWS.random(ROWS) < 0.2)) % 4


def shared(**changes: Any) -> ShareResult:
    given = {"links": np.zeros((4, 4)), "trust": "full", "method": "closest", **changes}
    return share(X, Y, DEVICE, **given)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"links": np.ones((4, 4))}, "4 devices have no link: hears nobody (0, 1, 2, 3)"),
        ({"trust": np.zeros((4, 4))}, "4 devices have no link: is trusted with nothing (0, 1, 2, 3)"),
        (
            {"links": None, "rss": np.full((4, 4), 1e-9)},
            "received power (at most 1e-09) is below the noise (channel.noise_power, 0.02): give both in one unit",
        ),
        ({"config": {"network.threshold": "0"}}, "4 devices have no link: needs nothing (0, 1, 2, 3)"),
    ],
)
def test_why_there_are_no_links(changes: dict[str, Any], says: str) -> None:
    lines = shared(**changes).summary().splitlines()
    assert lines[0] == "closest found 0 links: 0 rows sent, 0 of them lost"
    assert lines[1] == says
    assert says in shared(**changes)._repr_html_()


def test_a_device_that_holds_nothing_is_told_why_it_gets_nothing() -> None:
    result = shared(devices=5, links=np.zeros((5, 5)))
    assert result.summary().splitlines()[-1] == f"1 device has no link: {NOTHING_HELD} (4)"


def test_one_link_carries_and_one_device_wants() -> None:
    device = np.append(np.zeros(ROWS - 1, dtype=int), 1)  # one row alone wants a third of a row of each class
    result = share(X, Y, device, links=np.array([[0, 1], [0.0, 0]]), trust="full", method="closest")
    assert "1 link carries nothing" in result.summary()
    assert "1 device wants less than one row" in result.summary()


def test_settings_by_name() -> None:
    by_name = shared(config={"discovery.edges": 2, "network.threshold": "0.1"}, preset="paper")
    config = preset("paper").with_(**{"discovery.edges": 2, "network.threshold": "0.1"})
    assert by_name.graph.edges == shared(config=config).graph.edges
    assert by_name.discovery.config.discovery.edges == 2
    network = Network.generate(preset("best").with_(**{"network.devices": 6}), 0)
    assert discover(network, {"discovery.edges": 1}, method="closest").config.discovery.edges == 1
    for wrong, says in (
        ({"discovery.edge": 2}, "there is no field"),
        ([2], "config is of the type list"),
        ({2: 3}, "config is"),
    ):
        with pytest.raises(UserError, match=says):
            shared(config=wrong)
        with pytest.raises(UserError, match=says):
            discover(network, wrong, method="closest")  # type: ignore[arg-type]  # that is what is tested


def test_encoders_need_no_labels_to_exchange() -> None:
    given: dict[str, Any] = {
        "links": np.zeros((4, 4)),
        "trust": "full",
        "method": "closest",
        "paradigm": "unsupervised",
    }
    given["config"] = {"partition.clusters": 5}
    result = share(X, device=DEVICE, **given)
    assert result.graph.edges == share(X, Y, DEVICE, **given).graph.edges
    assert sum(len(one.sent) for one in result.transfers) > 0
    with pytest.raises(UserError, match="compare scores encoders by how well labels are told .* give y"):
        result.compare(rounds=1)
    frame = {f"c{n}": X[:, n] for n in range(4)} | {"site": DEVICE}
    assert share(frame, device="site", **given).graph.edges == result.graph.edges
    dealt = share(X, devices=4, **given)
    assert [len(rows) for rows in dealt.before.values()] == [60] * 4
    with pytest.raises(UserError, match="y is missing"):
        share(X, device=DEVICE)


def test_whole_numbers_with_a_point_are_said_to_be_a_regression() -> None:
    note = "y holds whole numbers with a point, which are taken as numbers to predict: for classes give y.astype(int)"
    given: dict[str, Any] = {"device": DEVICE, "method": "closest"}
    assert share(X, Y.astype(float), **given).summary().startswith(note)
    for quiet in (
        share(X, Y + X[:, 0], **given),
        share(X, Y, **given),
        share(X, Y.astype(float), paradigm="regression", **given),
        share(X, Y.astype(float), paradigm="supervised", **given),
    ):
        assert "taken as numbers" not in quiet.summary()


def test_few_test_rows_are_warned_of() -> None:
    few = shared(test=(X[:12], Y[:12]))
    with pytest.warns(UserWarning, match="scores come from 12 test rows, too few to tell methods apart"):
        found = few.compare(rounds=1)
    assert "only 12 test datapoints" in table_of(found).note
    assert "test datapoints" not in table_of(shared(test=(X, Y)).compare(rounds=1)).note


def test_compilation_is_told_once_in_python(caplog: pytest.LogCaptureFixture) -> None:
    from d2dfl import compiled

    with caplog.at_level(logging.WARNING), logged("marginal"):
        while compiled._to_tell:  # what happens when no code was kept
            compiled._to_tell.pop()()
    assert caplog.messages == [COMPILING % "marginal"]
    told: list[str] = []
    with compiled.telling(lambda: told.append("cli")), logged("marginal"):
        assert len(compiled._to_tell) == 1  # whoever is told already is enough


def test_what_was_made_up_is_said() -> None:
    places, trust = "links= was not given", "trust= was not given, so random:0.5 says who may have what"
    assert places not in shared().summary()
    assert "trust=" not in shared().summary()
    assert trust in shared(trust=None).summary()
    both = shared(links=None, trust=None).summary().splitlines()[-1]
    assert places in both
    assert trust in both


def test_one_device_has_nobody_to_hear_and_no_noise_is_blamed() -> None:
    said = share(X, Y, Y * 0, method="closest").summary()
    assert "hears nobody" in said
    assert "noise" not in said


def test_names_that_act_on_a_terminal_or_are_long_keep_the_table_a_table() -> None:
    names = ["two\nlines", "\x1b[31mred", "c" * 100 + "end", "漢字"]
    lines = share(X, Y, np.array(names)[DEVICE], links=np.zeros((4, 4)), trust="full").summary().splitlines()
    assert lines[1].startswith("device")
    assert len(lines) == 6
    assert {cell_len(line) for line in lines[1:]} == {cell_len(lines[1])}
    assert cell_len(lines[1]) < 80
    assert any(line.startswith("\\x1b[31mred ") for line in lines)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"devices": 2.5}, "devices is a float: give how many there are, or a list of their names"),
        ({"devices": "abc"}, "devices is a str"),
        ({"devices": ["a", "a"]}, "devices names 'a' twice"),
        ({"device": np.where(DEVICE == 1, np.inf, DEVICE)}, "device holds numbers with a point"),
        ({"device": np.where(DEVICE == 1, 1e300, DEVICE)}, "device holds numbers with a point"),
        ({"device": DEVICE, "method": ["marginal"]}, "there is no method"),
        (
            {"y": np.where(Y == 1, 1e300, Y), "paradigm": "supervised"},
            'no classes: give labels, or paradigm="regression"',
        ),
        ({"X": {"a": Y, "b": Y}, "y": "b", "device": "b"}, "y and device both name the column 'b': name one for each"),
        ({"device": DEVICE, "links": np.ma.masked_equal(np.zeros((4, 4)), 0)}, "links has masked values"),
    ],
)
def test_odd_arguments_are_one_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        share(**{"X": X, "y": Y, **given})


def test_numbers_that_no_float_can_hold_are_one_sentence() -> None:
    with pytest.raises(UserError, match="X holds NaN or infinity in row 3"):
        share([[1, 10**400 if row == 3 else 1] for row in range(ROWS)], Y, DEVICE)


def test_devices_to_which_rows_are_dealt_keep_their_names() -> None:
    assert share(X, Y, devices=[7, 8, 9], method="closest").names == (7, 8, 9)
    assert len(share(X, Y, devices=np.int64(6), method="closest").names) == 6


def test_rows_show_themselves_in_a_line() -> None:
    result = shared()
    assert repr(result.rows) == str({n: f"{len(rows)} rows" for n, rows in result.rows.items()}).replace("'", "")
    assert "array" not in repr(result.received)
    assert len(repr(result.received)) < 400
