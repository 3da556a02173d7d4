"""Training: who averages with whom, and every model after every round, package against `federated.py`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from d2dfl.config import FederationConfig
from d2dfl.federation import Federated as Devices
from d2dfl.federation import State, start, train
from d2dfl.federation.mixing import Mixing
from d2dfl.federation.schemes import SCHEMES, Moment, present
from oracle.close import same
from oracle.federated import Federated, decentralised, fedavg, fedsgd, mixing_matrix, semi_decentralised, share

Array = NDArray[np.float64]
SINGLE = 2e-4  # the package trains in single precision
WHOLE = 1000  # a minibatch that is all of a device's data


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Softmax regression."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs))


def draw_case(draws: np.random.Generator, devices: int) -> tuple[Federated, Devices]:
    """Small devices of unequal size, for the oracle and for the package."""
    features, classes = int(draws.integers(1, 5)), int(draws.integers(2, 4))
    sizes = draws.integers(1, 12, devices)
    inputs = draws.normal(size=(int(sizes.sum()), features)).astype(np.float32)
    targets = draws.integers(classes, size=len(inputs))
    members = np.split(draws.permutation(len(inputs)), np.cumsum(sizes)[:-1])
    case = Federated(
        data=[(inputs[held].astype(np.float64), targets[held]) for held in members],
        classes=classes,
        start=np.zeros(0),
        rate=float(draws.choice([0.05, 0.3])),
        momentum=float(draws.choice([0.0, 0.5, 0.9])),
        interval=int(draws.integers(1, 5)),
        rounds=int(draws.integers(1, 4)),
        equal=bool(draws.random() < 0.3),
        momentum_rule=str(draws.choice(["keep", "reset"])),
        weight_decay=float(draws.choice([0.0, 0.1])),
    )
    if draws.random() < 0.3:
        case = replace(case, optimiser="adam", rate=0.01)
    return case, Devices(inputs, targets, members, inputs[:3], targets[:3], classes)


def settings_of(case: Federated, draws: np.random.Generator, **more: Any) -> FederationConfig:
    return FederationConfig(
        rounds=case.rounds,
        interval=case.interval,
        batch=WHOLE,
        optimiser=case.optimiser,  # type: ignore[arg-type]  # a word from a draw
        learning_rate=case.rate,
        momentum=case.momentum,
        momentum_rule=case.momentum_rule,  # type: ignore[arg-type]  # a word from a draw
        weight_decay=case.weight_decay,
        weighting="equal" if case.equal else "data",
        executor=str(draws.choice(["auto", "loop"])),  # type: ignore[arg-type]  # a word from a draw
        device="cpu",
        **more,
    )


def trained(
    data: Devices, settings: FederationConfig, seed: int
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The first weights, and the models of all devices after each round."""
    history: list[NDArray[np.float64]] = []

    def keep(state: State) -> None:
        rows = state.params.detach().double().numpy()  # one for all devices, or one a device
        history.append(np.broadcast_to(rows, (data.devices, rows.shape[1])).copy())

    torch.set_num_threads(1)
    state = start(linear, data, settings, seed)
    first = state.params[0].double().numpy().copy()
    train(linear, data, settings, seed, on_round=keep, state=state)
    return first, history


