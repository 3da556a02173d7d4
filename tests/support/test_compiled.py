"""Compiled code is kept where it can be; nothing about keeping it ends a program."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import d2dfl
from d2dfl import compiled
from d2dfl.compiled import NOT_KEPT, kernel, part

MODULE = """
from d2dfl.compiled import kernel, not_kept

@kernel
def power(value):
    return value * 7
"""
CALL = "import tiny; print(tiny.power(6), sum(tiny.power.stats.cache_hits.values()), tiny.not_kept(), sep='\\n')"
LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small module of one compiled function."""
    (tmp_path / "tiny.py").write_text(MODULE)
    return tmp_path


def run(folder: Path, *arguments: str, **environment: str) -> list[str]:
    """The lines that Python prints with a folder to import from."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    places = os.pathsep.join([str(folder), str(Path(d2dfl.__file__).parents[1])])
    variables = {**kept, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def nowhere(folder: Path) -> dict[str, str]:
    """Leave no folder for compiled code, not even to root: where folders would be there are files."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            (path / "__pycache__").write_bytes(b"")
    file = folder / "file"
    file.write_bytes(b"")
    return {"HOME": str(file / "home"), "XDG_CACHE_HOME": str(file / "cache"), "NUMBA_CACHE_DIR": str(file / "numba")}


def test_without_a_folder_code_is_compiled_anew_and_the_user_is_told(folder: Path) -> None:
    # The whole package as a copy: its own folders hold compiled code already.
    shutil.copytree(Path(d2dfl.__file__).parent, folder / "d2dfl", ignore=shutil.ignore_patterns("__pycache__"))
    environment = nowhere(folder)
    assert run(folder, "-c", CALL, **environment) == ["42", "0", NOT_KEPT]
    lines = run(folder, "-c", "from d2dfl.cli.app import main; main()", "methods", **environment)
    assert any("marginal" in line for line in lines)
    assert not list(folder.rglob("*.nbi"))


