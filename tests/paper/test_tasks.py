"""Learning tasks at each scale: what a claim needs of them."""

import pytest

from d2dfl.config import Config
from d2dfl.paper.catalogue import experiment_names, load_experiment
from d2dfl.paper.experiment import SCALES
from d2dfl.paper.tasks import DATA, task


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dataset", ["fmnist", "usps"])
def test_rounds_without_labels_are_counted_one_by_one(scale: str, dataset: str) -> None:
    settings = task(dataset, scale, devices=10, paradigm="unsupervised")
    assert Config().with_(**settings).federation.evaluate_every == 1


@pytest.mark.parametrize("scale", SCALES)
def test_all_contenders_without_labels_minimise_the_papers_loss(scale: str) -> None:
    found = set()
    for name in experiment_names():
        for point in load_experiment(name).points(scale):
            if point.paradigm == "unsupervised":
                found.add(name)
                views = {point.config(contender).federation.views for contender in point.contenders}
                assert views == {"literal"}, f"{name}, {point.name} (R42)"
    assert {"curve-unsup", "fedprox", "fedsgd", "embedding", "kmeans", "pca"} <= found


def test_supervised_tasks_are_evaluated_as_before() -> None:
    found = {scale: task("cifar10", scale).get("federation.evaluate_every", 1) for scale in SCALES}
    assert found == {"tiny": 1, "small": 3, "paper": 4}
    assert all(task(name, "paper")["data.samples"] <= data.samples for name, data in DATA.items())
