"""Table III: system agreement between label mixes of Dirichlet(alpha) before and after.

Two independent systems of 10 devices in 8 dimensions, 10 Gaussian classes; a device's data clusters are its own K-means.
"""

from itertools import product

import numpy as np

from d2dfl.config import RewardConfig
from d2dfl.paper import NONE, Cell, Experiment, Point, Results, Shown, Values, each, text
from d2dfl.paper.catalogue import scripts_folder
from d2dfl.paper.verdicts import expected
from d2dfl.report.findings import Table
from d2dfl.rng import stream
from d2dfl.terminal import number

DEVICES, CLASSES, COMPONENTS, CLUSTERS = 10, 10, 8, 7
BETWEEN = 1.3  # variance between classes over variance within, as on 8 components of digits and Fashion-MNIST
SAMPLES = {"tiny": 100, "small": 600, "paper": 6000}
SEEDS = {"tiny": 2, "small": 10, "paper": 10}
PAPER = expected(scripts_folder())["agreement"].numbers


def points(scale: str) -> list[Point]:
    return [
        Point(f"{before:g} to {after:g}", {"data.samples": SAMPLES[scale]}, "unsupervised", (NONE,))
        for before, after in product(PAPER["alphas"], PAPER["alphas"])
    ]


def measure(cell: Cell) -> Values:
    from d2dfl.discovery.equations.gaussian import pair_divergences
    from d2dfl.discovery.equations.worth import agreement_between
    from d2dfl.partition.kmeans import own_clusters

    rng = stream(cell.seed, "agreement", cell.point)
    centres = stream(cell.seed, "agreement-classes").normal(0.0, np.sqrt(BETWEEN), (CLASSES, COMPONENTS))
    systems = [drawn(centres, float(alpha), cell.config.data.samples, rng) for alpha in cell.point.split(" to ")]
    ridge = RewardConfig().ridge * np.concatenate(systems[0]).var(axis=0).mean() * np.eye(COMPONENTS)
    tables = []
    for devices in systems:
        sizes = [len(held) for held in devices]
        holdings = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        own = own_clusters(devices, holdings, sum(sizes), CLUSTERS, cell.seed)
        tables.append(pair_divergences(own.centroids, own.covariances + ridge))
    return {"agreement": agreement_between(tables[0], tables[1], "ratio")}


def drawn(centres: np.ndarray, alpha: float, samples: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Each device draws its mix of classes, then datapoints."""
    found = []
    for _ in range(DEVICES):
        labels = np.repeat(np.arange(CLASSES), rng.multinomial(samples, rng.dirichlet(np.full(CLASSES, alpha))))
        found.append(centres[labels] + rng.normal(size=(samples, COMPONENTS)))
    return found


def show(results: Results) -> Shown:
    side, paper = len(PAPER["alphas"]), np.array(PAPER["table"])
    found = np.array([results.each(point, NONE.name, lambda cell: cell["agreement"]) for point in results.points])
    ours = found.reshape(side, side, -1).transpose(2, 0, 1)  # [seed, before, after]
    ours = ours[np.isfinite(ours).all(axis=(1, 2))]  # seeds of which all is there
    off = ~np.eye(side, dtype=bool)
    signs = np.array([(np.sign(table) == np.sign(paper))[off].sum() for table in ours], dtype=float)
    steps = np.array([(np.diff(t, axis=1) > 0).sum() + (np.diff(t, axis=0) < 0).sum() for t in ours], dtype=float)
    quantities = {
        "signs": {"agreement": signs},
        "steps": {"agreement": steps},
    }
    rows = tuple(
        (
            f"{alpha:g}",
            *(f"{text(ours[:, n, m], 2)} ({number(float(paper[n, m]), 2)})" for m in range(side)),
        )
        for n, alpha in enumerate(PAPER["alphas"])
    )
    columns = ("before \\ after", *(f"{alpha:g}" for alpha in PAPER["alphas"]))
    return Shown(quantities, (Table("System agreement, ours (the paper's)", columns, rows),))


EXPERIMENT = Experiment(
    "agreement",
    points,
    show,
    each(measure),
    SEEDS,
    setting=f"{DEVICES} devices, {CLASSES} Gaussian classes in {COMPONENTS} dimensions, {CLUSTERS} clusters a device",
    trains=False,
)
