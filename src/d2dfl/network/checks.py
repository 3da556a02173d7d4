"""Checks of a user's own arrays: each failure is one sentence that names the array and says what would be right."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.errors import UserError

REQUIRED = ("counts", "threshold", "trust")
CLUSTERED = ("centroids", "covariances", "request")
KNOWN = (*REQUIRED, "drop", "rss", "positions", "cluster", "budget", "candidates", *CLUSTERED, "apart")


def checked_arrays(
    counts: ArrayLike,
    threshold: ArrayLike,
    trust: ArrayLike,
    drop: ArrayLike | None,
    rss: ArrayLike | None,
    positions: ArrayLike | None,
    cluster: ArrayLike | None,
    budget: ArrayLike | None,
    candidates: ArrayLike | None,
) -> dict[str, Any]:
    """All arrays with their right types, or a UserError."""
    held = _real("counts", counts, low=0.0)
    if held.ndim != 2 or held.shape[0] < 1 or held.shape[1] < 1:
        raise UserError(f"counts has shape {held.shape}: it must be [devices, partitions] with at least one of each")
    devices, partitions = held.shape
    slots = None if candidates is None else _candidates(candidates, devices)
    width = devices if slots is None else slots.shape[1]
    table = "[receiver, transmitter]" if slots is None else "[receiver, slot]"
    trusted = _shaped(
        "trust",
        _real("trust", trust),
        (devices, width, partitions),
        "[transmitter, receiver, partition]" if slots is None else "[receiver, slot, partition]",
    )
    if not np.isin(trusted, (0, 1)).all():
        raise UserError(
            "trust holds values other than 0 and 1: give 1 where the transmitter trusts the receiver with the partition, else 0"
        )
    if (drop is None) == (rss is None):
        raise UserError(
            "give either drop (loss probabilities) or rss (received power): "
            + ("neither is there" if drop is None else "both are there")
        )
    loss = power = None
    if drop is not None:
        loss = _shaped("drop", _link("drop", drop, slots, high=1.0), (devices, width), table)
    else:
        power = _shaped("rss", _link("rss", rss, slots, high=None), (devices, width), table)
    group, allowance = _clusters(cluster, budget, devices)
    return {
        "counts": held,
        "threshold": _shaped(
            "threshold", _real("threshold", threshold, low=0.0), (devices, partitions), "[device, partition]"
        ),
        "trust": trusted.astype(np.bool_),
        "drop": loss,
        "rss": power,
        "positions": None
        if positions is None
        else _shaped("positions", _real("positions", positions), (devices, 2), "[device, 2]"),
        "cluster": group,
        "budget": allowance,
        "candidates": slots,
    }


def checked_clusters(
    shape: tuple[int, int], centroids: ArrayLike | None, covariances: ArrayLike | None, request: ArrayLike | None
) -> tuple[NDArray[np.float64] | None, ...]:
    """Data clusters (Algorithm 2): all three arrays, or none."""
    given = (centroids, covariances, request)
    if all(values is None for values in given):
        return None, None, None
    missing = [name for name, values in zip(CLUSTERED, given, strict=True) if values is None]
    if missing:
        raise UserError(f"{missing[0]} is missing: data clusters need {', '.join(CLUSTERED)} together")
    places = _real("centroids", centroids)
    if places.ndim != 3 or places.shape[:2] != shape or places.shape[2] < 1:
        raise UserError(f"centroids has shape {places.shape}: it must be [device, cluster, component], as counts says")
    width = places.shape[2]
    spreads = _shaped(
        "covariances",
        _real("covariances", covariances),
        (*shape, width, width),
        "[device, cluster, component, component]",
    )
    if not np.allclose(spreads, np.swapaxes(spreads, 2, 3), rtol=1e-6, atol=1e-9):
        raise UserError("covariances holds a matrix that is not symmetric: give covariance matrices")
    lowest = np.linalg.eigvalsh(spreads)
    if (lowest[..., 0] < -1e-6 * np.maximum(lowest[..., -1], 1e-9)).any():
        raise UserError("covariances holds a matrix with a negative eigenvalue: give covariance matrices")
    return places, spreads, _shaped("request", _real("request", request, low=0.0), shape[:1], "[device]")


def checked_apart(partitions: int, apart: ArrayLike | None) -> NDArray[np.float64] | None:
    """Distances between partitions, if there are any."""
    if apart is None:
        return None
    table = _real("apart", apart, low=0.0)
    table = _shaped("apart", table, (partitions, partitions), "[partition, partition]")
    if not np.allclose(table, table.T, rtol=1e-6, atol=1e-9):
        raise UserError("apart is not symmetric: two partitions are as far apart seen from either")
    return table


def _real(name: str, values: Any, low: float | None = None, high: float | None = None) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name} is not a regular array of numbers: give equally long rows of numbers") from None
    if not np.isfinite(array).all():
        raise UserError(f"{name} holds NaN or infinity: give finite numbers")
    if (low is not None and (array < low).any()) or (high is not None and (array > high).any()):
        wrong = array[(array < (-np.inf if low is None else low)) | (array > (np.inf if high is None else high))].flat[
            0
        ]
        wanted = f"from {low:g} to {high:g}" if low is not None and high is not None else f"of at least {low:g}"
        raise UserError(f"{name} holds {wrong:g}: give numbers {wanted}")
    return array


def _link(name: str, values: Any, slots: NDArray[np.int32] | None, high: float | None) -> NDArray[np.float64]:
    """A value per link. What stands on the diagonal, or in padded slots, belongs to no link and is not looked at."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != 2:
        return _real(name, values, 0.0, high)
    if slots is not None and array.shape == slots.shape:
        array[slots < 0] = 0.0
    elif slots is None and array.shape[0] == array.shape[1]:
        np.fill_diagonal(array, 0.0)
    return _real(name, array, 0.0, high)


