"""Blocks: devices that train one block after the other give the numbers of all of them at once."""

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, federation, finished, tiny, tiny_conv
from hypothesis import given
from hypothesis import strategies as st

from d2dfl import UserError
from d2dfl.federation import SCHEMES, Federated, FederationConfig, start, train_many
from d2dfl.federation.blocks import Entries
from d2dfl.federation.models import cnn, mlp
from d2dfl.federation.schemes import Moment, Scheme
from d2dfl.federation.sums import PIECES, TreeSum, pieces_of

GROUPED = [name for name, scheme in SCHEMES.items() if scheme.groups is not None]
RULES = ["keep", "reset", "mix"]


def many(seed: int = 0) -> Federated:
    """Twelve unequal devices, two of them without data."""
    return federation(sizes=(9, 20, 0, 13, 5, 8, 8, 30, 0, 3, 11, 2), seed=seed)


@given(
    scheme=st.sampled_from(GROUPED),
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=14).filter(any),
    seed=st.integers(0, 5),
    width=st.integers(1, 9),
    changes=st.fixed_dictionaries(
        {
            "subset": st.integers(1, 6),
            "subset_every": st.integers(1, 3),
            "global_every": st.integers(1, 7),
            "interval": st.integers(1, 4),
            "heads": st.sampled_from(["mixed", "raw"]),
        }
    ),
)
def test_mixing_over_blocks_equals_the_whole_matrix(
    scheme: str, sizes: list[int], seed: int, width: int, changes: dict[str, Any]
) -> None:
    """A round's schedule on random models: the product of all its matrices, and block after block, added up."""
    chosen, settings = SCHEMES[scheme], FederationConfig(**changes)
    weights = np.array(sizes, dtype=float)
    length = chosen.round_steps(settings)
    schedule = [chosen.mix(Moment(settings, seed, step, weights)) for step in range(1, length + 1)]
    models = np.random.default_rng(seed).normal(size=(len(sizes), 5)).astype(np.float32)
    noise = np.random.default_rng(seed + 1).normal(size=(length, *models.shape)).astype(np.float32)  # local steps
    whole = models.astype(np.float64)
    for mixing, moved in zip(schedule, noise, strict=True):
        whole = whole + moved
        whole = whole if mixing is None else mixing.matrix() @ whole
    active = np.flatnonzero(weights)
    assert chosen.groups is not None
    groups = chosen.groups(Moment(settings, seed, 0, weights))
    entries, total = Entries.of_groups([(active, groups[active])]), TreeSum(0, PIECES)
    last = schedule[-1]
    assert last is not None
    assert last.shared
    for first, end in entries.blocks(width):
        for _, _, devices in entries.parts(first, end):
            rows = torch.from_numpy(models[devices])
            for mixing, moved in zip(schedule, noise, strict=True):
                rows += torch.from_numpy(moved[devices])
                if mixing is not None and mixing is not last:
                    mixing.within(devices).apply(rows)
            total.add_rows(rows, last.shares()[devices], pieces_of(groups)[devices])
    ((_, added),) = total.finish()
    assert np.allclose(whole, added.numpy(), rtol=0, atol=1e-6)


@given(
    sizes=st.lists(st.lists(st.integers(0, 6), min_size=0, max_size=20), min_size=1, max_size=4),
    width=st.integers(1, 30),
)
def test_blocks_hold_everybody_once_and_never_cut_a_group(sizes: list[list[int]], width: int) -> None:
    runs = [(np.arange(len(groups)), np.array(groups, dtype=np.int64)) for groups in sizes]
    entries = Entries.of_groups(runs)
    seen: list[tuple[int, int]] = []
    for first, last in entries.blocks(width):
        assert last - first <= max(width, entries.largest)
        own = [(run, int(device)) for run, _, devices in entries.parts(first, last) for device in devices]
        assert len(own) == last - first
        inside = {(run, sizes[run][device]) for run, device in own}
        outside = {(run, sizes[run][device]) for run in range(len(sizes)) for device in range(len(sizes[run]))}
        counted = sum(1 for run in range(len(sizes)) for group in sizes[run] if (run, group) in inside)
        assert inside <= outside
        assert counted == len(own), "a group is in one block"
        seen += own
    assert sorted(seen) == [(run, device) for run in range(len(sizes)) for device in range(len(sizes[run]))]


