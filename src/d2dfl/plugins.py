"""Python files of the user's own."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from d2dfl.errors import UserError, described
from d2dfl.storage import open_plain

_loaded: dict[str, str] = {}  # files that were run: where they are, and as they were named


def load_file(path: Path) -> ModuleType:
    """Run a file; whatever it does wrong is one sentence. What it registers stays."""
    open_plain(path, "a Python file").close()
    spec = importlib.util.spec_from_file_location(f"d2dfl_file_{path.stem}", path) if path.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise UserError(f"{str(path)!r} does not end in .py: give a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module of their class
    _loaded[str(path.absolute())] = str(path)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's file does
        raise UserError(f"{place_in_user_file(error) or path} fails with {described(error)}") from error
    return module


def loaded_files() -> list[str]:
    """Files that were run, as they were named."""
    return list(_loaded.values())


def place_in_user_file(error: BaseException) -> str | None:
    """File and line of the user's own code in which an error arose; None where it arose in ours."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in _loaded]
    if not own:
        return None
    package = str(Path(__file__).parent)
    deeper = frames[frames.index(own[-1]) + 1 :]
    if any(frame.filename.startswith(package) for frame in deeper):  # it called us, and we broke
        return None
    return f"{own[-1].filename}, line {own[-1].lineno},"
