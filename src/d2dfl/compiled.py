"""Compiled functions: their machine code is kept in a folder where one can be written, and made anew where none can.

Numba gives up at import where it may write neither beside the source, nor in the user's cache, nor in NUMBA_CACHE_DIR,
and ends a computation when a kept file is damaged or the disk is full. Keeping code only saves time: here, whatever goes
wrong with it costs a compilation and nothing else.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import __version__, njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

NOT_KEPT = (
    "compiled code is not kept: no folder for it can be written (set NUMBA_CACHE_DIR to one that can); "
    "every start compiles anew"
)
COMPILING = "compiling %s: about 10 s of work, once per installation"
TRIED = "0.68."  # versions of Numba whose insides `_Unfinished` was tried with; others compile each part by itself
# Where parts are that kernels of other files take in, and the numbers that they go by. Of its own, Numba looks at a kernel's file.
PARTS = ("compiled.py", "rng.py", "discovery/constants.py", "discovery/equations/*.py", "discovery/game/*.py")
_lost: list[Any] = []  # functions whose code could not be kept
_to_tell: list[Callable[[], None]] = []  # whom to tell that something is compiled


class _Careful:
    """Numba's cache of a function, of which nothing that fails ends the program."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Compiled code, or None."""
        code = None
        try:
            code = _kept_code(self._cache, signature, target)
        except OSError:
            pass
        except Exception:  # cut off, overwritten or by another program: unpickling may raise anything
            self._forget()  # a damaged index would also keep the new code from being saved
        while code is None and _to_tell:
            _to_tell.pop()()
        return code

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep compiled code, if that is possible."""
        try:
            self._cache.save_overload(signature, code)
        except Exception:  # a full disk, a folder that was made read-only or removed
            self._forget()  # the index may name a file by now that still holds the code of an older source
            _lost.append(self)

    def _forget(self) -> None:
        with suppress(Exception):
            Path(self._cache._cache_file._index_path).unlink(missing_ok=True)


def _kept_code(cache: Any, signature: Any, target: Any) -> Any:
    """Kept code, without all that Numba needs to compile some.

    Numba's own `load_overload` begins with registering whatever it can compile, and loads SciPy's linear algebra for that: a
    quarter of a short command's time. Kept code needs only the runtime that counts references; modules that it was made
    from are imported by name as it is read. Where it must be compiled after all, Numba registers everything then.
    """
    rtsys.initialize(target)
    return cache._load_overload(signature, target)


class _ToLink(JITCodeLibrary):
    """A function that is linked into what calls it, and never made into machine code of its own."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Nowhere: there is no machine code."""
        return 0

    @property
    def codegen(self) -> "_ToLink":
        """Whom Numba hands the constants that a function prints, or puts into an error."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """They belong to machine code: `_KernelCompiler` hands them over."""


class _Unfinished(_ToLink):
    """A function as LLVM reads it: what it calls is linked in, and nothing is optimised.

    A kernel takes all its parts into one piece, which is optimised as a whole. By itself Numba optimises each part, with all that it
    calls, and again inside of each of its callers, and theirs: half of a compilation. Whoever optimises all at
    once also sees more: learners are faster by a tenth to a third.
    """

    def _optimize_final_module(self) -> None:
        pass


class _KernelCompiler(Compiler):
    """Numba's compiler, which also hands over the constants of a kernel's parts."""

    def compile_extra(self, function: Any) -> Any:
        result: Any = super().compile_extra(function)  # type: ignore[no-untyped-call]  # Numba leaves it untyped
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


class _PartCompiler(Compiler):
    """Numba's compiler, which leaves a function unfinished."""

    library: type[_ToLink] = _Unfinished

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        to_link = self.library(target.codegen(), "part")
        super().__init__(typing, target, to_link, *rest)  # type: ignore[no-untyped-call]  # likewise


class _RoundedCompiler(_PartCompiler):
    """The same, but the function is optimised."""

    library = _ToLink


def _pipeline(compiler: type[Compiler]) -> dict[str, Any]:
    """The option that chooses a compiler of ours, where Numba is as that expects."""
    return {"pipeline_class": compiler} if __version__.startswith(TRIED) else {}


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function when it is first called, without Python's objects: `@kernel`, or `@kernel(nogil=True)`.

    Options are those of numba.njit. What may take longer than a moment has `nogil`: else whoever watches a run waits for its end.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    # Nobody takes the C form of a function, and making it costs 7 % of a compilation.
    options = {"no_cfunc_wrapper": True, **_pipeline(_KernelCompiler), **options}
    compiled: Any = njit(**options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        compiled.enable_caching()
        with suppress(AttributeError):  # another version of Numba keeps it elsewhere
            file = compiled._cache._cache_file
            file._source_stamp = (file._source_stamp, _stamp_of_parts())
        compiled._cache = _Careful(compiled._cache)
    except (RuntimeError, OSError):
        _lost.append(function)
    return compiled


@cache
def _stamp_of_parts() -> str:
    """What changes with any file of PARTS: kept code of a kernel holds them as they were."""
    home, digest = Path(__file__).parent, hashlib.sha256()
    for pattern in PARTS:
        for file in sorted(home.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def part(function: Any, **options: Any) -> Any:
    """Compile a function that only kernels call.

    Without the way in from Python, which takes dozens of arrays out of records, and without machine code: kernels make that
    of it, and their code is what is kept.
    """
    # Sums that may be taken in any order are rounded as they are vectorised: before a part is linked in, as always, not after.
    compiler = _RoundedCompiler if "fastmath" in options else _PartCompiler
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, **_pipeline(compiler), **options}
    compiled: Any = njit(**options)(function)
    if compiled is not function:
        # A call from Python would jump to nowhere. A version with a way in takes it: tests look at parts alone.
        version = cache(lambda: njit(**_pipeline(_KernelCompiler))(function))
        compiled._insert = lambda *_, **__: None
        compiled._compile_for_args = lambda *_, **__: version()
    return compiled


def leaf(function: Any) -> Any:
    """A part that makes no array and gives none back.

    Its callers hold the arrays that it reads, so it counts no references to them: in a short function they would take
    longer than its arithmetic.
    """
    return part(function, _nrt=False)


def inlined(function: Any) -> Any:
    """A leaf that becomes part of each of its callers."""
    return part(function, _nrt=False, forceinline=True)


def in_python(function: Any) -> Any:
    """The Python function behind a compiled one, for whole arrays in place of numbers."""
    return getattr(function, "py_func", function)


@contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell`, once, if something is compiled inside of this, because no code of it was kept."""
    _to_tell.append(tell)
    try:
        yield
    finally:
        with suppress(ValueError):
            _to_tell.remove(tell)


@contextmanager
def logged(what: str) -> Iterator[None]:
    """Say that something is compiled inside of this, unless somebody is told of it already.

    The logger writes to standard error where the program has not said otherwise.
    """
    if _to_tell:
        yield
        return
    with telling(lambda: logging.getLogger("d2dfl").warning(COMPILING, what)):
        yield


def not_kept() -> str | None:
    """A line for the user where code that was compiled so far could not be kept, else None."""
    return NOT_KEPT if _lost else None
