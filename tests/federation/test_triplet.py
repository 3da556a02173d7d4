"""Learning without labels: the triplet loss by hand, both executors, going on after a stop, and what is learned."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, STILL, close, federation, finished, tiny, tiny_conv

from d2dfl import UserError, preset
from d2dfl.data.datasets import load
from d2dfl.federation import (
    EMBEDDING,
    SCHEMES,
    Federated,
    FederationConfig,
    State,
    embeddings,
    model_of,
    start,
    train,
    train_many,
    triplet,
)
from d2dfl.federation.executors.loop import PIECE
from d2dfl.federation.losses import LOSSES, loss_named
from d2dfl.federation.models import encoder_mlp


def unlabelled(**changes: Any) -> Federated:
    return dataclasses.replace(federation(**changes), loss="triplet", outputs=4)


def test_the_loss_by_hand() -> None:
    anchor, positive, negative = torch.zeros(4, 2), torch.zeros(4, 2), torch.zeros(4, 2)
    positive[:, 0] = torch.tensor([3.0, 1.0, 0.0, 0.0])
    positive[0, 1] = 4.0
    negative[:, 1] = torch.tensor([2.0, -4.0, 0.25, 0.0])
    outputs = torch.stack([anchor, positive, negative]).requires_grad_()
    losses = triplet(1.5).per_sample(outputs, torch.zeros(4))
    assert losses.tolist() == pytest.approx([5 - 2 + 1.5, 0, 1.25, 1.5], abs=1e-5)
    (gradient,) = torch.autograd.grad(losses.sum(), outputs)
    assert gradient[0, 0].tolist() == pytest.approx([-0.6, -0.8 + 1]), "away from the positive is worse"
    assert torch.isfinite(gradient).all(), "also where all three are one point"
    assert (gradient[:, 1] == 0).all()
    assert triplet().score(outputs, torch.zeros(4)).tolist() == [0, 1, 1, 0]
    anchor[:, 0] = torch.tensor([0.0, 3.0, 1.0, -1.0])  # of two: distances to the next anchor are 3, 2, 2, 1
    positive = anchor + torch.tensor([0.0, 0.5])
    losses = triplet(1.5).per_sample(torch.stack([anchor, positive]), torch.zeros(4))
    assert losses.tolist() == pytest.approx([0, 0, 0, 0.5 - 1 + 1.5])


def test_what_is_transformed_comes_from_the_settings() -> None:
    losses = {views: unlabelled().objective(FederationConfig(views=views)) for views in ("literal", "all")}
    assert losses["literal"] is triplet(views="literal") is not losses["all"]
    assert losses["all"] is triplet(views="all")
    assert triplet() is unlabelled().objective(FederationConfig())
    inputs = torch.from_numpy(unlabelled().inputs)
    anchors = {}
    for views, loss in losses.items():
        assert loss.prepare is not None
        anchors[views] = loss.prepare(inputs, np.random.default_rng(0))[0]
    assert torch.equal(anchors["literal"].sort(dim=0).values, inputs.sort(dim=0).values), "as they are, in some order"
    assert not torch.equal(anchors["all"].sort(dim=0).values, inputs.sort(dim=0).values)
    states = [finished(tiny, unlabelled(), views=views) for views in ("literal", "all")]
    assert not close(states[0].params, states[1].params)


def test_the_papers_preset_is_literal() -> None:
    assert preset("paper", "unsupervised").federation.views == "literal"


def test_the_margin_comes_from_the_settings() -> None:
    assert loss_named("triplet", FederationConfig(margin=0.25)) is triplet(0.25)
    assert unlabelled().objective(FederationConfig(margin=3.0)) is triplet(3.0)
    assert unlabelled().objective() is triplet(1.0)
    assert dataclasses.replace(unlabelled(), loss=triplet(2.0)).objective(FederationConfig()) is triplet(2.0)
    narrow, wide = (finished(tiny, unlabelled(), margin=margin) for margin in (0.5, 5.0))
    assert narrow.curves.training_losses[0] < wide.curves.training_losses[0] - 3
    assert list(LOSSES) == ["cross-entropy", "mse", "triplet"]


@pytest.mark.parametrize("views", ["literal", "all"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("factory", "shape"), [(tiny, (6,)), (tiny, (2, 16)), (tiny_conv, (1, 6, 6))])
def test_loop_and_stack_agree(
    scheme: str, factory: Any, shape: tuple[int, ...], views: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("d2dfl.federation.executors.shared.PIECE", 6)  # fedsgd: 9, 20, 13 datapoints leave 3, 2 and 1
    data = unlabelled(sizes=(9, 20, 0, 13, 1), shape=shape)
    changes = {"scheme": scheme, "views": views, "batch": 6}
    loop, stack = (finished(factory, data, executor=name, **changes) for name in ("loop", "stack"))
    assert close(loop.params, stack.params)
    assert np.allclose(loop.curves.training_losses, stack.curves.training_losses, rtol=1e-4)
    assert np.allclose(loop.curves.losses, stack.curves.losses, rtol=1e-4)
    assert np.allclose(loop.curves.scores, stack.curves.scores, atol=1.5 / len(data.test_targets))


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_a_device_with_one_datapoint_learns_nothing(executor: str) -> None:
    data = unlabelled(sizes=(1, 12))
    state = finished(tiny, data, executor=executor, scheme="decentralised", neighbours=1, weighting="data", rounds=1)
    alone = dataclasses.replace(data, members=data.members[:1])
    before = start(tiny, alone, FederationConfig(**FAST))
    after = finished(tiny, alone, executor=executor)
    assert torch.equal(before.params, after.params)
    assert after.curves.training_losses == [0, 0]
    assert state.curves.training_losses[0] > 0


def test_a_last_piece_of_one_datapoint_has_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PIECE > 13
    monkeypatch.setattr("d2dfl.federation.executors.shared.PIECE", 12)
    thirteen, twelve = unlabelled(sizes=(13,)), unlabelled(sizes=(13,))
    twelve = dataclasses.replace(twelve, members=[twelve.members[0][:12]])
    settings = {"scheme": "fedsgd", "executor": "loop", "rounds": 1}
    first, second = (finished(tiny, data, **settings).curves.training_losses[0] for data in (thirteen, twelve))
    assert first == pytest.approx(second * 12 / 13)


def test_targets_are_never_trained_on() -> None:
    data = unlabelled()
    other = dataclasses.replace(
        data, targets=np.zeros_like(data.targets), test_targets=np.zeros_like(data.test_targets)
    )
    assert torch.equal(finished(tiny, data).params, finished(tiny, other).params)


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path, executor: Any) -> None:
    data, path = unlabelled(shape=(1, 6, 6)), tmp_path / "state.pt"
    settings = FederationConfig(**{**FAST, "rounds": 2}, executor=executor)
    longer = dataclasses.replace(settings, rounds=4)
    uncut = start(tiny, data, longer)
    train(tiny, data, longer, state=uncut)
    train(tiny, data, settings, on_round=lambda state: state.save(path))
    resumed = State.load(path)
    curves = train(tiny, data, longer, state=resumed)
    assert resumed.round == 4
    assert curves == uncut.curves
    assert torch.equal(resumed.params, uncut.params)
    with pytest.raises(UserError, match="with loss 'triplet' and not 'cross-entropy'"):
        train(tiny, dataclasses.replace(data, loss="cross-entropy"), longer, state=State.load(path))
    with pytest.raises(UserError, match=r"with margin 1\.0 and not 2\.0"):
        train(tiny, data, dataclasses.replace(longer, margin=2.0), state=State.load(path))


def test_several_runs_at_once_equal_separate_runs() -> None:
    runs = [(unlabelled(), 0), (unlabelled(sizes=(7, 30, 11), seed=3), 1)]
    settings = FederationConfig(**FAST)
    for curves, (data, seed) in zip(train_many(tiny, runs, settings), runs, strict=True):
        single = train(tiny, data, settings, seed)
        assert np.allclose(curves.losses, single.losses, rtol=1e-4)
        assert curves.scores == single.scores


def digits(loss: Any) -> Federated:
    dataset = load("digits")
    order = np.random.default_rng(0).permutation(len(dataset.train_inputs))
    return Federated.of(dataset, np.array_split(order, 5), loss=loss)


@pytest.mark.parametrize("views", ["literal", "all"])
def test_views_teach_an_encoder_the_digits(views: Any) -> None:
    data = digits(triplet(views=views))
    settings = FederationConfig(rounds=6, optimiser="adam", learning_rate=1e-3, evaluate_every=6)
    assert data.outputs == EMBEDDING
    untrained = train(encoder_mlp, data, dataclasses.replace(settings, learning_rate=0.0)).last_score
    state = start(encoder_mlp, data, settings)
    curves = train(encoder_mlp, data, settings, state=state)
    assert curves.last_score > max(0.83, untrained + 0.08)
    assert curves.score_name == "accuracy of linear evaluation"
    without_views = train(encoder_mlp, digits(triplet(1.0, STILL, views)), settings).last_score
    assert curves.last_score > without_views

    found = embeddings(encoder_mlp, data, state, data.test_inputs)
    assert found.shape == (len(data.test_inputs), EMBEDDING)
    assert np.allclose(found, model_of(encoder_mlp, data, state)(torch.from_numpy(data.test_inputs)).detach())