def mixings(settings: FederationConfig, data: Devices, seed: int) -> list[Mixing | None]:
    """What the package's scheme says after each minibatch."""
    scheme = SCHEMES[settings.scheme]
    sizes = (data.sizes > 0) if settings.weighting == "equal" else data.sizes
    length = scheme.round_steps(settings)
    found = []
    for step in range(1, settings.rounds * length + 1):
        here = present(settings, seed, (step - 1) // length, data.devices)
        found.append(scheme.mix(Moment(settings, seed, step, np.asarray(sizes * here, dtype=np.float64))))
    return found


def check(seed: int) -> None:
    draws = np.random.default_rng([4, seed])
    scheme = draws.choice(["fedavg", "fedprox", "fedsgd", "decentralised", "semi-decentralised"])
    {
        "fedavg": check_server,
        "fedprox": check_server,
        "fedsgd": check_fedsgd,
        "decentralised": check_decentralised,
        "semi-decentralised": check_semi,
    }[scheme](draws, seed, str(scheme))


def check_server(draws: np.random.Generator, seed: int, scheme: str) -> None:
    """FedAvg and FedProx, some with stragglers (R32)."""
    devices = int(draws.integers(1, 7))
    case, data = draw_case(draws, devices)
    late = int(draws.integers(0, devices)) if draws.random() < 0.4 else 0
    settings = settings_of(case, draws, scheme=scheme, stragglers=late, mu=float(draws.choice([0.01, 1.0])))
    away = np.nonzero(~present(settings, seed, 0, devices))[0].tolist()
    assert len(away) == late, f"{len(away)} stragglers in place of {late}"
    case = replace(case, stragglers=tuple(away), mu=settings.mu if scheme == "fedprox" else 0.0)
    weights = share(case, [i for i in case.devices if i not in away])
    row = [weights.get(i, 0.0) for i in case.devices]
    for step, mixing in enumerate(mixings(settings, data, seed), 1):
        assert (mixing is None) == (step % case.interval != 0), f"minibatch {step}: the server averages at a wrong time"
        if mixing is not None:
            same("weights of the average", mixing.matrix(), [row] * devices)
    first, history = trained(data, settings, seed)
    _same_models(scheme, history, first, lambda start: [[one] * devices for one in fedavg(replace(case, start=start))])


def check_fedsgd(draws: np.random.Generator, seed: int, scheme: str, optimiser: str = "sgd") -> None:
    """One step along the mean gradient. With SGD a device's momentum and the server's (R41) are the same thing."""
    devices = int(draws.integers(1, 7))
    case, data = draw_case(draws, devices)
    rate = 0.01 if optimiser == "adam" else case.rate
    case = replace(case, optimiser=optimiser, momentum_rule="keep", rate=rate)
    settings = settings_of(case, draws, scheme=scheme)
    first, history = trained(data, settings, seed)
    _same_models(scheme, history, first, lambda start: [[one] * devices for one in fedsgd(replace(case, start=start))])


def check_decentralised(draws: np.random.Generator, seed: int, scheme: str) -> None:
    """R33: itself and so many others, each by its datapoints."""
    devices = int(draws.integers(2, 12))
    case, data = draw_case(draws, devices)
    wanted = int(draws.choice([1, 2, 7]))
    settings = settings_of(case, draws, scheme=scheme, neighbours=wanted)
    drawn = []
    for step, mixing in enumerate(mixings(settings, data, seed), 1):
        assert (mixing is None) == (step % case.interval != 0), f"minibatch {step}: devices average at a wrong time"
        if mixing is None:
            continue
        matrix = mixing.matrix()
        groups = [np.nonzero(row)[0].tolist() for row in matrix]
        others = [[j for j in group if j != i] for i, group in enumerate(groups)]
        for i, group in enumerate(groups):
            assert i in group, f"device {i} leaves itself out"
            assert len(others[i]) == min(wanted, devices - 1), f"device {i} draws {len(others[i])} others, not {wanted}"
        same("weights of neighbours", matrix, mixing_matrix(case, groups))
        drawn.append(others)
    first, history = trained(data, settings, seed)
    _same_models(scheme, history, first, lambda start: decentralised(replace(case, start=start), drawn))


def check_semi(draws: np.random.Generator, seed: int, scheme: str) -> None:
    """R33: means of subsets, and more rarely of one device of each."""
    devices = int(draws.integers(1, 12))
    case, data = draw_case(draws, devices)
    size, every, all_every = int(draws.choice([1, 2, 5])), int(draws.integers(1, 4)), int(draws.integers(1, 9))
    timing = {"subset": size, "subset_every": every, "global_every": all_every}
    settings = settings_of(case, draws, scheme=scheme, **timing)
    found = mixings(settings, data, seed)
    subsets, heads = _subsets(settings, data, seed), []
    for step, mixing in enumerate(found, 1):
        globally, locally = step % all_every == 0, step % every == 0
        assert (mixing is None) == (not globally and not locally), (
            f"minibatch {step}: somebody averages at a wrong time"
        )
        if mixing is not None and globally:
            chosen = np.nonzero(mixing.uploads)[0].tolist()
            by_subset = [[i for i in chosen if i in subset] for subset in subsets]
            assert all(len(one) == 1 for one in by_subset), f"minibatch {step}: the server hears {chosen} of {subsets}"
            heads.append([one[0] for one in by_subset])
            assert (mixing.downloads == 1).all(), "the server's model does not reach everybody"
        elif mixing is not None:
            group_of = {i: subset for subset in subsets for i in subset}
            same("weights in subsets", mixing.matrix(), mixing_matrix(case, [group_of[i] for i in case.devices]))
    first, history = trained(data, settings, seed)
    timed = (subsets, heads, every, all_every)
    _same_models(scheme, history, first, lambda start: semi_decentralised(replace(case, start=start), *timed))


def _same_models(
    scheme: str, history: Sequence[Array], first: Array, oracle: Callable[[Array], Sequence[Sequence[Array]]]
) -> None:
    """Round after round. Adam divides by gradients: where one is nearly 0, the oracle itself moves when its start is rounded to
    single precision, and what it moves by is no more than rounding in the package."""
    true = [np.array(models) for models in oracle(first)]
    for number, (rows, models) in enumerate(zip(history, true, strict=True)):
        if np.allclose(rows, models, rtol=SINGLE, atol=SINGLE):
            continue
        draws = np.random.default_rng(number)
        moved = max(
            float(np.abs(np.array(oracle(first + 1e-7 * draws.normal(size=first.shape))[number]) - models).max())
            for _ in range(5)
        )
        same(f"{scheme}: models after round {number + 1}", rows, models, SINGLE + 10 * moved)


def _subsets(settings: FederationConfig, data: Devices, seed: int) -> list[list[int]]:
    """The package's subsets, read off a mean inside of them: disjoint, all devices, of the asked size but for one."""
    asked = replace(settings, subset_every=1, global_every=2, rounds=1)
    mixing = mixings(asked, data, seed)[0]
    assert mixing is not None
    groups = {tuple(np.nonzero(row)[0].tolist()) for row in mixing.matrix()}
    subsets = [list(group) for group in sorted(groups)]
    assert sorted(i for group in subsets for i in group) == list(range(data.devices)), (
        "subsets overlap or miss a device"
    )
    short = sum(len(group) != settings.subset for group in subsets)
    assert short <= 1, f"subsets of {[len(group) for group in subsets]} in place of {settings.subset}"
    return subsets
