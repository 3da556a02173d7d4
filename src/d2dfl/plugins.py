"""Python files of the user's own."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from d2dfl.errors import UserError


def load_file(path: Path) -> ModuleType:
    """Run a file; whatever it does wrong is one sentence. What it registers stays."""
    spec = importlib.util.spec_from_file_location(f"d2dfl_file_{path.stem}", path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"cannot load {str(path)!r}: give a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module of their class
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:  # whatever a user's file does
        raise UserError(f"{path} fails with {type(error).__name__}: {error}") from error
    return module
