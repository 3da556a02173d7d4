"""Where the experiments are: scripts, each with an EXPERIMENT, in the folder of this package or of the repository."""

from functools import cache
from pathlib import Path

import d2dfl
from d2dfl.errors import UserError
from d2dfl.plugins import load_file
from d2dfl.reproduce.experiment import Experiment


def scripts_folder() -> Path:
    """The folder that holds the scripts and expected.toml."""
    package = Path(d2dfl.__file__).parent
    for folder in (package / "experiments", package.parent.parent / "experiments"):
        if (folder / "expected.toml").exists():
            return folder
    raise UserError("the experiments were not installed: take them from the repository's folder experiments")


def experiment_names() -> list[str]:
    """All of them, in the order of the paper."""
    from d2dfl.reproduce.verdicts import expected

    return list(expected(scripts_folder()))


@cache
def load_experiment(name: str) -> Experiment:
    """An experiment of this package, or of a script of one's own (a path that ends in .py)."""
    path = Path(name) if name.endswith(".py") else scripts_folder() / f"{name.replace('-', '_')}.py"
    if not path.is_file():
        raise UserError(f"there is no experiment {name!r}: the experiments are {', '.join(experiment_names())}")
    found = getattr(load_file(path), "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise UserError(f"{path} has no EXPERIMENT")
    return found
