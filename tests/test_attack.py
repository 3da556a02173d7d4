"""A share of the attack (benchmarks/attack): nothing of it may be lost. The whole of it runs by hand."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from attack import files, flips, kills, odd, outputs
from attack.cases import Case, run_cases
from attack.sandbox import Zygote
from attack.verdict import Tally, table

SEED = 1
# Where a call has to train or start processes; the attack itself tries all of them.
SLOW = ("run", "compare", "reproduce", "report")


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    with Zygote(tmp_path_factory.mktemp("attack")) as found:
        yield found


def silent(kind: str, done: int, total: int) -> None:
    pass


def told(tally: Tally) -> str:
    """All that was lost, for whoever reads why a test failed."""
    return "\n".join([table([tally]), *(f"{loss.case}: {loss.why}\n  {loss.replay}" for loss in tally.losses)])


def tried(zygote: Zygote, cases: list[Case], keep: Path) -> Tally:
    tally = Tally("cases")
    run_cases(zygote, cases, len(cases), tally, keep, silent)
    return tally


def few(cases: list[Case], quick: int, slow: int) -> list[Case]:
    """So many that only look and calculate, so many that take longer."""
    is_slow = [bool(set(SLOW) & set(case.arguments[:3])) for case in cases]
    chosen = [case for case, late in zip(cases, is_slow, strict=True) if not late][:quick]
    return chosen + [case for case, late in zip(cases, is_slow, strict=True) if late][:slow]


def test_odd_inputs(zygote: Zygote, tmp_path: Path) -> None:
    cases = few(odd.generated(SEED, 600, *odd.templates(zygote)), 220, 14)
    tally = tried(zygote, cases, tmp_path)
    assert not tally.losses, told(tally)
    assert tally.refused > 100
    assert tally.survived > 20


def test_outputs(zygote: Zygote, tmp_path: Path) -> None:
    cases = outputs.cases(*odd.templates(zygote))
    tally = tried(zygote, few(cases[::9], 30, 12), tmp_path)
    assert not tally.losses, told(tally)
    assert tally.refused > 5
    assert tally.survived > 5


def test_damaged_files(zygote: Zygote, tmp_path: Path) -> None:
    tallies = files.attack(zygote, 180, SEED, tmp_path, silent)
    assert len(tallies) == 4
    for tally in tallies:
        assert not tally.losses, told(tally)
        assert tally.tried >= 30 or (tally.kind == "damaged files of a peer" and find_spec("msgspec") is None)


def test_flipped_bits(zygote: Zygote, tmp_path: Path) -> None:
    tally = flips.flip_states(zygote, 6, SEED, zygote.place / "flips", tmp_path, silent)
    assert not tally.losses, told(tally)
    assert tally.tried == 6


@pytest.mark.parametrize("kind", kills.KINDS)
def test_kills(zygote: Zygote, tmp_path: Path, kind: str) -> None:
    # Of the reproductions the smallest: a start of its processes takes seconds, and there are several.
    call = ("reproduce", "example", "--out", "out") if kind == "reproduce" else kills.KINDS[kind]
    tally = kills.kill_kind(zygote, kind, call, 1, SEED, tmp_path, silent)
    assert not tally.losses, told(tally)
    assert tally.tried >= 1


def test_a_loss_is_told(zygote: Zygote, tmp_path: Path) -> None:
    """The judge sees what it is there for: a file that changed, and a call that should have been refused."""
    changed = Case("changed", (*outputs.DISCOVER, "--json", "x.json"), outputs.content("x.json"))
    accepted = Case("accepted", ("methods",), must_refuse=True)
    fine = Case("fine", ("methods",))
    tally = tried(zygote, [changed, accepted, fine], tmp_path)
    assert sorted(loss.case for loss in tally.losses) == ["accepted", "changed"]
    assert tally.survived == 1
