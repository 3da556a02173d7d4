"""A comparison that takes a second, for several tests."""

from collections.abc import Sequence
from pathlib import Path

import torch

from d2dfl import Config, preset
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.findings.comparison import write_all
from d2dfl.experiment.folder.store import Again, run_folder
from d2dfl.progress import Step, silent

torch.set_num_threads(1)  # two threads on busy cores are slower


def small(**changes: object) -> Config:
    base = {
        "network.devices": 5,
        "data.samples": 40,
        "data.allocation": "labels:2",
        "federation.rounds": 3,
        "federation.interval": 3,
        "marginal.messages": 100,
        "network.trust": "full",
    }
    return preset("best").with_(**{**base, **changes})


def compared(
    folder: Path,
    config: Config,
    methods: Sequence[str] = ("marginal", "closest"),
    seeds: Sequence[int] = (0, 1),
    again: Again = "refuse",
    progress: Step = silent,
    logs: Sequence[str] = (),
    engine: str = "local",
) -> Comparison:
    """As the command line does it."""
    with run_folder(folder, plan_of(config, methods, seeds), again) as record:
        result = compare(config, methods, seeds, record, progress=progress, logs=logs, engine=engine)
        write_all(result, folder)
        record.finish()
    return result


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
