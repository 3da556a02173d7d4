"""Where the experiments are: scripts, each with an EXPERIMENT, in the folder `experiments` beside this file."""

from functools import cache
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.paper.experiment import Experiment
from d2dfl.paper.verdicts import Expected, expected
from d2dfl.plugins import load_file
from d2dfl.registry import entry_named


def scripts_folder() -> Path:
    """The folder that holds the scripts and expected.toml."""
    return Path(__file__).parent / "experiments"


def experiment_names() -> list[str]:
    """All of them, in the order of the paper."""
    return list(expected(scripts_folder()))


@cache
def load_experiment(name: str) -> Experiment:
    """An experiment of this package, or of a script of one's own (a path that ends in .py)."""
    own = name.endswith(".py")
    path = Path(name) if own else scripts_folder() / f"{name.replace('-', '_')}.py"
    if not own and not path.is_file():
        entry_named("experiment", name, dict.fromkeys(experiment_names()))
    found = getattr(load_file(path), "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise UserError(f"{path} has no EXPERIMENT")
    return found


def claims_of(name: str) -> Expected:
    """What the paper says about an experiment; nothing about one of the user's own."""
    return expected(scripts_folder()).get(name, Expected("", Path(name).stem, "", {}, {}, {}))
