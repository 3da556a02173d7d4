"""The package's front door."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
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


TINY = {"network.devices": 3, "data.samples": 20, "federation.rounds": 1}
POINTS = np.repeat([2, 0, 0], 20)  # [datapoint] its partition, as in the network below
HELD = np.split(np.arange(60), 3)


def found() -> d2dfl.Discovery:
    labels = {"network.partitions": 3, "network.labels_per_device": 1, "network.trust": "full"}
    config = d2dfl.Config().with_(**{"network.devices": 3, **labels})
    return d2dfl.discover(d2dfl.Network.generate(config), config, method="closest")


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("seed cannot be -1", lambda: d2dfl.Network.generate(TINY, seed=-1)),
        ("seed cannot be 'a'", lambda: d2dfl.discover(d2dfl.Network.generate(TINY), seed="a")),
        ("network is of the type int: give a Network", lambda: d2dfl.discover(5)),
        ("there is no method 'nothing'", lambda: d2dfl.compare(TINY, ["nothing"], 1)),
        ("seeds cannot be []", lambda: d2dfl.compare(TINY, "none", [])),
        ("seeds cannot be [0, 0]", lambda: d2dfl.compare(TINY, "none", [0, 0])),
        ("seeds cannot be 1.5", lambda: d2dfl.compare(TINY, "none", 1.5)),
        ("data is of the type int: give a Dataset", lambda: d2dfl.train(5)),
        ("seed cannot be -1", lambda: d2dfl.exchange(found().graph, HELD, POINTS, np.zeros((3, 3)), seed=-1)),
        (
            "the holdings of device 0 are no numbers of datapoints: give whole numbers from 0 to 59",
            lambda: d2dfl.exchange(found().graph, [[-1], [0], [1]], POINTS, np.zeros((3, 3)), seed=0),
        ),
        (
            "threshold has the shape (3,)",
            lambda: d2dfl.exchange(found().graph, HELD, POINTS, np.zeros(3), seed=0),
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(sentence: str, call: Callable[[], object]) -> None:
    with pytest.raises(d2dfl.UserError, match=re.escape(sentence)):
        call()


def test_settings_methods_and_seeds_in_the_forms_that_come_to_mind() -> None:
    one = d2dfl.compare(TINY, "closest", 1)
    other = d2dfl.compare(d2dfl.Config().with_(**TINY), ["closest"], [0])
    assert one.rows == other.rows
    assert [row.method for row in one.rows] == ["closest", "none", "iid"]
    listed = d2dfl.exchange(found().graph, [held.tolist() for held in HELD], POINTS.tolist(), np.zeros((3, 3)), seed=0)
    usual = d2dfl.exchange(found().graph, HELD, POINTS, np.zeros((3, 3)), seed=0)
    assert usual.moved > 0
    assert all(map(np.array_equal, listed.holdings, usual.holdings))


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


def test_what_comes_back_shows_itself_in_a_line() -> None:
    """Also where one record is asked for out of another: no arrays."""
    done = found()
    moved = d2dfl.exchange(done.graph, HELD, POINTS, np.zeros((3, 3)), seed=0)
    for thing in (done, done.network, done.graph, done.evaluation, moved):
        assert len(repr(thing)) < 200, type(thing)
        assert "array(" not in repr(thing)
        assert "<table>" in thing._repr_html_()


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


def test_every_package_that_is_imported_is_declared() -> None:
    """click and threadpoolctl came with others, until one day they would not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    declared = {re.split(r"[<>=\[; ]", item)[0].lower().replace("-", "_") for item in wanted}
    declared |= {"sklearn", "zenoh"} if {"scikit_learn", "eclipse_zenoh"} <= declared else set()  # called otherwise
    imported: dict[str, str] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {one.name.partition(".")[0]: str(path) for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported[node.module.partition(".")[0]] = str(path)
    ours = {"d2dfl", "triton", *sys.stdlib_module_names}  # Triton comes with the GPU build of PyTorch
    assert {name: path for name, path in imported.items() if name not in ours | declared} == {}


def test_the_citation_has_the_version_of_the_package() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {d2dfl.__version__}" in lines
