"""Where the tasks of a grid run: engines by name, and what a worker does."""

import importlib
import json
import logging
import math
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import joblib
from joblib.parallel import BACKENDS, ParallelBackendBase

from d2dfl.config.sections.learning import ENGINES
from d2dfl.errors import MissingExtraError, UserError, described
from d2dfl.registry import entry_named

# joblib's own backends but loky are not offered. Threads and the sequential one work inside this process, whose thread
# limits they would change and which a crash would end; multiprocessing forks a process that may hold locks of BLAS or
# OpenMP, and waits for ever for a worker that died.
BUILT_IN = ("loky", "multiprocessing", "sequential", "threading")
RAY = "d2dfl-ray"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Reply(NamedTuple):
    """What a worker sends back; plain text, so that no class of the work has to exist in this process."""

    key: str
    result: str | None  # JSON; None where the task failed
    reason: str
    trace: str
    seconds: float


class PoolDiedError(Exception):
    """A worker ended without an answer, and its pool with it."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(one_line(cause))
        self.trace = "".join(traceback.format_exception(cause))


@dataclass(frozen=True)
class Crew:
    """Workers of an engine, ready for calls."""

    work: str
    workers: int
    threads: int
    backend: str  # of joblib
    here: bool = False  # the workers see the files of this process
    options: Mapping[str, Any] = field(default_factory=dict)

    def replies(self, calls: Iterator[tuple[str, str, Path | None]], number: int) -> Generator[Reply]:
        """Replies to calls (key, payload, place), as they come; `PoolDiedError` when a worker dies."""
        try:
            answers = self._parallel(min(self.workers, number))(
                joblib.delayed(do)(self.work, self.threads, *call) for call in calls
            )
        except Exception as error:
            raise PoolDiedError(error) from error
        try:
            while True:
                try:
                    reply = next(answers)
                except StopIteration:
                    return
                except Exception as error:
                    raise PoolDiedError(error) from error
                yield reply
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib minds results that nobody took
                answers.close()

    def _parallel(self, width: int) -> Any:
        """One worker is a process of its own, too: in this one it would change our thread limits or end us by a crash.

        joblib takes n_jobs=1 for "no process", hence two, of which one idles: `width` calls are out at a time. Calls go
        one by one: joblib would put short ones together, and one that kills its process would take others along.
        """
        with joblib.parallel_config(backend=self.backend, **self.options):
            return joblib.Parallel(
                n_jobs=max(2, width), return_as="generator_unordered", pre_dispatch=width, batch_size=1
            )


def engines() -> list[str]:
    """Names of the engines: ours, and backends that were registered with joblib."""
    return [*ENGINES, *sorted({*BACKENDS} - {*BUILT_IN, *ENGINES, RAY})]


@contextmanager
def engine_named(
    name: str, work: str, workers: int | None, threads: int, watched: Path | None = None
) -> Iterator[Crew]:
    """A crew of the engine, for as long as the context lasts; processes of this machine tell of their discoveries in `watched`."""
    entry_named("engine", name, dict.fromkeys(engines()))
    if name == "ray":
        with connected_ray() as ray:
            joblib.register_parallel_backend(RAY, RayBackend)
            cpus = int(ray.cluster_resources().get("CPU", 1))
            width = workers or max(cpus // threads, 1)
            yield Crew(work, width, threads, RAY, options={"cpus": threads})
        return
    workers = workers or max(joblib.cpu_count() // threads, 1)  # of the CPUs that this process may use
    if name == "local":
        options = {"inner_max_num_threads": threads, "initializer": leave_with, "initargs": (os.getpid(), watched)}
        yield Crew(work, workers, threads, "loky", True, options)
    else:
        yield Crew(work, workers, threads, name)


@contextmanager
def connected_ray() -> Iterator[Any]:
    """The package Ray, connected to the cluster that is there."""
    # Ray asks 20 times, 40 s each, for a cluster that has crashed since. Read when it is imported.
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the package are not ours to mend
            ray: Any = importlib.import_module("ray")  # typed in part, and not everywhere installed
    except ImportError as error:
        raise MissingExtraError("the engine ray", "ray", "ray") from error
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UserError(
                f"no Ray cluster answers ({one_line(error)}): start one with `ray start --head`, or name one in RAY_ADDRESS"
            ) from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


class RayBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Every call is a Ray task, which Ray gives to any free CPU of the cluster.

    Ray's own backend for joblib gives no result before all are there, and deals calls to its actors in turn, whether
    they are busy or not.
    """

    supports_retrieve_callback = True

    def __init__(self, cpus: int, **options: Any) -> None:
        super().__init__(**options)
        self._cpus = cpus
        self._pending: set[Any] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        return n_jobs

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None]) -> Any:
        import ray

        # Not tried again behind our back: a task that kills its worker would do so once more, beside the others.
        task = ray.remote(num_cpus=self._cpus, max_retries=0)(_call)
        answer = task.remote(func)
        self._pending.add(answer)
        future = answer.future()
        future.add_done_callback(lambda _: self._pending.discard(answer))
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, future: Any) -> Any:
        return future.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        import ray

        for answer in list(self._pending):
            ray.cancel(answer, force=True)


