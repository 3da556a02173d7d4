"""Checks of a user's own arrays: each failure is one sentence that names the array and says what would be right."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.config.needs import dense_bytes
from d2dfl.errors import UserError
from d2dfl.memory import check_memory
from d2dfl.network.frames import check_same_order
from d2dfl.network.values import FARTHEST_M, LINEAR, MOST, floats, real, regular, shaped, whole, within

REQUIRED = ("counts", "threshold", "trust")
CLUSTERED = ("centroids", "covariances", "request")
KNOWN = (*REQUIRED, "drop", "rss", "positions", "cluster", "budget", "candidates", *CLUSTERED, "label_distance")


def checked_arrays(
    *,
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
    check_same_order(
        {"counts": counts, "threshold": threshold}, {"drop": drop, "rss": rss} if candidates is None else {}
    )
    held = real("counts", counts, 0.0, MOST)
    if held.ndim != 2 or held.shape[0] < 1 or held.shape[1] < 1:
        raise UserError(f"counts has shape {held.shape}: it must be [devices, partitions] with at least one of each")
    devices, partitions = held.shape
    if candidates is None:
        what = f"tables of all pairs of {devices:,} devices need"
        check_memory(dense_bytes(devices, partitions), what, "give candidates, and trust and drop by slot")
    slots = None if candidates is None else _candidates(candidates, devices)
    width = devices if slots is None else slots.shape[1]
    table = "[receiver, transmitter]" if slots is None else "[receiver, slot]"
    cube = "[receiver, transmitter, partition]" if slots is None else "[receiver, slot, partition]"
    trusted = _trust(trust, (devices, width, partitions), cube)
    if (drop is None) == (rss is None):
        raise UserError(
            "give either drop (loss probabilities) or rss (received power): "
            + ("neither is there" if drop is None else "both are there")
        )
    loss = power = None
    if drop is not None:
        loss = shaped("drop", _link("drop", drop, slots, high=1.0), (devices, width), table)
    else:
        power = shaped("rss", _link("rss", rss, slots, high=MOST), (devices, width), table)
    group, allowance = _clusters(cluster, budget, devices)
    return {
        "counts": held,
        "threshold": shaped(
            "threshold", real("threshold", threshold, 0.0, MOST), (devices, partitions), "[device, partition]"
        ),
        "trust": trusted,
        "drop": loss,
        "rss": power,
        "positions": None
        if positions is None
        else shaped("positions", real("positions", positions, -FARTHEST_M, FARTHEST_M), (devices, 2), "[device, 2]"),
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
    places = real("centroids", centroids, -MOST, MOST)
    if places.ndim != 3 or places.shape[:2] != shape or places.shape[2] < 1:
        raise UserError(f"centroids has shape {places.shape}: it must be [device, cluster, component], as counts says")
    width = places.shape[2]
    spreads = shaped(
        "covariances",
        real("covariances", covariances, -(MOST**2), MOST**2),
        (*shape, width, width),
        "[device, cluster, component, component]",
    )
    if not np.allclose(spreads, np.swapaxes(spreads, 2, 3), rtol=1e-6, atol=1e-9):
        raise UserError("covariances holds a matrix that is not symmetric: give covariance matrices")
    lowest = np.linalg.eigvalsh(spreads)
    if (lowest[..., 0] < -1e-6 * np.maximum(lowest[..., -1], 1e-9)).any():
        raise UserError("covariances holds a matrix with a negative eigenvalue: give covariance matrices")
    return places, spreads, shaped("request", real("request", request, 0.0, MOST), shape[:1], "[device]")


def checked_label_distance(partitions: int, label_distance: ArrayLike | None) -> NDArray[np.float64] | None:
    """Distances between partitions, if there are any."""
    if label_distance is None:
        return None
    table = real("label_distance", label_distance, 0.0, MOST)
    table = shaped("label_distance", table, (partitions, partitions), "[partition, partition]")
    if not np.allclose(table, table.T, rtol=1e-6, atol=1e-9):
        raise UserError("label_distance is not symmetric: two partitions are as far apart seen from either")
    return table


def _link(name: str, values: Any, slots: NDArray[np.int32] | None, high: float) -> NDArray[np.float64]:
    """A value per link. What stands on the diagonal, or in padded slots, belongs to no link and is not looked at."""
    array = np.array(floats(name, values))
    if slots is not None and array.shape == slots.shape:
        array[slots < 0] = 0.0
    elif slots is None and array.ndim == 2 and array.shape[0] == array.shape[1]:
        np.fill_diagonal(array, 0.0)
    if name == "rss" and (array < 0).any():
        raise UserError(f"rss holds {array[array < 0][0]:g}: {LINEAR}")
    return within(name, array, 0.0, high)


def _trust(values: Any, shape: tuple[int, ...], axes: str) -> NDArray[np.bool_]:
    array = shaped("trust", regular("trust", values, truths=True), shape, axes)
    if not ((array == 0) | (array == 1)).all():
        raise UserError(
            "trust holds values other than 0 and 1: give 1 where the transmitter trusts the receiver with the partition, else 0"
        )
    return np.ascontiguousarray(array, dtype=np.bool_)


def _candidates(values: Any, devices: int) -> NDArray[np.int32]:
    slots = whole("candidates", values, -1, devices - 1, f"device numbers from 0 to {devices - 1}, or -1 for none")
    if slots.ndim != 2 or slots.shape[0] != devices or slots.shape[1] < 1:
        raise UserError(
            f"candidates has shape {slots.shape}: it must be [receiver, slot] with {devices} rows, as counts says, and a slot"
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
    group = whole("cluster", cluster, 0, devices - 1, f"whole numbers from 0, at most {devices - 1}: one per device")
    if group.shape != (devices,):
        raise UserError(f"cluster has shape {group.shape}: it must be [device] = ({devices},), as counts says")
    number = int(group.max()) + 1
    if len(np.unique(group)) != number:
        raise UserError("cluster must number the clusters 0, 1, 2, … without a gap")
    if budget is None:
        return group, None
    allowance = real("budget", budget, 0.0, MOST**2)  # a sum over many devices
    if allowance.shape != (number,):
        raise UserError(f"budget has shape {allowance.shape}: it must be [cluster] = ({number},), as cluster says")
    return group, allowance
