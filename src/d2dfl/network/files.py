"""Networks in files: .npz (NumPy, never pickled) and .json."""

import io
import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.data.arrays import read_npz
from d2dfl.errors import UserError
from d2dfl.memory import check_memory
from d2dfl.network.checks import CLUSTERED, KNOWN, REQUIRED
from d2dfl.network.clusters import dense
from d2dfl.network.network import Network
from d2dfl.storage import read_json, write_whole

FORMAT = 2  # in the first, which did not say so, trust was [transmitter, receiver, partition]
DENSE_LIMIT = 1000  # beyond, files hold the slot layout: an N x N table would be mostly empty


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a network file by name, unchecked but for the order of trust: receiver first."""
    arrays = _read(path)
    said = arrays.pop("format", None)
    if said is None and "trust" in arrays and "candidates" not in arrays:
        raise UserError(
            f"{path} holds trust and does not say in which order: write format={FORMAT} beside "
            "trust[receiver, transmitter, partition]; files without a format had the transmitter first"
        )
    value = said.item() if isinstance(said, np.ndarray) and said.size == 1 else said
    if said is not None and (type(value) is not int or value != FORMAT):
        raise UserError(f"{path} has the format {value!r:.40}: give a network file of the format {FORMAT}")
    return arrays


def _read(path: Path) -> dict[str, Any]:
    """Whatever stands in a network file, the format included."""
    known = (*KNOWN, "format")
    arrays = read_npz(path, known) if path.suffix == ".npz" else _read_json(path) if path.suffix == ".json" else None
    if arrays is None:
        raise UserError(f"cannot tell the format of {str(path)!r}: give a file that ends in .npz or .json")
    unknown = [name for name in arrays if name not in known]
    if unknown:
        raise UserError(f"{path} holds {unknown[0]!r:.80}, which no network has: the arrays are {', '.join(known)}")
    return arrays


def load_network(path: Path, config: ChannelConfig | None = None) -> Network:
    """Read a network of one's own; every array is checked."""
    arrays = read_arrays(path)
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        raise UserError(f"{path} has no {missing[0]}: a network needs {', '.join(REQUIRED)}, and drop or rss")
    try:
        return Network.from_arrays(**arrays, config=config)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def check_network_name(path: Path) -> None:
    """Refuse a name that does not say the format."""
    if path.suffix not in (".npz", ".json"):
        raise UserError(f"cannot tell the format of {str(path)!r}: name a file that ends in .npz or .json")


def check_replaceable(path: Path) -> None:
    """Refuse the name of a file that is there and is no network: somebody's data may have the same ending."""
    if not os.path.exists(path):
        return
    try:
        there: Collection[str] = _read(path)
    except UserError:
        there = ()
    if not all(name in there for name in REQUIRED):
        raise UserError(f"{path} is there and is no network of d2dfl: name another file")


def save_network(network: Network, path: Path) -> None:
    """Write a network so that `load_network` gives it back. Up to 1,000 devices as plain tables, else in slots."""
    check_network_name(path)
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(FORMAT),
        "counts": network.counts,
        "threshold": network.threshold,
    }
    if network.devices <= DENSE_LIMIT:
        arrays["trust"] = _dense_trust(network)
        arrays["drop"] = dense(network.candidates, network.drop, missing=1.0)
        np.fill_diagonal(arrays["drop"], 0.0)
    else:
        arrays |= {
            "candidates": network.candidates,
            "trust": network.trust.astype(np.uint8),
            "drop": network.drop,
        }
    arrays |= {"cluster": network.cluster, "budget": network.budget}
    for name in ("positions", *CLUSTERED, "label_distance"):
        if getattr(network, name) is not None:
            arrays[name] = getattr(network, name)
    if path.suffix == ".npz":
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **cast(dict[str, Any], arrays))
        write_whole(path, buffer.getvalue())
    else:
        write_whole(path, json.dumps({name: array.tolist() for name, array in arrays.items()}).encode())


def _dense_trust(network: Network) -> NDArray[np.uint8]:
    devices, partitions = network.counts.shape
    table = np.zeros((devices, devices, partitions), dtype=np.uint8)
    receiver, slot = np.nonzero(network.candidates >= 0)
    table[receiver, network.candidates[receiver, slot]] = network.trust[receiver, slot]
    return table


def _read_json(path: Path) -> dict[str, Any]:
    with suppress(OSError):  # of a file that is not there, reading it says so
        check_memory(10.0 * path.stat().st_size, f"{path} needs", "give the network as .npz")
    content = read_json(path, "a JSON file with the arrays by name")
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a JSON object: give one object with the arrays by name")
    return content
