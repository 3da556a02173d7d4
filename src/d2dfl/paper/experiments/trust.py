"""Fig. 16 and 17: random, block, row-sparse and column-sparse trust; CIFAR-10 and SVHN, supervised, 20 devices."""

import io
from pathlib import Path

import numpy as np

from d2dfl.paper import OURS, SYSTEMS, Array, Experiment, Point, Results, Shown, task, text
from d2dfl.report.findings import Picture, Table
from d2dfl.storage import write_whole

RULES = {"random": "random:0.5", "block": "block", "rows": "rows:0.5", "columns": "columns:0.5"}
DATA = {"CIFAR-10": "cifar10", "SVHN": "svhn"}


def points(scale: str) -> list[Point]:
    return [
        Point(f"{title}, {name}", {**task(dataset, scale, devices=20), "network.trust": rule})
        for title, dataset in DATA.items()
        for name, rule in RULES.items()
    ]


def show(results: Results) -> Shown:
    quantities: dict[str, dict[str, Array]] = {}
    tables = []
    for title in DATA:
        own = {point.name.split(", ")[1]: point for point in results.points if point.name.startswith(title)}
        for system in SYSTEMS:
            scores = {name: results.final(point, system.name) for name, point in own.items()}
            structured = max((scores[name] for name in ("block", "rows", "columns")), key=np.nanmean)
            sparse = max((scores[name] for name in ("block", "rows")), key=np.nanmean)
            quantities.setdefault(f"random @ {title}", {})[system.name] = scores["random"] - structured
            quantities.setdefault(f"columns @ {title}", {})[system.name] = scores["columns"] - sparse
        rows = tuple(
            (item.title, *(text(results.final(point, item.name)) for point in own.values()))
            for item in results.contenders(own["random"])
        )
        tables.append(Table(f"Final accuracy, {title}", ("method", *own), rows))
    return Shown(quantities, tuple(tables), pictures=(Picture("Whom device 3 trusts with which label", "trust.png"),))


def draw(results: Results, folder: Path) -> None:
    """Fig. 16: what transmitter 3 may send to whom, one panel a structure; a point marks labels that it holds."""
    from matplotlib.figure import Figure

    from d2dfl import Network

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    panels = figure.subplots(1, len(RULES), sharey=True)
    for axes, (name, rule) in zip(panels, RULES.items(), strict=True):
        network = Network.generate(results.points[0].config(OURS).with_(network__trust=rule), 0)
        receivers, slots = np.nonzero(network.candidates == 3)
        trusted = np.zeros((network.devices, network.partitions))
        trusted[receivers] = network.trust[receivers, slots]
        axes.imshow(trusted, aspect="auto", cmap="Greens", vmin=0, vmax=1.4, interpolation="nearest")
        held = np.nonzero(network.counts[3])[0]
        axes.plot(held, np.full(len(held), 3), "o", color="#efb03f", markersize=5)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("label")
        axes.set_xticks(range(0, network.partitions, 3))
    figure.axes[0].set_ylabel("receiver")
    figure.axes[0].set_yticks(range(0, len(trusted), 5))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    write_whole(folder / "trust.png", buffer.getvalue())


EXPERIMENT = Experiment("trust", points, show, drawn=draw)