def _call(func: Callable[[], Any]) -> Any:
    return func()


def do(work: str, threads: int, key: str, payload: str, place: Path | None) -> Reply:
    """What a worker does: one task, whatever happens in it."""
    began = time.monotonic()
    try:
        function = function_named(work)
        limit_threads(threads)
        result = json_text(function(json.loads(payload), place), "the result", sort=False)
    except (Exception, SystemExit) as error:
        return Reply(key, None, one_line(error), traceback.format_exc(), time.monotonic() - began)
    return Reply(key, result, "", "", time.monotonic() - began)


def leave_with(parent: int, watched: Path | None = None) -> None:
    """End this worker when the process that started it is gone: one that is killed cannot end its workers.

    Ctrl-C reaches all of them at once. It is for the parent to answer; we end with it, without a traceback from each.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if watched is not None:
        from d2dfl.experiment.overheard import tell_into

        tell_into(watched)
    # joblib takes a worker that has grown by 300 MB for one that leaks and replaces it. Ours keep a dataset and compiled
    # code for the next task: to make them anew took longer than the tasks.
    with suppress(ImportError):
        from joblib.externals.loky import process_executor

        process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


def function_named(work: str) -> Callable[[Any, Path | None], Any]:
    """The function behind "package.module:function"."""
    module, _, name = work.partition(":")
    try:
        function: Callable[[Any, Path | None], Any] | None = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError) as error:
        raise UserError(f"cannot import {module!r} for the work {work!r}: {one_line(error)}") from error
    if module == "__main__" or not callable(function):
        raise UserError(f"there is no function {work!r}: name one as package.module:function, importable anywhere")
    return function


def limit_threads(threads: int) -> None:
    """So many threads in this process for what is loaded, and by the environment for what the work loads later."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    if "numba" in sys.modules:  # first: it starts its threads now, and sets OpenMP to their number
        import numba

        started: Any = numba.config  # its settings are made at import, where no type checker sees them
        numba.set_num_threads(min(threads, started.NUMBA_NUM_THREADS))
    threadpool_limits(limits=threads)
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(threads)


def one_line(error: BaseException) -> str:
    """An error in one line: the sentence of a `UserError`, the kind and the text of any other."""
    text = described(error)
    return text.partition(": ")[2] or text if isinstance(error, UserError) else text


def json_text(value: Any, what: str, sort: bool = True) -> str:
    """A value as JSON; an error names the place of what JSON has no word for, NaN among it."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=sort)
    except (TypeError, ValueError, RecursionError) as error:
        try:
            place = next(_odd(value, ""), one_line(error))
        except RecursionError:
            place = "it holds itself"
        raise UserError(f"{what} is not plain JSON: {place}") from None


def _odd(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"a key at {place or 'the top'} is {key!r}" for key in value if not isinstance(key, str))
        for key, item in value.items():
            yield from _odd(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _odd(item, f"{place}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place or 'it'} is {value}"
    elif not isinstance(value, str | int | float | bool | None):
        yield f"{place or 'it'} is of type {type(value).__name__}"