@pytest.mark.parametrize("scheme", GROUPED)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_blocks_agree_with_a_row_for_every_device(
    scheme: str, rule: Any, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine of schemes without a server multiplies all rows by the whole matrix: the same numbers, up to rounding."""
    changes = {"scheme": scheme, "momentum_rule": rule, "executor": executor, "participation": 0.8}
    added = finished(tiny, many(), block=3, **changes)
    assert len(added.params) == 1
    monkeypatch.setitem(SCHEMES, scheme, dataclasses.replace(SCHEMES[scheme], groups=None))
    rows = finished(tiny, many(), **changes)
    assert len(rows.params) == 12
    assert torch.allclose(added.params, rows.params, rtol=0, atol=1e-6)
    assert np.allclose(added.curves.training_losses, rows.curves.training_losses, rtol=0, atol=1e-5)
    assert np.allclose(added.curves.losses, rows.curves.losses, rtol=0, atol=1e-5)
    assert (added.curves.uploads, added.curves.links) == (rows.curves.uploads, rows.curves.links)
    assert (added.done == rows.done).all()
    for name, held in rows.memory.items():
        assert torch.allclose(held, added.memory[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("factory", "executor"), [(tiny, "loop"), (tiny, "stack"), (mlp, "auto"), (tiny_conv, "auto")])
def test_the_block_changes_no_bit(scheme: str, rule: Any, factory: Any, executor: Any) -> None:
    changes = {"scheme": scheme, "momentum_rule": rule, "executor": executor, "participation": 0.8}
    shape = (1, 6, 6) if factory is tiny_conv else (6,)
    data = federation(sizes=many().sizes.tolist(), shape=shape)
    whole = finished(factory, data, **changes)
    for block in (1, 2, 5):
        other = finished(factory, data, block=block, **changes)
        assert torch.equal(whole.params, other.params)
        assert all(torch.equal(held, other.memory[name]) for name, held in whole.memory.items())
        assert whole.curves == other.curves


@pytest.mark.parametrize("scheme", ["fedavg", "fedsgd"])
def test_neither_the_block_nor_threads_change_a_bit(scheme: str) -> None:
    """Threads that share the work of a step would: a block of one device has one, too."""
    data = federation(sizes=(40, 70, 33), shape=(1, 28, 28), classes=10)
    found = []
    try:
        for threads, block in ((1, 0), (2, 0), (2, 1)):
            torch.set_num_threads(threads)
            found.append(
                finished(cnn, data, scheme=scheme, block=block, batch=32, interval=2, learning_rate=0.01).params
            )
    finally:
        torch.set_num_threads(1)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_of_several_runs(scheme: str) -> None:
    runs = [(many(), 0), (many(3), 1), (federation(), 2)]
    settings = FederationConfig(**FAST, scheme=scheme, participation=0.8)
    for one, other in zip(
        train_many(tiny, runs, settings), train_many(tiny, runs, dataclasses.replace(settings, block=4)), strict=True
    ):
        assert one == other


def test_rows_are_kept_where_models_differ_alone() -> None:
    devices = many().devices
    for scheme, rule, rows, remembered in [
        ("fedavg", "reset", 1, None),
        ("fedavg", "mix", 1, 1),
        ("fedprox", "keep", 1, devices),
        ("semi-decentralised", "mix", 1, 1),
        ("fedsgd", "keep", 1, 1),
        ("decentralised", "reset", devices, None),
        ("decentralised", "mix", devices, devices),
    ]:
        state = finished(tiny, many(), scheme=scheme, momentum_rule=rule)
        assert len(state.params) == rows
        assert (len(state.memory["momentum"]) if state.memory else None) == remembered


def test_a_scheme_that_says_what_it_does_not_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = SCHEMES["decentralised"]
    wrong = dataclasses.replace(neighbours, name="wrong", groups=SCHEMES["fedavg"].groups)
    assert isinstance(wrong, Scheme)
    monkeypatch.setitem(SCHEMES, "wrong", wrong)
    with pytest.raises(UserError, match="does not end a round with one average for all: leave out its groups"):
        finished(tiny, many(), scheme="wrong")


PEAK = """
import resource, sys
import numpy as np, torch
from d2dfl.federation import Federated, FederationConfig, train
from d2dfl.federation.models import cnn, mlp
torch.set_num_threads(1)
devices = int(sys.argv[1])
inputs, targets = np.zeros((4000, 784), dtype=np.float32), np.zeros(4000, dtype=np.int64)
data = Federated(inputs, targets, np.split(np.arange(4000), devices), inputs[:9], targets[:9], 10)
train(mlp, data, FederationConfig(rounds=1, interval=1, momentum_rule="reset", scheme=sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("scheme", ["fedavg", "semi-decentralised"])
def test_memory_does_not_grow_with_the_devices_of_a_server(scheme: str) -> None:
    """A row for each of 4,000 devices would be 1,740 MB; a block is 64."""
    few, more = (
        int(subprocess.run([sys.executable, "-c", PEAK, str(devices), scheme], capture_output=True, check=True).stdout)
        for devices in (400, 4000)
    )
    assert more - few < 200_000, f"{few:,} and {more:,} kB"


def test_a_start_makes_no_rows_that_nobody_needs() -> None:
    data = federation(sizes=(1,) * 5000)
    assert start(mlp, data, FederationConfig(**FAST, momentum_rule="reset")).params.shape[0] == 1
