"""Fig. 16 and 17: random, block, row-sparse and column-sparse trust; CIFAR-10 and SVHN, supervised, 20 devices.

R46: rows in two readings. Appendix D: each transmitter closes half of the receivers, others than its neighbour does, so that
everybody still finds somebody. Section III: insecure devices receive nothing from anybody. Beside accuracy stands what trust
acts on, the distance to i.i.d. after the exchange, over many networks and without training.
"""

import io
from pathlib import Path

import numpy as np

from d2dfl.paper import (
    FIVE,
    OURS,
    PAPERS,
    PAPERS_OURS,
    SYSTEMS,
    Array,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    Values,
    final,
    task,
    text,
)  # fmt: skip
from d2dfl.paper.leads import Value
from d2dfl.report.findings import Picture, Table
from d2dfl.storage import write_whole

RULES = {
    "random": "random:0.5",
    "block": "block:0.5",
    "rows": "rows:0.5",
    "columns": "columns:0.5",
    "insecure": "insecure:0.5",
}
DATA = {"CIFAR-10": "cifar10", "SVHN": "svhn"}
DISTANCE = "distance"
NETWORKS = {"tiny": 2, "small": 15, "paper": 15}
MOVERS = (PAPERS, PAPERS_OURS, OURS, FIVE)


def points(scale: str) -> list[Point]:
    trained = [
        Point(f"{title}, {name}", {**task(dataset, scale, devices=20), "network.trust": rule}, contenders=SYSTEMS)
        for title, dataset in DATA.items()
        for name, rule in RULES.items()
    ]
    settings = task("cifar10", scale, devices=20)
    return trained + [
        Point(
            name=f"{DISTANCE}, {name}",
            settings={**settings, "network.trust": rule},
            contenders=MOVERS,
            trains=False,
            seeds=NETWORKS[scale],
        )
        for name, rule in RULES.items()
    ]


def nearer(cell: Values) -> float:
    """Share of the total variation to i.i.d. that the exchange takes away."""
    return float(1.0 - cell["after"]["total-variation"] / cell["before"]["total-variation"])


def show(results: Results) -> Shown:
    quantities: Quantities = {}
    tables = []
    for title in (DISTANCE, *DATA):
        own = {point.name.split(", ")[1]: point for point in results.points if point.name.startswith(title)}
        of: Value = nearer if title == DISTANCE else final
        for system in results.systems(*own.values()):
            scores = {name: results.each(point, system.name, of) for name, point in own.items()}
            for key, values in compared(scores).items():
                name = f"{key}-distance" if title == DISTANCE else f"{key} @ {title}"
                quantities.setdefault(name, {})[system.name] = values
        rows = tuple(
            (item.title, *(text(results.each(point, item.name, of)) for point in own.values()))
            for item in results.contenders(own["random"])
        )
        what = "Fall of the total variation to i.i.d." if title == DISTANCE else f"Final accuracy, {title}"
        tables.append(Table(what, ("method", *own), rows))
    return Shown(quantities, tuple(tables), pictures=(Picture("Whom device 3 trusts with which label", "trust.png"),))


def compared(scores: dict[str, Array]) -> dict[str, Array]:
    """[seed] one structure above the best of others in the mean, with rows in both readings."""

    def best(*names: str) -> Array:
        return max((scores[name] for name in names), key=np.nanmean)

    return {
        "random": scores["random"] - best("block", "rows", "columns", "insecure"),
        "columns": scores["columns"] - best("block", "insecure"),
        "columns-rows": scores["columns"] - best("block", "rows"),
    }


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
