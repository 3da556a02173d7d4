"""How discoveries went, in a run folder: for `d2dfl replay`.

traces/METHOD-seed-SEED.json     the links that changed from moment to moment, by their transmitters; no times
traces/network-SEED-METHOD.npz   the network that the method knew; of several that are the same, the first alone
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.config import Config
from d2dfl.discovery.discover import splits
from d2dfl.discovery.trace import MOST_MOMENTS, Moment, Slots, Trace
from d2dfl.errors import UserError
from d2dfl.experiment.findings.maps import MANY
from d2dfl.experiment.folder.mark import read_mark
from d2dfl.network import Network
from d2dfl.network.files import load_network, save_network
from d2dfl.report.look import slug
from d2dfl.storage import make_folder, read_json, write_whole
from d2dfl.terminal import plain

TRACES = "traces"
FORMAT = 1
MOST_CHANGES = 200_000  # numbers of links in a file: some two megabytes
MOST_TABLE = 20_000_000  # entries of a network's table of trust that is kept for a replay


@dataclass(frozen=True)
class KeptTrace:
    """A discovery that can be stepped through."""

    trace: Trace
    config: Config

    @property
    def name(self) -> str:
        return trace_name(self.trace.method, self.trace.seed)


def trace_name(method: str, seed: int) -> str:
    """What a discovery is called in a folder and on a page."""
    return f"{slug(method)}-seed-{seed}"


def traced(devices: int) -> bool:
    """Whether discoveries of so many devices are recorded: of more, no map could show them."""
    return devices <= MANY


def save_traces(traces: Sequence[Trace], config: Config, folder: Path) -> None:
    """Write what was heard; what is too large for a run folder is left out."""
    files: dict[int, str] = {}  # of networks, by what they are in memory
    for trace in traces:
        network = trace.network
        if network is None or network.trust.size > MOST_TABLE:
            continue
        make_folder(folder / TRACES)
        name = KeptTrace(trace, config).name
        if id(network) not in files:
            files[id(network)] = f"network-{trace.seed}-{slug(trace.method)}.npz"
            save_network(network, folder / TRACES / files[id(network)])
        content = _plain(trace, network, config, files[id(network)])
        write_whole(folder / TRACES / f"{name}.json", json.dumps(content, allow_nan=False).encode())


def _plain(trace: Trace, network: Network, config: Config, file: str) -> dict[str, Any]:
    moments = trace.moments
    changes = _changes(moments, network, config, trace.method)
    while sum(map(len, changes)) > MOST_CHANGES and len(moments) > 2:
        moments = every_second(moments)
        changes = _changes(moments, network, config, trace.method)
    return {
        "format": FORMAT,
        "method": trace.method,
        "seed": trace.seed,
        "network": file,
        "devices": list(network.device_names),
        "partitions": list(network.partition_names),
        "edges": [slots.shape[1] for slots in moments[-1].stages] if moments else [],
        "moments": [
            {"share": one.share, "messages": one.messages, "temperature": one.temperature, "links": rows}
            for one, rows in zip(moments, changes, strict=True)
        ],
    }


def every_second(moments: Sequence[Any]) -> list[Any]:
    """Half of the moments, or of what belongs to each; the first and the last stay."""
    return [moments[0], *moments[-1:0:-2][::-1]]


def _changes(moments: Sequence[Moment], network: Network, config: Config, method: str) -> list[list[list[int]]]:
    """[moment] rows (stage, receiver, edge, transmitter) of links that are not as before; -1: no link.

    Where a link has a partition (R17), the number is transmitter · partitions + partition.
    """
    parts = network.partitions if splits(config, method) else 1
    last: tuple[Slots, ...] = ()
    found = []
    for moment in moments:
        rows: list[list[int]] = []
        for stage, slots in enumerate(moment.stages):
            before = last[stage] if stage < len(last) else np.full_like(slots, -1)
            receiver, edge = np.nonzero(slots != before)
            slot = slots[receiver, edge]
            end = np.where(slot >= 0, network.candidates[receiver, slot // parts] * parts + slot % parts, -1)
            rows += np.stack([np.full_like(receiver, stage), receiver, edge, end], axis=1).tolist()
        found.append(rows)
        last = moment.stages
    return found


def load_traces(folder: Path) -> list[KeptTrace]:
    """All discoveries that a run folder can replay; whatever is wrong with a file is one sentence."""
    mark = read_mark(folder)
    paths = sorted((folder / TRACES).glob("*.json"))
    if not paths:
        raise UserError(
            f"{plain(folder)} holds no recorded discovery: those of discover --out, run and compare do, up to "
            f"{MANY:,} devices"
        )
    config = Config().with_toml(mark["config"])
    networks: dict[str, Network] = {}
    found = []
    for path in paths:
        content = read_json(path, "a recorded discovery")
        try:
            found.append(KeptTrace(_read(content, path, config, networks), config))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{plain(path)} is not a recorded discovery: {plain(error):.80}") from None
    order = mark["plan"].get("methods")
    known = order if isinstance(order, list) else []
    return sorted(found, key=lambda one: (one.trace.seed, _rank(known, one.trace.method), one.name))


def _rank(order: Sequence[Any], method: str) -> int:
    return order.index(method) if method in order else len(order)


def _read(content: Any, path: Path, config: Config, networks: dict[str, Network]) -> Trace:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"{plain(path)} was written by another version of d2dfl")
    file, method, seed = content["network"], content["method"], content["seed"]
    if not isinstance(file, str) or Path(file).name != file or not file.startswith("network-"):
        raise ValueError(f"it names the network {file!r:.40}")
    if not isinstance(method, str) or not isinstance(seed, int) or len(content["moments"]) > MOST_MOMENTS:
        raise ValueError("its method, its seed or its moments are none")
    if file not in networks:
        networks[file] = load_network(path.parent / file, config.channel)
    network = replace(
        networks[file], device_names=_names(content["devices"]), partition_names=_names(content["partitions"])
    )
    trace = Trace()
    trace.begin(network, method, seed)
    trace.moments = _moments(content, network, network.partitions if splits(config, method) else 1)
    return trace


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("its names are not texts")
    return tuple(values)


def _moments(content: Mapping[str, Any], network: Network, parts: int) -> list[Moment]:
    """The links of every moment, from what changed; numbers that do not fit the network raise."""
    slot_of = [
        {int(sender): slot for slot, sender in enumerate(row) if sender >= 0} for row in network.candidates.tolist()
    ]
    stages = [np.full((network.devices, int(edges)), -1, dtype=np.int32) for edges in content["edges"]]
    begun, found = 0, []
    for each in content["moments"]:
        for stage, receiver, edge, end in each["links"]:
            if min(stage, receiver, edge) < 0 or end < -1:
                raise ValueError("a link has a number below 0")
            stages[stage][receiver, edge] = -1 if end < 0 else slot_of[receiver][end // parts] * parts + end % parts
            begun = max(begun, stage + 1)
        heat = each["temperature"]
        kept = tuple(slots.copy() for slots in stages[: max(begun, 1)])
        found.append(Moment(float(each["share"]), float(each["messages"]), None if heat is None else float(heat), kept))
    return found
