"""What people take out of a run folder: models, who holds what, and graphs, each named METHOD-seed-SEED.

models/….pt      the final weights as a plain state dictionary: torch.load(path, weights_only=True)
holdings/….npz   rows and device, equally long: device[k] holds rows[k] after the exchange; names[device[k]] is its name
graphs/….json    links, expected datapoints and loss probabilities; graphs/….graphml the same for Gephi, yEd, igraph
                 (more than 2,000 devices: graphs/….npz instead, the same as arrays)
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.discover import Discovery
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.findings.crowd import graph_arrays
from d2dfl.experiment.findings.maps import MANY
from d2dfl.experiment.pipeline import PreparedCell
from d2dfl.experiment.trained_models import MODELS, file_names
from d2dfl.experiment.training import save_weights
from d2dfl.storage import make_folder, write_whole

HOLDINGS, GRAPHS = "holdings", "graphs"


def write_exports(comparison: Comparison, folder: Path) -> None:
    """All files; the same comparison gives the same bytes."""
    for name in (MODELS, HOLDINGS, GRAPHS):
        make_folder(folder / name)
    names = file_names(comparison.cells)
    for name, weights in zip(names, comparison.weights, strict=False):  # none: they were written when training ended
        save_weights(weights, folder / MODELS / f"{name}.pt")
    for name, item in zip(names, comparison.prepared, strict=True):
        write_whole(folder / HOLDINGS / f"{name}.npz", holdings_file(item, comparison.dataset.rows))
        if item.discovery is not None and len(item.holdings) > MANY:
            write_whole(folder / GRAPHS / f"{name}.npz", graph_arrays(item.discovery))
        elif item.discovery is not None:
            found = item.discovery
            write_whole(folder / GRAPHS / f"{name}.json", json.dumps(graph_record(found), allow_nan=False).encode())
            write_whole(folder / GRAPHS / f"{name}.graphml", found.graph.to_graphml(found.network).encode())


def holdings_file(item: PreparedCell, rows: NDArray[np.int64] | None) -> bytes:
    """Who holds what as .npz. Rows are those of a user's own file, or of the training part of a dataset."""
    holdings, network = item.holdings, item.setting.network
    names = np.array([network.device_name(device) for device in range(network.devices)])
    held = np.concatenate([np.asarray(points, dtype=np.int64) for points in holdings])
    device = np.repeat(np.arange(len(holdings)), [len(points) for points in holdings])
    buffer = io.BytesIO()  # NumPy gives the members of an archive no time, so that bytes repeat
    np.savez_compressed(buffer, rows=held if rows is None else rows[held], device=device, names=names)
    return buffer.getvalue()


def graph_record(found: Discovery) -> dict[str, Any]:
    """The graph as plain values; nothing that depends on how fast it was found."""
    graph, network = found.graph, found.network
    receiver, edge = graph.links
    return {
        "method": found.method,
        "seed": found.seed,
        "devices": graph.devices,
        "names": [network.device_name(device) for device in range(graph.devices)],
        "partitions": [network.partition_name(place) for place in range(network.partitions)],
        **graph.to_dict(),  # edges [transmitter, receiver], expected_datapoints [edge][partition]
        "drop": graph.drop[receiver, edge].tolist(),
        "cluster": found.network.cluster.tolist(),
        "counts_before": found.network.counts.tolist(),
        "expected_counts_after": found.evaluation.counts_after.tolist(),
    }
