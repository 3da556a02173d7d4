"""A metric of a user's own in compiled code: its address, which kernels call.

Kernels are compiled once for all such metrics, not for each. What stands at the address is the metric compiled, or,
where Numba cannot compile it, a call back into Python: the same learner and the same result, only slower.
"""

import ctypes
import warnings
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from d2dfl.config.metrics import Metric
from d2dfl.errors import UserError, described
from d2dfl.plugins import place_in_user_file

NUMBERS = types.CPointer(types.float64)  # type: ignore[no-untyped-call]  # Numba leaves it untyped
FORM = types.float64(NUMBERS, NUMBERS, types.intp)
BACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t)


class Own(NamedTuple):
    """A metric that can be called."""

    name: str
    address: int
    failures: list[Exception]  # of calls into Python: no exception can pass through compiled code
    code: object  # must live as long as its address is used


_made: dict[Any, Own] = {}  # by function
_by_address: dict[int, Own] = {}


def _call(_: Any, address: Any, one: Any, other: Any, size: Any) -> Any:
    """Call the function at an address with two vectors, given by theirs, of one size."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word, number = ir.IntType(8 * ctypes.sizeof(ctypes.c_void_p)), ir.DoubleType()
        function = builder.inttoptr(values[0], ir.FunctionType(number, [word, word, word]).as_pointer())
        return builder.call(function, values[1:])

    return types.float64(types.intp, types.uintp, types.uintp, types.intp), build


call_own: Any = intrinsic(_call)  # its first argument is the compiler's


def own_metric(metric: Metric) -> Own:
    """The metric made ready: compiled, or with a warning that it is called in Python."""
    function = metric.distance
    if function not in _made:
        made = _compiled(metric) or _called_back(metric)
        _made[function] = _by_address[made.address] = made
    return _made[function]


def check_own(address: int, distances: Any) -> None:
    """Raise what a metric raised in calls from compiled code, and refuse numbers that are none."""
    own = _by_address[address]
    if own.failures:
        error = own.failures[0]
        own.failures.clear()
        place = place_in_user_file(error)
        raise UserError(f"the metric {own.name!r} fails: {f'{place} ' if place else ''}{described(error)}") from error
    if not np.isfinite(distances).all():
        raise UserError(f"the metric {own.name!r} gives {distances[~np.isfinite(distances)][0]}: give finite numbers")


def _compiled(metric: Metric) -> Own | None:
    function: Any = metric.distance
    # Like arrays, and unlike Python's numbers, it divides by 0 without an exception, which could go nowhere.
    fast = njit(error_model="numpy")(getattr(function, "py_func", function))

    def called(one: Any, other: Any, size: Any) -> Any:
        return float(fast(carray(one, (size,)), carray(other, (size,))))

    try:
        code: Any = cfunc(FORM)(called)
    except Exception:  # of Numba's own, or whatever goes wrong inside it
        return None
    return Own(metric.name, code.address, [], code)


def _called_back(metric: Metric) -> Own:
    function, failures = metric.distance, list[Exception]()
    assert function is not None

    def called(one: int, other: int, size: int) -> float:
        try:
            value = float(function(_vector(one, size), _vector(other, size)))
        except Exception as error:  # whatever a user's function does
            failures.append(error)
            return 0.0
        return value

    warnings.warn(
        f"the metric {metric.name!r} cannot be compiled and is called in Python: slow, for small networks only",
        stacklevel=2,
    )
    code = BACK(called)
    address = ctypes.cast(code, ctypes.c_void_p).value
    assert address is not None
    return Own(metric.name, address, failures, code)


def _vector(address: int, size: int) -> Any:
    """The numbers at an address, not to be changed."""
    numbers = np.frombuffer(memoryview((ctypes.c_double * size).from_address(address)))
    numbers.flags.writeable = False
    return numbers