def test_with_a_folder_code_is_kept(folder: Path) -> None:
    assert run(folder, "-c", CALL) == ["42", "0", "None"]
    assert run(folder, "-c", CALL) == ["42", "1", "None"]
    own = folder / "own"
    assert run(folder, "-c", CALL, NUMBA_CACHE_DIR=str(own)) == ["42", "0", "None"]
    assert list(own.rglob("*.nbc"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_as_if_they_were_not_there(folder: Path, ending: str) -> None:
    run(folder, "-c", CALL)
    (file,) = folder.rglob(f"*.{ending}")
    for content in (b"", file.read_bytes()[:-9]):
        file.write_bytes(content)
        assert run(folder, "-c", CALL) == ["42", "0", "None"]
    assert run(folder, "-c", CALL) == ["42", "1", "None"]  # and mended
    file.unlink()
    file.mkdir()
    assert run(folder, "-c", CALL) == ["42", "0", NOT_KEPT]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_full_disk_ends_no_computation(folder: Path) -> None:
    """Every file may have 0 bytes: the folder can be written, but nothing into it."""
    assert run(folder, "-c", LIMIT.format(0) + CALL) == ["42", "0", NOT_KEPT]
    assert run(folder, "-c", CALL) == ["42", "0", "None"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_code_of_an_older_source_is_not_taken_for_new(folder: Path) -> None:
    """The disk had room for the index of new code and none for the code: what stands in its place is older."""
    run(folder, "-c", CALL)
    (folder / "tiny.py").write_text(MODULE.replace("7", "8"))
    sizes = [path.stat().st_size for ending in ("nbi", "nbc") for path in folder.rglob(f"*.{ending}")]
    assert sizes[0] < sizes[1] // 2
    assert run(folder, "-c", LIMIT.format(sizes[1] // 2) + CALL) == ["48", "0", NOT_KEPT]
    assert run(folder, "-c", CALL) == ["48", "0", "None"]


def test_code_of_a_kernel_is_not_kept_beyond_a_change_of_its_parts(folder: Path) -> None:
    """Numba looks at the file of a kernel alone: after `git pull` it took machine code with parts of an older version."""
    shutil.copytree(Path(d2dfl.__file__).parent, folder / "d2dfl", ignore=shutil.ignore_patterns("__pycache__"))
    parts = folder / "d2dfl" / "discovery" / "game" / "draws.py"
    parts.write_text(parts.read_text() + "\n\n@kernel\ndef times():\n    return 7\n")
    module = MODULE.replace("not_kept\n", "not_kept\nfrom d2dfl.discovery.game.draws import times\n", 1)
    (folder / "tiny.py").write_text(module.replace("* 7", "* times()"))
    assert run(folder, "-c", CALL) == ["42", "0", "None"]
    assert run(folder, "-c", CALL) == ["42", "1", "None"]
    parts.write_text(parts.read_text().replace("return 7", "return 8"))
    assert run(folder, "-c", CALL) == ["48", "0", "None"]


def test_options_reach_the_compiler() -> None:
    @kernel(nogil=True)
    def one(value: int) -> int:
        return value + 1

    assert one(1) == 2
    assert one.targetoptions["nogil"] is True
    assert kernel(one.py_func)(2) == 3


TELL = """
from d2dfl.compiled import telling
import tiny
for value in (6, 7, 6.5):
    with telling(lambda: print("compiling")):
        print(tiny.power(value))
"""


def test_whoever_waits_is_told_that_something_is_compiled(folder: Path) -> None:
    place = {"NUMBA_CACHE_DIR": str(folder / "kept")}
    assert run(folder, "-c", TELL, **place) == ["compiling", "42", "49", "compiling", "45.5"]
    assert run(folder, "-c", TELL, **place) == ["42", "49", "45.5"]


def test_a_part_works_inside_a_kernel_and_alone() -> None:
    double = part(lambda value: 2 * value)
    quadruple = kernel(lambda value: double(double(value)))
    assert quadruple(3) == 12
    assert double(3) == 6  # made anew, with a way in from Python: jumping into the part would end the process
    assert double(1.5) == 3.0


PARTS = """
from d2dfl.compiled import kernel, part

@part
def root(value):
    if value < 0:
        raise ValueError("below zero", value)
    return value ** 0.5

@kernel
def both(one, other):
    return root(one) + root(other)
"""
CALL_PARTS = """
import parts
print(parts.both(4.0, 9.0), sum(parts.both.stats.cache_hits.values()))
try:
    parts.both(4.0, -9.0)
except ValueError as error:
    print(error.args)
(made,) = parts.root.overloads.values()
print(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
"""


def test_a_part_has_no_code_of_its_own_and_is_whole_inside_of_a_kernel(folder: Path) -> None:
    (folder / "parts.py").write_text(PARTS)
    place = {"NUMBA_CACHE_DIR": str(folder / "kept")}
    # With a value in its sentence: in the process that compiles it, and where it is loaded.
    assert run(folder, "-c", CALL_PARTS, **place) == ["5.0 0", "('below zero', -9.0)", "0"]
    assert [path.name.split("-")[0] for path in (folder / "kept").rglob("*.nbi")] == ["parts.both"]
    loaded = CALL_PARTS.splitlines()[:-2]
    assert run(folder, "-c", "\n".join(loaded), **place) == ["5.0 1", "('below zero', -9.0)"]


def test_what_is_summed_in_any_order_has_no_code_of_its_own_either() -> None:
    """There would be two of it, with sums in two orders; and each would take as long to make as the kernel's own."""
    add = part(lambda values: values[0] + values[1], nogil=True, fastmath={"reassoc"}, forceinline=True)
    both = kernel(lambda values: add(values))
    assert both(np.ones(2)) == 2.0
    (made,) = add.overloads.values()
    assert made.library.get_pointer_to_function(made.fndesc.llvm_func_name) == 0
    assert not isinstance(made.library, compiled._Unfinished), "sums are vectorised before it is linked in, not after"


LABELS_ONLY = """
from numba.core import event
from d2dfl import Network, discover, preset
from d2dfl.discovery.equations import agreement, gaussian

class Watch(event.Listener):
    made = []
    def on_start(self, happening):
        self.made.append(happening.data["dispatcher"])
    def on_end(self, happening):
        pass

event.register("numba:compile", Watch())
config = preset("best").with_(network__devices=4)
discover(Network.generate(config, 0), config, method="greedy")
ours = [one for one in Watch.made if one.py_func.__module__.startswith("d2dfl.discovery.game")]
print(len(ours) > 5, len(ours) - len(set(ours)))
print([one.py_func.__name__ for one in Watch.made if one.py_func.__module__ in (agreement.__name__, gaussian.__name__)])
"""


def test_a_network_of_labels_compiles_nothing_for_data_clusters_and_nothing_twice(folder: Path) -> None:
    lines = run(folder, "-c", LABELS_ONLY, NUMBA_CACHE_DIR=str(folder / "kept"))
    assert lines == ["True 0", "[]"]


MORE = """
import sys
import numpy as np
from d2dfl.compiled import kernel

@kernel
def table(rows):
    found = np.empty((rows, 2))  # counted by the runtime
    for row in range(rows):
        found[row, 0], found[row, 1] = row, row * row
    return found

@kernel
def words(letters):
    counted = {"a": 0}  # hashed with a secret of this process
    for letter in letters:
        counted[letter] = counted.get(letter, 0) + 1
    return counted["a"]

@kernel
def solved(matrix):
    return np.linalg.solve(matrix, matrix[0])
"""
CALL_MORE = """
import more, numpy, sys
print(more.table(3).tolist(), sum(more.table.stats.cache_hits.values()), "scipy.linalg" in sys.modules)
print(more.words("banana"), sum(more.words.stats.cache_hits.values()))
print(more.solved(2.0 * numpy.eye(2)).tolist(), sum(more.solved.stats.cache_hits.values()))
fresh = more.kernel(lambda rows: more.table(rows).sum())
print(fresh(4))
"""


def test_kept_code_is_loaded_without_what_compiling_needs(folder: Path) -> None:
    (folder / "more.py").write_text(MORE)
    run(folder, "-c", CALL_MORE)
    lines = run(folder, "-c", CALL_MORE)
    assert lines[0] == "[[0.0, 0.0], [1.0, 1.0], [2.0, 4.0]] 1 False"
    # Whatever code needs is there all the same, and more can be compiled.
    assert lines[1:] == ["3 1", "[1.0, 0.0] 1", "20.0"]


TRAINED = """
import hashlib
import numpy as np
from d2dfl.federation.executors.dense_kernels import Datapoints, Steps, train_devices

random = np.random.default_rng(0)
inputs = random.normal(size=(40, 30)).astype(np.float32)
points = Datapoints(inputs, random.integers(0, 5, 40), np.zeros((0, 1), dtype=np.float32))
params = random.normal(size=(2, 30 * 21 + 21 + 21 * 5 + 5)).astype(np.float32)
losses = np.zeros((9, 2), dtype=np.float32)
steps = Steps(np.arange(2), random.integers(0, 40, (9, 2, 10)), np.full(2, 10), losses)
widths, rates = np.array([30, 21, 5]), (np.float32(0.05), np.float32(0.9), np.float32(0), np.float32(0))
train_devices(params, np.zeros((0, 0), dtype=np.float32), points, steps, widths, rates, np.arange(2))
print(hashlib.sha256(params.tobytes() + losses.tobytes()).hexdigest())
"""


def test_training_rounds_alike_in_the_process_that_compiles_it_and_in_those_that_load_it(folder: Path) -> None:
    # What a kernel calls is compiled twice, alone and again inside of it, with sums in another order; which of the two
    # runs depended on what the process had compiled itself.
    place = {"NUMBA_CACHE_DIR": str(folder / "kept")}
    assert run(folder, "-c", TRAINED, **place) == run(folder, "-c", TRAINED, **place)
