"""Local steps: both executors against a slow loop in plain PyTorch, and against each other."""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, close, federation, finished, tiny, tiny_conv
from torch import Tensor, nn
from torch.nn import functional

from d2dfl import UserError
from d2dfl.federation import SCHEMES, Federated, FederationConfig, Loss, start, train, triplet
from d2dfl.federation.batches import Batches, Part, plan_for
from d2dfl.federation.executors.capacity import bytes_per_device, free_bytes
from d2dfl.federation.executors.choice import processor
from d2dfl.federation.executors.loop import Job, draws_nothing
from d2dfl.federation.layout import Layout
from d2dfl.federation.models import build
from d2dfl.rng import stream


def slow(data: Federated, settings: FederationConfig, seed: int, factory: Any = tiny) -> nn.Module:
    """FedAvg or FedProx as a beginner would write it: one module and one torch optimiser per device."""
    model = build(factory, data.shape, data.outputs, int(stream(seed, "weights").integers(2**63)))
    batches = Batches(data.members, seed, settings.batch)
    inputs, targets = torch.from_numpy(data.inputs), torch.from_numpy(data.targets)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[settings.optimiser]
    extra = {"momentum": settings.momentum} if settings.optimiser == "sgd" else {}
    locals_ = [copy.deepcopy(model) for _ in data.members]
    optimisers = [
        kind(own.parameters(), settings.learning_rate, weight_decay=settings.weight_decay, **extra) for own in locals_
    ]
    for number in range(settings.rounds):
        mean = [torch.zeros_like(weights) for weights in model.parameters()]
        for device, (own, optimiser) in enumerate(zip(locals_, optimisers, strict=True)):
            own.load_state_dict(model.state_dict())
            if settings.momentum_rule == "reset":
                optimiser.state.clear()
            if not len(data.members[device]):
                continue
            for chosen in batches.draw(device, number * settings.interval, settings.interval):
                loss = functional.cross_entropy(own(inputs[chosen]), targets[chosen])
                if settings.scheme == "fedprox":
                    pairs = zip(own.parameters(), model.parameters(), strict=True)
                    loss = loss + settings.mu / 2 * sum((now - then.detach()).square().sum() for now, then in pairs)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            for total, weights in zip(mean, own.parameters(), strict=True):
                total += weights.detach() * len(data.members[device]) / data.sizes.sum()
        for total, weights in zip(mean, model.parameters(), strict=True):
            weights.data.copy_(total)
    return model


@pytest.mark.parametrize("executor", ["loop", "stack"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"momentum": 0.0, "weight_decay": 0.1},
        {"scheme": "fedprox", "mu": 0.7},
        {"optimiser": "adam", "learning_rate": 0.01},
    ],
)
def test_a_federation_equals_a_slow_plain_loop(executor: str, changes: dict[str, Any]) -> None:
    data = federation()
    expected = slow(data, FederationConfig(**{**FAST, **changes}), seed=4)
    state = finished(tiny, data, 4, executor=executor, **changes)
    assert all(close(row, Layout.of(expected).row_of(expected)) for row in state.params)


