"""How well every device is served: its model, tested on labels as often as the device meets them.

A test part has all labels alike, and where there is a server everybody holds the same model: one number for all. A device meets
its own labels, in the shares in which it held them before the exchange. Its score is therefore that of its model on each
label, weighted with these shares. An encoder is tested as its curve is, with a linear classifier on what it gives; a regression on ranges
of the target, where the score is an error.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from d2dfl.config import FederationConfig
from d2dfl.data import Dataset
from d2dfl.experiment.cells.results import Results
from d2dfl.experiment.findings.charts import line
from d2dfl.federation import Federated, State, embeddings
from d2dfl.federation.evaluation import PROBED
from d2dfl.federation.models import Factory
from d2dfl.federation.probe import linear_answers
from d2dfl.report.findings import Chart, Table
from d2dfl.rng import stream
from d2dfl.terminal import UNKNOWN, number
from d2dfl.words import counted

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MOST_MODELS = 200  # models that are tested once more
MOST_ROWS = 2000  # of a table
TESTS, LEAST_TESTS = 20_000, 400  # of all models of a cell together, and of one at least
PLACES = 200  # devices along the axis of a chart, at most
KEY = "device_scores"  # of a cell's values


def label_scores(
    factory: Factory, data: Federated, state: State, dataset: Dataset, settings: FederationConfig, truth: Indices
) -> Array | None:
    """[model, label] mean score on test datapoints of a label, or of a range of targets; NaN for those without any.

    None where more models differ than can be tested. `truth` are the labels or ranges of the training part.
    """
    models, loss = len(state.params), data.objective(settings)
    if models > (MOST_MODELS if loss.probe is None else PROBED):
        return None
    rows = _tested(len(dataset.test_inputs), models)
    wanted, labels = _labels(dataset, truth, rows), max(dataset.classes, int(truth.max()) + 1)
    targets = torch.from_numpy(dataset.test_targets[rows])
    learned = np.sort(stream(state.seed, "probe").permutation(len(data.inputs))[: settings.probe])
    tested = np.bincount(wanted, minlength=labels)
    scores = np.full((models, labels), np.nan)
    for model in range(models):
        outputs = torch.from_numpy(embeddings(factory, data, state, dataset.test_inputs[rows], model))
        if loss.probe is None:
            each = loss.score(outputs, targets)
        else:  # as the score of the curve is found: by what a linear classifier learns from the training part
            before = torch.from_numpy(embeddings(factory, data, state, data.inputs[learned], model))
            each = linear_answers(before, torch.from_numpy(data.targets[learned]), outputs) == targets
        sums = np.bincount(wanted, weights=each.double().numpy(), minlength=labels)
        scores[model, tested > 0] = sums[tested > 0] / tested[tested > 0]
    return scores


def _labels(dataset: Dataset, truth: Indices, rows: Indices) -> Indices:
    """Labels of test datapoints; where targets are numbers, the range of the training part in which they fall."""
    targets = dataset.test_targets[rows]
    if dataset.classes:
        return targets.astype(np.int64)
    known = dataset.train_targets.reshape(len(truth))
    ends = [known[truth == number].max() for number in range(int(truth.max())) if (truth == number).any()]
    return np.searchsorted(np.maximum.accumulate(ends), targets.reshape(len(rows))).astype(np.int64)


def _tested(tests: int, models: int) -> NDArray[np.int64]:
    """Test datapoints, evenly spread, so that many large models do not take longer to look at than to train."""
    most = max(LEAST_TESTS, TESTS // models)
    return np.unique(np.linspace(0, tests - 1, min(tests, most)).astype(np.int64))


def device_scores(scores: Array, held: Array) -> list[float | None]:
    """[device] scores of its model on labels in the shares in which it holds them, held[device, label].

    None for a device that holds none of the labels in the test part.
    """
    there = np.isfinite(scores).all(axis=0)
    rows, shares = np.broadcast_to(scores, (len(held), scores.shape[1]))[:, there], held[:, : scores.shape[1]][:, there]
    totals = shares.sum(axis=1)
    return [
        float(row @ share / total) if total > 0 else None
        for row, share, total in zip(rows, shares, totals, strict=True)
    ]


def device_chart(results: Results) -> Chart | None:
    """Scores of devices, sorted for every seed; None where nobody measured them."""
    (point,) = results.points
    lines = []
    for contender in results.contenders(point):
        cells = [cell[KEY] for cell in results.cells(point, contender.name) if cell.get(KEY)]
        if cells:
            sign = results.sign(point)  # an error is sorted from the largest
            rows = [sign * np.sort([np.nan if one is None else sign * one for one in scores]) for scores in cells]
            places = np.unique(np.linspace(0, len(rows[0]) - 1, min(len(rows[0]), PLACES)).astype(np.int64))
            lines.append(line(contender, (places + 1).astype(np.float64), np.stack(rows)[:, places]))
    if not lines:
        return None
    return Chart(
        f"Every device on its own {'labels' if results.sign(point) > 0 else 'ranges of the target'}",
        "devices, from the worst",
        f"own {results.score_name(point)}",
        tuple(lines),
    )


def device_table(results: Results, names: list[str], held: dict[int, list[int]]) -> Table | None:
    """The same device by device; `held` is how many datapoints each has at first, by seed."""
    (point,) = results.points
    methods = [item.name for item in results.contenders(point)]
    rows = []
    for seed in results.seeds:
        cells = [results.found.get((point.name, name, seed), {}).get(KEY) for name in methods]
        if any(cells):
            rows += [
                (
                    name,
                    str(seed),
                    f"{held[seed][device]:,}",
                    *(number(scores[device], 3) if scores else UNKNOWN for scores in cells),
                )
                for device, name in enumerate(names)
            ]
    if not rows:
        return None
    meaning = f"{results.score_name(point)} on the labels of the device, in the shares in which it held them at first"
    left = f"; the first {MOST_ROWS:,} of {counted(len(rows), 'row')}" if len(rows) > MOST_ROWS else ""
    return Table(
        "By device",
        ("device", "seed", "held", *methods),
        tuple(rows[:MOST_ROWS]),
        f"columns of methods: {meaning}{left}",
        ("", "", "datapoints before the exchange", *(f"own {results.score_name(point)}" for _ in methods)),
    )