def _shaped(name: str, array: NDArray[np.float64], shape: tuple[int, ...], axes: str) -> NDArray[np.float64]:
    if array.shape != shape:
        raise UserError(f"{name} has shape {array.shape}: it must be {axes} = {shape}, as counts says")
    return array


def _whole(name: str, values: Any) -> NDArray[np.int32]:
    array = _real(name, values)
    if (array != np.round(array)).any() or (np.abs(array) > 2**31 - 1).any():
        raise UserError(f"{name} holds numbers that are not whole: give whole numbers")
    return array.astype(np.int32)


def _candidates(values: Any, devices: int) -> NDArray[np.int32]:
    slots = _whole("candidates", values)
    if slots.ndim != 2 or slots.shape[0] != devices:
        raise UserError(
            f"candidates has shape {slots.shape}: it must be [receiver, slot] with {devices} rows, as counts says"
        )
    if (slots < -1).any() or (slots >= devices).any():
        raise UserError(
            f"candidates names devices outside 0 to {devices - 1}: give device numbers, or -1 for an empty slot"
        )
    if (slots == np.arange(devices)[:, None]).any():
        raise UserError("candidates has a device hear itself: leave the device out of its own row")
    ordered = np.sort(slots, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise UserError("candidates names a device twice in one row: name each once")
    return slots


def _clusters(cluster: Any, budget: Any, devices: int) -> tuple[NDArray[np.int32] | None, NDArray[np.float64] | None]:
    if cluster is None:
        if budget is not None:
            raise UserError("budget is given without cluster: give the cluster of each device too")
        return None, None
    group = _whole("cluster", cluster)
    if group.shape != (devices,):
        raise UserError(f"cluster has shape {group.shape}: it must be [device] = ({devices},), as counts says")
    number = int(group.max()) + 1
    if sorted(set(group.tolist())) != list(range(number)):
        raise UserError("cluster must number the clusters 0, 1, 2, … without a gap")
    if budget is None:
        return group, None
    allowance = _real("budget", budget, low=0.0)
    if allowance.shape != (number,):
        raise UserError(f"budget has shape {allowance.shape}: it must be [cluster] = ({number},), as cluster says")
    return group, allowance
