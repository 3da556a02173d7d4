"""What a progress bar is told: every stage by name, in order, never backwards inside a stage, and inside a round, too."""

from itertools import groupby
from pathlib import Path

import torch

from d2dfl import preset
from d2dfl.experiment.compare import compare

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
    assert any(0 < share < 1 / 6 for share in found), "while one of three cells is discovered"
    assert any(1 / 6 <= share <= 1 / 3 for share in found), "and while its datapoints move"
    trained = [share for what, share in told if what == "train"]
    assert trained[-1] == 1
    assert len(set(trained)) > 2 * 2 + 1, "blocks of a round are told, too"