def test_convolutions_lie_channels_last_and_still_equal_the_slow_loop() -> None:
    data = federation(shape=(2, 6, 6))
    expected = slow(data, FederationConfig(**FAST), 0, tiny_conv)
    state = finished(tiny_conv, data, executor="loop")
    assert close(state.params[0], Layout.of(expected).row_of(expected))
    model = build(tiny_conv, data.shape, 3, 0)
    bound = Layout.of(model).bind(model, state.params[0])
    assert bound[0].is_contiguous(memory_format=torch.channels_last)
    assert bound[0].data_ptr() == state.params[0].data_ptr(), "a view, not a copy"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("factory", [tiny, tiny_conv])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"momentum_rule": "reset", "participation": 0.6},
        {"momentum_rule": "mix", "stragglers": 1, "straggler_rule": "redrawn", "weight_decay": 0.01},
        {"optimiser": "adam", "learning_rate": 0.01, "weighting": "equal"},
    ],
)
@pytest.mark.parametrize("width", [None, 2])
def test_loop_and_stack_agree(
    scheme: str, factory: Any, changes: dict[str, Any], width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("d2dfl.federation.executors.stack.Stack.width", width)
    data = federation(shape=(2, 6, 6))
    loop, stack = (finished(factory, data, scheme=scheme, executor=name, **changes) for name in ("loop", "stack"))
    assert close(loop.params, stack.params)
    assert all(close(rows, stack.memory[name]) for name, rows in loop.memory.items())
    assert np.allclose(loop.curves.training_losses, stack.curves.training_losses, rtol=1e-4)
    assert np.allclose(loop.curves.losses, stack.curves.losses, rtol=1e-4)
    assert loop.curves.scores == stack.curves.scores
    assert loop.curves.links == stack.curves.links


def test_parts_of_a_plan_are_equally_wide() -> None:
    batches = Batches([np.arange(4) + 4 * device for device in range(5)], 0, 2)
    everyone, some = np.arange(5), np.array([0, 2, 4])
    plan = plan_for([Part(batches, everyone, np.zeros(5, dtype=np.int64))], everyone, 3)
    parts = list(plan.parts(2))
    assert [part.rows.tolist() for part in parts] == [[0, 1], [2, 3], [4, 4]]
    assert [part.real for part in parts] == [2, 2, 1]
    assert [part.chosen for part in parts[:2]] == [slice(0, 2), slice(2, 4)]
    assert isinstance(parts[2].chosen, np.ndarray)
    assert all(part.indices.shape == (3, 2, 2) for part in parts)
    assert np.array_equal(np.concatenate([part.keys for part in parts], axis=1)[:, :5], plan.keys)
    scattered = plan_for([Part(batches, some, np.zeros(3, dtype=np.int64))], some, 1)
    assert isinstance(scattered.chosen, np.ndarray)
    assert [part.rows.tolist() for part in scattered.parts(4)] == [[0, 2, 4, 4]]


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_fedsgd_is_gradient_descent_on_all_data(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("d2dfl.federation.executors.shared.PIECE", 7)  # gradients of several pieces add up
    data = federation()
    state = finished(tiny, data, scheme="fedsgd", executor=executor, rounds=4)
    model = build(tiny, data.shape, 3, int(stream(0, "weights").integers(2**63)))
    optimiser = torch.optim.SGD(model.parameters(), FAST["learning_rate"], momentum=0.9)
    for _ in range(4):
        optimiser.zero_grad()
        functional.cross_entropy(model(torch.from_numpy(data.inputs)), torch.from_numpy(data.targets)).backward()
        optimiser.step()
    assert close(state.params[0], Layout.of(model).row_of(model))


def test_one_device_is_plain_sgd() -> None:
    data = federation(sizes=(30,))
    state = finished(tiny, data, executor="loop", rounds=5)
    model = build(tiny, data.shape, 3, int(stream(0, "weights").integers(2**63)))
    optimiser = torch.optim.SGD(model.parameters(), FAST["learning_rate"], momentum=0.9)
    for chosen in Batches(data.members, 0, 8).draw(0, 0, 15):
        optimiser.zero_grad()
        outputs = model(torch.from_numpy(data.inputs[chosen]))
        functional.cross_entropy(outputs, torch.from_numpy(data.targets[chosen])).backward()
        optimiser.step()
    assert close(state.params[0], Layout.of(model).row_of(model))


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_momentum_at_an_aggregation(executor: str) -> None:
    data = federation()
    states = {rule: finished(tiny, data, momentum_rule=rule, executor=executor) for rule in ("keep", "reset", "mix")}
    keep, mix = states["keep"].memory["momentum"], states["mix"].memory["momentum"]
    assert len({tuple(row) for row in keep.tolist()}) == 5
    assert len({tuple(row) for row in mix.tolist()}) == 1
    assert (mix != 0).any()
    assert states["reset"].memory == {}, "nothing to keep, nothing to save"
    expected = slow(data, FederationConfig(**FAST, momentum_rule="reset"), 0)
    assert close(states["reset"].params[0], Layout.of(expected).row_of(expected))
    assert not close(states["keep"].params, states["reset"].params)


def test_minibatches_are_drawn_without_replacement_and_from_streams_of_their_own() -> None:
    members = [np.arange(100, 110), np.arange(7), np.arange(50, 53)]
    batches = Batches(members, 5, 4)
    drawn = batches.draw(0, 0, 5)
    assert drawn.shape == (5, 4)
    assert sorted(drawn.ravel()[:10]) == sorted(drawn.ravel()[10:]) == list(range(100, 110))
    assert np.array_equal(
        np.vstack([Batches(members, 5, 4).draw(0, 0, 2), Batches(members, 5, 4).draw(0, 2, 3)]), drawn
    )
    alone = Batches(members[:1], 5, 4)
    assert np.array_equal(alone.draw(0, 0, 5), drawn), "other devices move nothing"
    assert not np.array_equal(Batches(members, 6, 4).draw(0, 0, 5), drawn)
    assert Batches(members, 5, 4).draw(2, 7, 2).tolist() == [[50, 51, 52]] * 2, "a small device takes all it has"


def test_a_plan_puts_the_devices_of_several_runs_side_by_side() -> None:
    batches = Batches([np.arange(4), np.arange(0), np.arange(4, 6), np.arange(6, 9)], 0, 4)
    here, nothing = np.array([0, 3]), np.zeros(2, dtype=np.int64)
    parts = [Part(batches, here, nothing), Part(batches, here, nothing, offset=100)]
    plan = plan_for(parts, np.concatenate([here, 4 + here]), 2)
    assert plan.rows.tolist() == [0, 3, 4, 7]
    assert plan.counts.tolist() == [4, 3, 4, 3]
    assert plan.indices.shape == (2, 4, 4)
    assert sorted(plan.indices[0, 2].tolist()) == [100, 101, 102, 103]
    assert set(plan.indices[1, 1]) == {6, 7, 8}


class Moody(nn.Module):
    """A model that vmap cannot take: it looks at its values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layer(inputs)
        return outputs * 2 if inputs.sum() > 0 else outputs


@pytest.mark.parametrize("executor", ["auto", "stack"])
def test_a_model_that_cannot_be_stacked_is_looped_with_a_notice(executor: Any) -> None:
    notices: list[str] = []
    settings = FederationConfig(**FAST, executor=executor)
    curves = train(lambda _shape, _outputs: Moody(), federation(), settings, notice=notices.append)
    assert len(curves.scores) == 2
    assert len(notices) == 1
    assert notices[0].startswith("the model cannot be stacked (")


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads, for this test only."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("scheme", ["fedavg", "fedprox", "fedsgd"])
@pytest.mark.parametrize("momentum_rule", ["keep", "reset"])
def test_devices_in_threads_give_the_same(scheme: str, momentum_rule: str, threads: Callable[[int], None]) -> None:
    data, found = federation(shape=(2, 6, 6)), []
    for number in (1, 2, 8):
        threads(number)
        settings = {"scheme": scheme, "momentum_rule": momentum_rule, "participation": 0.8}
        found.append(finished(tiny_conv, data, executor="loop", **settings))
        assert torch.get_num_threads() == number
    assert torch.equal(found[0].params, found[1].params)
    assert torch.equal(found[0].params, found[2].params)
    assert found[0].curves == found[1].curves == found[2].curves


def test_a_model_that_draws_stays_in_one_thread(threads: Callable[[int], None]) -> None:
    def random(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, outputs))

    threads(1)
    one = finished(random, federation(), executor="loop")
    threads(2)
    assert torch.equal(one.params, finished(random, federation(), executor="loop").params)


@pytest.mark.parametrize(
    ("model", "nothing"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(nn.ReLU(), nn.Flatten()), nn.Linear(2, 2)), True),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout()), False),
        (nn.Sequential(nn.Sequential(nn.RReLU())), False),
        (nn.Sequential(nn.Linear(2, 2), Moody()), False),
        (nn.Linear(2, 2), False),
        (Moody(), False),
    ],
)
def test_which_models_draw_nothing(model: nn.Module, nothing: bool) -> None:
    assert draws_nothing(model) is nothing


def test_an_error_in_a_thread_is_raised(threads: Callable[[int], None]) -> None:
    def broken(_shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(5, outputs))  # the data have 6 features

    threads(2)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        finished(broken, federation(), executor="loop")


def test_random_layers_are_seeded_by_device_and_step() -> None:
    def factory(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, outputs))

    first = finished(factory, federation())
    torch.manual_seed(99)
    assert torch.equal(first.params, finished(factory, federation()).params)


def _views(inputs: Tensor, draws: np.random.Generator) -> Tensor:
    noise = torch.from_numpy(draws.normal(size=inputs.shape).astype(np.float32))
    return torch.stack([inputs, inputs + noise, inputs.roll(1, dims=0)])


def _triplet(outputs: Tensor, _targets: Tensor) -> Tensor:
    anchor, positive, negative = outputs
    near, far = (anchor - positive).square().sum(-1), (anchor - negative).square().sum(-1)
    return (near - far + 1).clamp_min(0)


def test_a_loss_may_make_views_and_executors_still_agree() -> None:
    loss = Loss("triplet", _triplet, _triplet, "triplet", prepare=_views)
    data = dataclasses.replace(federation(), loss=loss)
    loop, stack = (finished(tiny, data, executor=name) for name in ("loop", "stack"))
    assert close(loop.params, stack.params)
    assert np.allclose(loop.curves.losses, stack.curves.losses, rtol=1e-4)


def test_regression_minimises_the_mean_squared_error() -> None:
    draws = np.random.default_rng(0)
    inputs = draws.normal(size=(60, 4)).astype(np.float32)
    targets = (inputs @ [1.0, -2.0, 0.5, 0.0]).astype(np.float32)
    data = Federated(inputs, targets, np.split(np.arange(60), [15, 40]), inputs, targets, 1, "mse")
    state = finished(lambda shape, outputs: nn.Linear(shape[0], outputs), data, rounds=20)
    assert state.curves.score_name == "mse"
    assert state.curves.scores[-1] == pytest.approx(state.curves.losses[-1])
    assert state.curves.scores[-1] < 0.01 < state.curves.scores[0]


def test_memory_is_linear_in_devices_and_counted() -> None:
    data = federation()
    model = build(tiny, data.shape, 3, 0)
    layout = Layout.of(model)
    inputs, targets = torch.from_numpy(data.inputs), torch.from_numpy(data.targets)
    settings = FederationConfig(batch=8)
    job = Job(model, layout, data.objective(settings), settings, False, inputs, targets)
    assert layout.parameters == 53
    assert bytes_per_device(job, stacked=False) == 4 * 2 * 53
    numbers_per_datapoint = 6 + 6 + 5 + 5 + 3  # the input, and what flatten, two dense layers and tanh put out
    assert bytes_per_device(job, stacked=True) == 4 * (4 * 53 + 2 * 8 * numbers_per_datapoint)
    for views, number in (("all", 3), ("literal", 2)):  # to the letter an anchor is also another one's negative
        work = dataclasses.replace(job, loss=triplet(views=views))
        assert bytes_per_device(work, stacked=True) == 4 * (4 * 53 + number * 2 * 8 * numbers_per_datapoint)
    assert free_bytes(torch.device("cpu")) > 1 << 20


def test_a_missing_gpu_is_said_in_one_sentence() -> None:
    if torch.cuda.is_available():
        assert processor(FederationConfig()).type == "cuda"
    else:
        with pytest.raises(UserError, match="device cannot be cuda"):
            start_on_gpu()


def start_on_gpu() -> None:
    settings = FederationConfig(**FAST, device="cuda")
    train(tiny, federation(), settings, state=start(tiny, federation(), settings))
