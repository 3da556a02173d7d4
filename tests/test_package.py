"""The package's front door."""

import subprocess
import sys

import pytest

import d2dfl


def test_every_name_is_there() -> None:
    for name in d2dfl.__all__:
        assert getattr(d2dfl, name) is not None
        assert name in dir(d2dfl)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = d2dfl.nothing


def test_training_alone_loads_no_compiler() -> None:
    """It would take half a second and 130 MB that a federation of large networks has no use for."""
    code = (
        "import sys, d2dfl.federation; print(*(name for name in ('numba', 'scipy', 'networkx') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
