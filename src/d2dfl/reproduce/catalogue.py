"""Where the experiments are: scripts, each with an EXPERIMENT, in the folder of this package or of the repository."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import d2dfl
from d2dfl.errors import UserError
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
    module = f"d2dfl_experiment_{path.stem}"
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    found = getattr(loaded, "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise UserError(f"{path} has no EXPERIMENT")
    return found
