"""`train` in one call: the same numbers as the engine below it, models that are really the trained ones."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from d2dfl import Dataset, UserError, preset, train
from d2dfl.data.datasets import load
from d2dfl.experiment.training import save_weights, weights_of
from d2dfl.federation import Federated, model_named
from d2dfl.federation import train as engine

torch.set_num_threads(1)  # two threads on busy cores are slower
CONFIG = preset("best").with_(**{"federation.rounds": 2, "federation.interval": 3, "federation.model": "mlp"})


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def halves(dataset: Dataset) -> list[np.ndarray]:
    return np.array_split(np.arange(200), 2)


def accuracy(model: nn.Module, dataset: Dataset) -> float:
    with torch.no_grad():
        answers = model(torch.from_numpy(dataset.test_inputs)).argmax(dim=1).numpy()
    return float((answers == dataset.test_targets).mean())


def test_curves_are_the_engines_and_the_model_is_the_trained_one(digits: Dataset) -> None:
    done = train(digits, CONFIG, holdings=halves(digits), seed=3)
    below = engine(model_named("mlp"), Federated.of(digits, halves(digits)), CONFIG.federation, 3)
    assert done.curves.scores == below.scores
    assert len(done.models) == 1
    assert accuracy(done.model, digits) == pytest.approx(done.curves.last_score, abs=1e-6)
    assert train(Federated.of(digits, halves(digits)), CONFIG, seed=3).curves.scores == below.scores


def test_its_score_is_that_of_every_table(digits: Dataset) -> None:
    done = train(digits, CONFIG.with_(**{"federation.rounds": 10}), holdings=halves(digits))
    assert done.score == pytest.approx(np.mean(done.curves.scores[-2:]))
    assert done.score != done.curves.last_score
    assert f"accuracy {done.score:.3f}" in repr(done)


def test_every_device_has_a_model_where_there_is_no_server(digits: Dataset) -> None:
    config = CONFIG.with_(**{"federation.scheme": "decentralised", "federation.neighbours": 1})
    done = train(digits, config, holdings=np.array_split(np.arange(300), 3))
    assert len(done.models) == 3
    assert [accuracy(model, digits) for model in done.models] == pytest.approx(done.curves.device_scores[-1], abs=1e-6)
    weights = weights_of(done.models)
    assert all(len(tensor) == 3 for tensor in weights.values())
    second = {name: tensor[1] for name, tensor in weights.items()}
    other = model_named("mlp")(digits.shape, 10)
    other.load_state_dict(second)
    assert accuracy(other, digits) == pytest.approx(done.curves.device_scores[-1][1], abs=1e-6)


def test_data_is_dealt_out_where_nobody_says_who_holds_what(digits: Dataset) -> None:
    config = CONFIG.with_(**{"network.devices": 4, "data.allocation": "labels:1", "data.samples": 20})
    done = train(digits, config, model="mlp")
    assert done.data.sizes.tolist() == [20] * 4
    assert all(len(set(digits.train_targets[held])) == 1 for held in done.data.members)


def test_weights_are_read_without_unpickling_and_the_same_bytes(tmp_path: Path) -> None:
    model = model_named("cnn")((1, 8, 8), 10)
    for name in ("one", "two"):
        save_weights(weights_of([model]), tmp_path / f"{name}.pt")
    assert (tmp_path / "one.pt").read_bytes() == (tmp_path / "two.pt").read_bytes()
    held = torch.load(tmp_path / "one.pt", weights_only=True)
    assert type(held) is dict
    assert all(torch.equal(held[name], tensor) for name, tensor in model.state_dict().items())
    size = sum(tensor.numel() for tensor in held.values()) * 4
    assert (tmp_path / "one.pt").stat().st_size < size + 10_000, "no more than the weights"


def test_what_cannot_be_is_one_sentence(digits: Dataset) -> None:
    with pytest.raises(UserError, match="holdings are given twice"):
        train(Federated.of(digits, halves(digits)), CONFIG, holdings=halves(digits))
    with pytest.raises(UserError, match="holdings are not numbers of datapoints"):
        train(digits, CONFIG, holdings=[np.array([0.5])])
    with pytest.raises(UserError, match="device 0 holds datapoints 0 to 99999"):
        train(digits, CONFIG, holdings=[np.array([0, 99999])])
    with pytest.raises(UserError, match="seed cannot be 'x'"):
        train(digits, CONFIG, holdings=halves(digits), seed="x")  # type: ignore[arg-type]  # what a user might type


def test_short_words_and_a_picture(digits: Dataset, tmp_path: Path) -> None:
    done = train(digits, CONFIG, holdings=halves(digits))
    assert repr(done).startswith("<Trained: accuracy 0.")
    assert len(repr(done)) < 120
    assert "<table>" in done._repr_html_()
    done.plot(tmp_path / "curve.svg")
    first = (tmp_path / "curve.svg").read_bytes()
    done.plot(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_bytes() == first
    with pytest.raises(UserError, match="name a file that ends in"):
        done.plot(tmp_path / "curve.txt")
    assert io.BytesIO(first).read(5) == b"<?xml"
