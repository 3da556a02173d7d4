"""One thread for linear algebra and scikit-learn, so that the number of cores changes no bit of a result.

It is also faster here: the matrices are small, and where another process wants the second core, threads that wait for
each other took 10 to 50 times as long (eigenvectors of a 1,200 x 1,200 matrix on 2 shared cores: 0.1 s against 2 to 6).
"""

from contextlib import AbstractContextManager
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS and OpenMP use one thread."""
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits
