"""Aggregations: each scheme's matrix by hand with unequal weights, and what all have in common."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from d2dfl import UserError
from d2dfl.config import FederationConfig
from d2dfl.federation.mixing import Mixing, mixing_of
from d2dfl.federation.schemes import SCHEMES, Moment, present, scheme_named

SIZES = np.array([10.0, 30.0, 60.0])


def mix(scheme: str, weights: np.ndarray, step: int, seed: int = 0, **settings: Any) -> Mixing | None:
    config = FederationConfig(scheme=scheme, **settings)
    return SCHEMES[scheme].mix(Moment(config, seed, step, np.asarray(weights, dtype=float)))


def matrix(*arguments: Any, **settings: Any) -> np.ndarray:
    mixing = mix(*arguments, **settings)
    assert mixing is not None
    return mixing.matrix()


@pytest.mark.parametrize(("scheme", "step"), [("fedavg", 4), ("fedprox", 8), ("fedsgd", 1)])
def test_a_server_averages_by_datapoints(scheme: str, step: int) -> None:
    assert np.allclose(matrix(scheme, SIZES, step, interval=4), [[0.1, 0.3, 0.6]] * 3)


@pytest.mark.parametrize("scheme", ["fedavg", "fedprox", "decentralised"])
def test_nothing_is_averaged_between_aggregations(scheme: str) -> None:
    assert [mix(scheme, SIZES, step, interval=4) is None for step in range(1, 9)] == [True, True, True, False] * 2


def test_the_models_that_arrive_are_1_2_4() -> None:
    params = torch.tensor([[1.0, -1.0], [2.0, 0.0], [4.0, 10.0]])
    mixing = mix("fedavg", SIZES, 10)
    assert mixing is not None
    mixing.apply(params)
    assert torch.allclose(params, torch.tensor([[3.1, 5.9]] * 3))


@pytest.mark.parametrize("scheme", ["fedavg", "fedprox", "fedsgd"])
def test_a_straggler_has_a_zero_column_and_still_receives(scheme: str) -> None:
    absent = SIZES * [1, 0, 1]
    assert np.allclose(matrix(scheme, absent, 10), [[1 / 7, 0, 6 / 7]] * 3)


def test_decentralised_averages_itself_and_drawn_others() -> None:
    weights = np.array([10.0, 30.0, 60.0, 100.0])
    result = matrix("decentralised", weights, 10, neighbours=1)
    for device, row in enumerate(result):
        (other,) = np.nonzero(np.delete(row, device))[0]
        other += other >= device
        assert row[device] == pytest.approx(weights[device] / (weights[device] + weights[other]))
        assert row[other] == pytest.approx(weights[other] / (weights[device] + weights[other]))
    assert np.allclose(matrix("decentralised", SIZES, 10, neighbours=7), [[0.1, 0.3, 0.6]] * 3), "at most all others"
    draws = {matrix("decentralised", weights, 10 * round_, neighbours=1).tobytes() for round_ in range(1, 9)}
    assert len(draws) > 1, "neighbours are drawn anew each round"


def test_decentralised_stragglers() -> None:
    weights = np.array([10.0, 0.0, 60.0])
    assert np.allclose(matrix("decentralised", weights, 10), [[1 / 7, 0, 6 / 7]] * 3)
    alone = matrix("decentralised", np.array([0.0, 5.0, 0.0]), 10, neighbours=1)
    for row, device in zip(alone, range(3), strict=True):
        assert row.tolist() in ([0, 1, 0], np.eye(3)[device].tolist()), "who hears nobody keeps its own model"


def test_semi_decentralised_mixes_inside_subsets() -> None:
    weights = np.array([10.0, 30.0, 60.0, 100.0, 70.0])
    result = matrix("semi-decentralised", weights, 2, subset=2)
    groups = {tuple(np.nonzero(row)[0].tolist()) for row in result}
    assert sorted(len(group) for group in groups) == [1, 2, 2]
    assert sorted(device for group in groups for device in group) == [0, 1, 2, 3, 4], "subsets are disjoint"
    for group in groups:
        for device in group:
            assert np.allclose(result[device, list(group)], weights[list(group)] / weights[list(group)].sum())
    assert np.allclose(matrix("semi-decentralised", weights, 4, subset=2), result), "subsets are fixed in a run"
    assert mix("semi-decentralised", weights, 3, subset=2) is None


def test_semi_decentralised_server_averages_one_device_of_each_subset() -> None:
    weights = np.array([10.0, 30.0, 60.0, 100.0, 70.0])
    inside = matrix("semi-decentralised", weights, 2, subset=2)
    heads = set()
    for step in range(8, 80, 8):
        result = matrix("semi-decentralised", weights, step, subset=2, heads="raw")
        assert (result == result[0]).all(), "everyone receives the same model"
        for device in np.nonzero(result[0])[0]:
            assert result[0, device] == pytest.approx(weights[inside[device] > 0].sum() / weights.sum())
        heads.add(tuple(np.nonzero(result[0])[0].tolist()))
    assert {len(drawn) for drawn in heads} == {3}
    assert len(heads) > 1, "heads are drawn anew"
    mixed = matrix("semi-decentralised", weights, 8, subset=2)
    head = matrix("semi-decentralised", weights, 8, subset=2, heads="raw")
    assert np.allclose(mixed, head @ inside), "first the subsets, then the server"


def sent(*arguments: Any, **settings: Any) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Models by device to the server and from it, and (sender, receiver) of those between devices."""
    mixing = mix(*arguments, **settings)
    assert mixing is not None
    pairs = sorted((sender, receiver) for sender, receiver in mixing.between.tolist())
    return mixing.uploads.tolist(), mixing.downloads.tolist(), pairs


