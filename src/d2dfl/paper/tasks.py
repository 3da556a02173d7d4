"""Data, models and lengths of the paper's learning tasks at each scale.

tiny: sets that ship with scikit-learn, a few devices and rounds; everything runs, nothing is learned well.
small: the paper's data, fewer datapoints and rounds, small networks; for a laptop.
paper: sizes and models of Section VI and Appendix C; for one GPU.
"""

from typing import Any

from d2dfl.config.sections.learning import SUPERVISED

# Appendix C; the paper says nothing about California. USPS has fewer datapoints than 10 devices with 2,600 (augmented) need.
SIZES = {"radio": 990, "cifar10": 1200, "svhn": 1200, "fmnist": 6000, "usps": 2600, "california": 600}
CALM = 0.003  # learning rate of California Housing: at 0.01 one run in ten has a loss that is no longer a number
EMBEDDED = {"radio": "radio", "california": "diabetes"}  # what stands in at the tiny scale; digits for images
SIGNALS = {"tiny": (24, 10), "small": (240, 10), "paper": (400, 0)}  # signals of a modulation and SNR, lowest SNR in dB


def task(dataset: str, scale: str, *, devices: int = 25, paradigm: str = SUPERVISED) -> dict[str, Any]:
    """Settings of a learning task."""
    settings: dict[str, Any] = {"data.dataset": dataset, "network.devices": devices}
    settings |= {"tiny": _tiny, "small": _small, "paper": _paper}[scale](dataset, devices, paradigm)
    if paradigm == "unsupervised":
        settings["federation.evaluate_every"] = 1  # the claim is in rounds: "60 % 2 to 3 times faster"
    if dataset == "radio":
        each, lowest = SIGNALS[scale]
        settings |= {"radio.per_cell": each, "radio.lowest_snr_db": lowest}
    if dataset == "svhn":
        settings["data.verify"] = False  # a part of the set will do
    return settings


def _tiny(dataset: str, devices: int, paradigm: str) -> dict[str, Any]:
    unsupervised = paradigm == "unsupervised"  # whose steps and evaluations take ten times as long
    return {
        "data.dataset": EMBEDDED.get(dataset, "digits"),
        "data.samples": 30 if dataset == "california" else 60,
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


def _small(dataset: str, devices: int, paradigm: str) -> dict[str, Any]:
    unsupervised = paradigm == "unsupervised"
    model = {"radio": "cnn1d-lite", "california": "mlp"}.get(dataset, "cnn-lite")
    return {
        "data.samples": min(600 if unsupervised else 300, SIZES[dataset]),
        "federation.model": "encoder-mlp" if unsupervised else model,
        "federation.rounds": 40 if dataset == "california" else 30,
        "federation.interval": 10,
        "federation.batch": 32 if unsupervised else 16,
        "federation.learning_rate": 1e-3 if unsupervised else CALM if dataset == "california" else 0.03,
        "federation.evaluate_every": 1 if dataset == "california" else 3,
    }


def _paper(dataset: str, devices: int, paradigm: str) -> dict[str, Any]:
    model = {"radio": "alexnet1d", "california": "mlp"}.get(dataset, "alexnet")
    if paradigm == "unsupervised":
        model = "encoder-mlp" if dataset == "usps" else "encoder-conv"
    return {
        "data.samples": min(SIZES[dataset], _available(dataset) // devices),
        "federation.model": model,
        "federation.rounds": 40,
        "federation.interval": 10,
        "federation.evaluate_every": 1 if dataset == "california" else 4,
        **({"federation.learning_rate": CALM} if dataset == "california" else {}),
    }


def _available(dataset: str) -> int:
    """Training datapoints that a skewed allocation can count on."""
    return {"usps": 6000, "svhn": 30_000, "california": 15_000, "radio": 24_750}.get(dataset, 60_000)
