"""Data, models and lengths of the paper's learning tasks at each scale.

tiny: sets that ship with scikit-learn, a few devices and rounds; everything runs, nothing is learned well.
small: the paper's data, fewer datapoints and rounds, small networks; for a laptop.
paper: sizes and models of Section VI and Appendix C; for one GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from d2dfl.config.sections.learning import SUPERVISED
from d2dfl.registry import entry_named

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class TaskData:
    """A set of the paper, and what its tasks have of their own."""

    samples: int  # a device at the paper's scale (Appendix C)
    available: int = 60_000  # training datapoints that a skewed allocation can count on
    embedded: str = "digits"  # the set that stands in for it at the tiny scale
    embedded_samples: int = 60  # a device there
    small_model: str = "cnn-lite"
    model: str = "alexnet"  # at the paper's scale
    encoder: str = "encoder-conv"  # there, without labels
    training: Settings = field(default_factory=dict)  # at the scales that train on the set itself
    by_scale: Mapping[str, Settings] = field(default_factory=dict)  # whatever trains


def _signals(each: int, lowest_db: int) -> Settings:
    """How many signals of a modulation and SNR, and from which SNR on."""
    return {"radio.per_cell": each, "radio.lowest_snr_db": lowest_db}


ANY_PART = {"data.verify": False}  # a part of the set will do
# At a learning rate of 0.01 one run in ten has a loss that is no longer a number.
CALM = {"federation.learning_rate": 0.003, "federation.rounds": 40, "federation.evaluate_every": 1}

# The paper says nothing about how much of California a device holds. USPS has fewer datapoints than 10 devices with 2,600
# (augmented) need.
DATA = {
    "radio": TaskData(
        990,
        available=24_750,
        embedded="radio",
        small_model="cnn1d-lite",
        model="alexnet1d",
        by_scale={"tiny": _signals(24, 10), "small": _signals(240, 10), "paper": _signals(400, 0)},
    ),
    "cifar10": TaskData(1200),
    "svhn": TaskData(1200, available=30_000, by_scale=dict.fromkeys(("tiny", "small", "paper"), ANY_PART)),
    "fmnist": TaskData(6000),
    "usps": TaskData(2600, available=6000, encoder="encoder-mlp"),
    "california": TaskData(
        600,
        available=15_000,
        embedded="diabetes",
        embedded_samples=30,
        small_model="mlp",
        model="mlp",
        training=CALM,
    ),
}


def task(dataset: str, scale: str, *, devices: int = 25, paradigm: str = SUPERVISED) -> dict[str, Any]:
    """Settings of a learning task."""
    data, unsupervised = entry_named("dataset", dataset, DATA), paradigm == "unsupervised"
    settings: dict[str, Any] = {"data.dataset": dataset, "network.devices": devices}
    settings |= {"tiny": _tiny, "small": _small, "paper": _paper}[scale](data, devices, unsupervised)
    if unsupervised:
        settings["federation.evaluate_every"] = 1  # the claim is in rounds: "60 % 2 to 3 times faster"
    return {**settings, **data.by_scale.get(scale, {})}


def _tiny(data: TaskData, devices: int, unsupervised: bool) -> dict[str, Any]:
    return {  # steps and evaluations without labels take ten times as long
        "data.dataset": data.embedded,
        "data.samples": data.embedded_samples,
        "network.devices": min(devices, 6 if unsupervised else 8),
        "federation.model": "encoder-mlp" if unsupervised else "mlp",
        "federation.rounds": 3 if unsupervised else 5,
        "federation.interval": 2 if unsupervised else 4,
        "federation.batch": 16,
        "federation.neighbours": 3,
        "federation.subset": 3,
        "qlearning.steps": 300,
        "marginal.messages": 100,
        "gcn.epochs": 2,
        "gcn.systems": 2,
        "partition.components": 6,
        "partition.clusters": 4,
        "partition.ranges": 5,
    }


def _small(data: TaskData, devices: int, unsupervised: bool) -> dict[str, Any]:
    return {
        "data.samples": min(600 if unsupervised else 300, data.samples),
        "federation.model": "encoder-mlp" if unsupervised else data.small_model,
        "federation.rounds": 30,
        "federation.interval": 10,
        "federation.batch": 32 if unsupervised else 16,
        "federation.learning_rate": 1e-3 if unsupervised else 0.03,
        "federation.evaluate_every": 3,
        **data.training,
    }


def _paper(data: TaskData, devices: int, unsupervised: bool) -> dict[str, Any]:
    return {
        "data.samples": min(data.samples, data.available // devices),
        "federation.model": data.encoder if unsupervised else data.model,
        "federation.rounds": 40,
        "federation.interval": 10,
        "federation.evaluate_every": 4,
        **data.training,
    }
