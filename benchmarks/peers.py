"""Where frameworks/run.py stood before: the same, under the name that is in print."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent / "frameworks" / "run.py"), run_name="__main__")
