"""What a progress bar is told: every stage by name, in order, never backwards inside a stage, and inside a round, too."""

from itertools import groupby
from pathlib import Path

import torch

from d2dfl import preset
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.compare import compare
from d2dfl.experiment.pace import Pace
from d2dfl.progress import silent

torch.set_num_threads(1)  # two threads on busy cores are slower


def test_a_bar_is_told_the_truth(tmp_path: Path) -> None:
    config = preset("best").with_(
        **{
            "network.devices": 6,
            "data.samples": 20,
            "federation.rounds": 2,
            "federation.interval": 1,
            "federation.model": "mlp",
            "federation.block": 4,
            "marginal.messages": 60,
        }
    )
    told: list[tuple[str, float]] = []
    compare(config, ["marginal"], [0], progress=lambda what, share: told.append((what, share)))
    stages = [name for name, _ in groupby(what.split(":")[0] for what, _ in told)]
    assert stages == ["data and network, seed 0", "discover, exchange", "train", "measure"]
    for stage in stages:
        shares = [share for what, share in told if what.split(":")[0] == stage]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1
    found = [share for what, share in told if what.startswith("discover, exchange: marginal")]
    assert found[0] == 0
    finding, moving = Pace(
        config, [Cell("", name, name, 0, config) for name in ("marginal", "none", "iid")], silent
    ).parts[0]
    whole = finding + 3 * moving
    assert any(0 < share < finding / whole for share in found), "while it is discovered"
    assert any(finding / whole - 1e-9 <= share <= (finding + moving) / whole + 1e-9 for share in found), (
        "and while its datapoints move"
    )
    others = [share for what, share in told if what.startswith(("discover, exchange: none", "discover, exchange: iid"))]
    assert min(others) > 0.5, "who finds nothing takes little of the time"
    trained = [share for what, share in told if what == "train"]
    assert trained[-1] == 1
    assert len(set(trained)) > 2 * 2 + 1, "blocks of a round are told, too"


def test_cells_count_by_the_time_that_they_take() -> None:
    config, told = preset("best").with_(**{"network.devices": 100_000}), list[float]()
    cells = [Cell("", name, name, 0, config) for name in ("qlearning", "closest", "none", "iid")]
    pace = Pace(config, cells, lambda _, share: told.append(share))
    for number in range(4):
        for tell in pace.of(number):
            tell(0.0)
            tell(1.0)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)
    assert told[1] > 0.8, "one learns and the other measures distances"
    assert told[-4] > 0.95