@pytest.mark.parametrize("scheme", ["fedavg", "fedprox", "fedsgd"])
def test_a_server_hears_from_all_but_stragglers_and_tells_everybody(scheme: str) -> None:
    assert sent(scheme, SIZES, 10) == ([1, 1, 1], [1, 1, 1], [])
    assert sent(scheme, SIZES * [1, 0, 1], 10) == ([1, 0, 1], [1, 1, 1], [])


def test_decentralised_models_go_from_neighbour_to_neighbour() -> None:
    nothing = [0, 0, 0]
    all_pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert sent("decentralised", SIZES, 10) == (nothing, nothing, all_pairs)
    # 1 is absent: it sends nothing and still receives
    assert sent("decentralised", SIZES * [1, 0, 1], 10) == (nothing, nothing, [(0, 1), (0, 2), (2, 0), (2, 1)])
    few = matrix("decentralised", np.ones(6), 10, neighbours=2)
    _, _, pairs = sent("decentralised", np.ones(6), 10, neighbours=2)
    assert pairs == sorted((s, r) for r, s in zip(*np.nonzero(few), strict=True) if s != r), "whoever is averaged sent"


def test_semi_decentralised_models_stay_inside_subsets_but_for_the_heads() -> None:
    inside = matrix("semi-decentralised", np.ones(4), 2, subset=2)
    pairs = sorted((s, r) for r, s in zip(*np.nonzero(inside), strict=True) if s != r)
    assert len(pairs) == 4
    assert sent("semi-decentralised", np.ones(4), 2, subset=2) == ([0] * 4, [0] * 4, pairs)
    uploads, downloads, between = sent("semi-decentralised", np.ones(4), 8, subset=2)
    assert (downloads, between) == ([1] * 4, pairs)
    assert all(uploads[one] + uploads[other] == 1 for one, other in pairs), "one head of each subset"
    raw = sent("semi-decentralised", np.ones(4), 8, subset=2, heads="raw")
    assert raw == (uploads, [1] * 4, []), "a head sends its own model: nothing moves inside the subset"
    absent = np.array([1.0, 0, 1, 1])
    uploads, downloads, between = sent("semi-decentralised", absent, 8, subset=2)
    partner = next(s for s, r in pairs if r == 1)
    assert (uploads[1], uploads[partner], downloads) == (0, 1, [1] * 4)
    assert between == [pair for pair in pairs if pair[0] != 1]


@pytest.mark.parametrize("named", [{"to_server": 3}, {"from_server": [2]}, {"between": [(-1, 0)]}])
def test_senders_that_do_not_exist_are_refused(named: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="devices from 0 to 1"):
        mixing_of([(np.array([0, 1]), np.ones(2))], np.zeros(2), **named)


@given(
    scheme=st.sampled_from(list(SCHEMES)),
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=12),
    step=st.integers(1, 40),
    seed=st.integers(0, 5),
    changes=st.fixed_dictionaries(
        {
            "interval": st.integers(1, 5),
            "neighbours": st.integers(1, 8),
            "subset": st.integers(1, 6),
            "heads": st.sampled_from(["mixed", "raw"]),
        }
    ),
)
def test_every_matrix_is_row_stochastic(
    scheme: str, sizes: list[int], step: int, seed: int, changes: dict[str, Any]
) -> None:
    weights = np.array(sizes, dtype=float)
    mixing = mix(scheme, weights, step, seed, **changes)
    if mixing is None:
        return
    table = mixing.matrix()
    assert (table >= 0).all()
    assert np.allclose(table.sum(axis=1), 1)
    off_diagonal = table - np.diag(np.diag(table))
    assert (off_diagonal[:, weights == 0] == 0).all(), "who is absent or without data reaches nobody"
    params = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(sizes), 3)))
    expected = table @ params.numpy()
    mixing.apply(params)
    assert np.allclose(params.numpy(), expected)


def test_long_rows_are_mixed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("d2dfl.federation.mixing.COLUMNS", {"cpu": 4})
    params = torch.arange(33.0).view(3, 11)
    expected = matrix("decentralised", SIZES, 10, neighbours=1) @ params.numpy()
    mixing = mix("decentralised", SIZES, 10, neighbours=1)
    assert mixing is not None
    mixing.apply(params)
    assert np.allclose(params.numpy(), expected)


def test_who_receives_nothing_keeps_its_own() -> None:
    mixing = mixing_of([(np.array([0, 1]), np.array([1.0, 3.0]))], np.array([0, -1]))
    assert np.array_equal(mixing.matrix(), [[0.25, 0.75], [0, 1]])


def test_stragglers_are_fixed_or_redrawn() -> None:
    for rule, kinds in (("fixed", {1}), ("redrawn", {2, 3, 4, 5, 6})):
        config = FederationConfig(stragglers=2, straggler_rule=rule)
        seen = [present(config, 0, number, 6) for number in range(6)]
        assert all((~here).sum() == 2 for here in seen)
        assert len({here.tobytes() for here in seen}) in kinds
    with pytest.raises(UserError, match="stragglers cannot be 6"):
        present(FederationConfig(stragglers=6), 0, 0, 6)


def test_a_share_of_the_devices_takes_part() -> None:
    seen = [present(FederationConfig(participation=0.3), 0, number, 10) for number in range(5)]
    assert [int(here.sum()) for here in seen] == [3] * 5
    assert len({here.tobytes() for here in seen}) > 1
    assert present(FederationConfig(participation=0.0), 0, 0, 10).sum() == 1
    assert present(FederationConfig(), 0, 0, 10).all()


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(UserError, match="the schemes are fedavg, fedprox"):
        scheme_named("gossip")
