"""The package's front door."""

import inspect
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import d2dfl
from d2dfl.discovery.methods import METHODS

ROOT = Path(__file__).parent.parent


def test_every_name_is_there() -> None:
    for name in d2dfl.__all__:
        assert getattr(d2dfl, name) is not None
        assert name in dir(d2dfl)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = d2dfl.nothing


def test_the_front_door_needs_nothing_heavy() -> None:
    code = (
        "import sys, d2dfl; print(*(name for name in ('numpy', 'numba', 'torch', 'matplotlib') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_a_user_needs_is_documented_and_typed() -> None:
    for name in (
        "Config",
        "Network",
        "Dataset",
        "Graph",
        "preset",
        "discover",
        "exchange",
        "train",
        "compare",
        "share",
    ):
        thing = getattr(d2dfl, name)
        assert thing.__doc__
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert signature.return_annotation is not signature.empty, name
            assert all(one.annotation is not one.empty for one in signature.parameters.values()), name


def test_training_alone_loads_no_compiler() -> None:
    """It would take half a second and 130 MB that a federation of large networks has no use for."""
    code = (
        "import sys, d2dfl.federation; print(*(name for name in ('numba', 'scipy', 'networkx') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_method_that_needs_a_package_names_an_extra_that_brings_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for method in METHODS.values():
        assert bool(method.package) == bool(method.extra)
        if method.extra:
            wanted = method.package.replace("_", "-")
            assert any(item.startswith(wanted) for item in extras[method.extra])
    assert METHODS["gcn"].installation == "pip install 'd2dfl[gcn]'"
    assert replace(METHODS["gcn"], package="mine", extra="").installation == "pip install mine"


def test_the_citation_has_the_version_of_the_package() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {d2dfl.__version__}" in lines
