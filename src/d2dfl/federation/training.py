"""Train on what was exchanged: `train` takes the devices' data and a model, and gives the curves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.batches import Batches
from d2dfl.federation.blocks import block_width
from d2dfl.federation.evaluation import ModelEvaluation
from d2dfl.federation.executors.capacity import FLOAT, SHARE, bytes_per_device, free_bytes
from d2dfl.federation.executors.choice import Notice, choose_executor, processor, stack_pays
from d2dfl.federation.executors.loop import TEST_PIECE, Job, channels_last
from d2dfl.federation.executors.stack import obstacle
from d2dfl.federation.federated import Federated
from d2dfl.federation.layout import Layout
from d2dfl.federation.models import Factory, Shape, build
from d2dfl.federation.optimisers import remembered
from d2dfl.federation.portions import Cluster, Portions
from d2dfl.federation.room import IN_MEMORY, Room, room_for
from d2dfl.federation.rounds import BlockTraining, GradientTraining, RowTraining, Run, Training
from d2dfl.federation.schemes import most_present, scheme_named
from d2dfl.federation.state import Curves, State, identity
from d2dfl.federation.workplace import GradientPlace, RowPlace, Workplace
from d2dfl.progress import Share, silent
from d2dfl.rng import stream


def start(
    model_factory: Factory, data: Federated, settings: FederationConfig, seed: int = 0, room: Room = IN_MEMORY
) -> State:
    """A state before the first round: the same weights on all devices. `room` says where its rows are kept."""
    model, loss = _model(model_factory, data, seed), data.objective(settings)
    scheme, row = scheme_named(settings.scheme), Layout.of(model).row_of(model)
    params, remembering = room.rows(scheme.rows(data.devices), len(row)), scheme.remembering(settings, data.devices)
    sizes = remembered(settings, len(row)) if remembering else {}
    return State(
        params=params.copy_(row),
        memory={name: room.rows(remembering, size) for name, size in sizes.items()},
        done=np.zeros(data.devices, dtype=np.int64),
        seed=seed,
        settings=identity(settings, data),
        curves=Curves(loss.score_name, loss.higher_is_better),
    )


def model_of(model_factory: Factory, data: Federated, state: State, device: int = 0) -> nn.Module:
    """The model of a device as a module of its own; in schemes with a server all devices hold the same."""
    model = _model(model_factory, data, state.seed)
    Layout.of(model).bind(model, state.params[device if len(state.params) > 1 else 0].detach().cpu().clone())
    return model


@torch.no_grad()
def embeddings(
    model_factory: Factory, data: Federated, state: State, inputs: NDArray[np.float32], device: int = 0
) -> NDArray[np.float32]:
    """Outputs [n, output] of a device's model for inputs [n, ...] as they are, for pictures and probes."""
    model = model_of(model_factory, data, state, device).eval()
    pieces = torch.split(torch.from_numpy(inputs), TEST_PIECE)
    return np.concatenate([model(channels_last(piece)).numpy() for piece in pieces])


def parameters_of(model_factory: Factory, shape: Shape, outputs: int) -> int:
    """Numbers that a model has to learn."""
    return Layout.of(build(model_factory, shape, outputs, 0)).parameters


def check_training(model_factory: Factory, runs: Sequence[tuple[Federated, int]], settings: FederationConfig) -> Room:
    """Refuse, before anything large is made, a federation whose rows do not fit into memory: of those, the largest."""
    data = max((data for data, _ in runs), key=lambda data: data.devices)
    return room_for(parameters_of(model_factory, data.shape, data.outputs), data.devices, settings)


def train(
    model_factory: Factory,
    data: Federated,
    settings: FederationConfig,
    seed: int = 0,
    progress: Share = silent,
    on_round: Callable[[State], None] = silent,
    state: State | None = None,
    notice: Notice = silent,
) -> Curves:
    """Train one federation. `state` goes on where a saved one stopped, or comes from `start`; it ends as the result."""
    state = state or start(model_factory, data, settings, seed)
    (curves,) = train_many(
        model_factory,
        [(data, seed)],
        settings,
        progress=progress,
        on_round=lambda _, now: on_round(now),
        states=[state],
        notice=notice,
    )
    return curves


@dataclass(frozen=True)
class Starts:
    """Where trainings begin, for those that hold a state only while it trains."""

    rounds: Sequence[int]  # done, by training
    state: Callable[[int], State]  # made or read when a training's turn comes


def train_many(
    model_factory: Factory,
    runs: Sequence[tuple[Federated, int]],
    settings: FederationConfig,
    *,
    progress: Share = silent,
    on_round: Callable[[int, State], None] = silent,
    states: Sequence[State] | Starts | None = None,
    notice: Notice = silent,
    on_group: Callable[[Mapping[int, State]], None] = silent,
    on_end: Callable[[int, State], None] = silent,
    cluster: Cluster | None = None,
) -> list[Curves]:
    """Train several federations (methods x seeds), as many at once as pays and fits into memory.

    The curves are those of separate runs, up to rounding. `on_group` hears the states, by number, of runs that train together
    when all of them have finished a round; `on_end` hears a training's last state, which nobody keeps here. On a `cluster` devices
    train elsewhere, with the same bits.
    """
    if states is None:
        states = Starts(
            [0] * len(runs), lambda number: start(model_factory, runs[number][0], settings, runs[number][1])
        )
    elif not isinstance(states, Starts):
        states = Starts([state.round for state in states], states.__getitem__)
    curves: list[Curves] = []
    for numbers in _groups(model_factory, runs, settings, states.rounds):
        group = [runs[number] for number in numbers]
        # Made only now, and forgotten before the next: states of all runs would fill the memory.
        own = [states.state(number) for number in numbers]
        training = _prepare(model_factory, group, settings, own, notice, cluster)
        tell = _teller(progress, own, numbers[0], len(runs), settings.rounds)
        tell(0)
        while own[0].round < settings.rounds:
            now = training.begin()
            outcomes = training.place.train(training.params, training.memory, now.order, tell)
            training.finish(now, outcomes)
            for number, state in zip(numbers, own, strict=True):
                on_round(number, state)
            on_group(dict(zip(numbers, own, strict=True)))
            tell(0)
        for number, state in zip(numbers, own, strict=True):
            on_end(number, state)
        curves += [state.curves for state in own]
        del training, own, tell, state
    return curves


def _teller(progress: Share, states: Sequence[State], first: int, runs: int, rounds: int) -> Share:
    """Tells the share of all runs that is done, from the share of the round that is."""

    def tell(part: float) -> None:
        if part < 1:  # a whole one is told when it is booked
            progress((first + len(states) * (states[0].round + part) / rounds) / runs)

    return tell


def _groups(
    factory: Factory, runs: Sequence[tuple[Federated, int]], settings: FederationConfig, rounds: Sequence[int]
) -> list[list[int]]:
    """Runs that train together, in order: those that are alike, at the same round, and fit into memory."""
    if len(runs) == 1:
        return [[0]]
    data, seed = runs[0]
    place, model = processor(settings), _model(factory, data, seed)
    inputs, targets = torch.from_numpy(data.inputs[:1]).to(place), torch.from_numpy(data.targets[:1]).to(place)
    proximal = scheme_named(settings.scheme).proximal
    job = Job(model.to(place), Layout.of(model), data.objective(settings), settings, proximal, inputs, targets)
    if not stack_pays(job) or obstacle(job) is not None:
        return [[number] for number in range(len(runs))]
    room = SHARE * free_bytes(place) / bytes_per_device(job, stacked=True)
    groups: list[list[int]] = [[0]]
    for number in range(1, len(runs)):
        before, now = runs[groups[-1][-1]][0], runs[number][0]
        alike = (before.shape, before.outputs, before.loss) == (now.shape, now.outputs, now.loss)
        together = sum(runs[member][0].devices for member in groups[-1]) + now.devices
        if alike and rounds[number] == rounds[groups[-1][0]] and together <= room:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _prepare(
    factory: Factory,
    runs: Sequence[tuple[Federated, int]],
    settings: FederationConfig,
    states: Sequence[State],
    notice: Notice,
    cluster: Cluster | None,
) -> Training:
    place, scheme = processor(settings), scheme_named(settings.scheme)
    model = _model(factory, *runs[0]).to(place)
    layout = Layout.of(model)
    for (data, seed), state in zip(runs, states, strict=True):
        state.check(settings, seed, data, layout.parameters)
    params, own_params = _joined([state.params for state in states], place)
    memory, own_memory = {}, {}
    for name in states[0].memory:
        memory[name], own_memory[name] = _joined([state.memory[name] for state in states], place)
    inputs, targets, offsets = _pool([data for data, _ in runs], place)
    prepared, first = [], 0
    for number, ((data, seed), state, offset) in enumerate(zip(runs, states, offsets, strict=True)):
        state.params = own_params[number]
        state.memory = {name: parts[number] for name, parts in own_memory.items()}
        batches = Batches(data.members, seed, 0 if scheme.full_gradient else settings.batch)
        evaluation = ModelEvaluation.of(data, settings, seed, scheme.shared, offset, place)
        prepared.append(Run(data, seed, state, batches, evaluation, first, offset, np.ones(data.devices, dtype=bool)))
        first += data.devices
    # All are alike.
    job = Job(model, layout, runs[0][0].objective(settings), settings, scheme.proximal, inputs, targets)
    width = block_width(job, settings, sum(most_present(settings, data.devices) for data, _ in runs))
    executor = choose_executor(job, notice)
    common = (settings, scheme, prepared, params, memory, executor)
    drawn = [run.batches for run in prepared]
    wide = max(one.widest for one in drawn)
    if scheme.groups is None and not scheme.server_step:
        rows = [slice(run.first, run.first + run.data.devices) for run in prepared]
        return RowTraining(*common, RowPlace(executor, drawn, offsets, rows, wide, width))
    kind = GradientTraining if scheme.server_step else BlockTraining
    if cluster is not None:
        return kind(*common, cluster.place(Portions(factory, job, prepared, scheme)))
    if scheme.server_step:
        return kind(*common, GradientPlace(executor, drawn, offsets))
    return kind(*common, Workplace(executor, drawn, offsets, wide, width))


def _model(factory: Factory, data: Federated, seed: int) -> nn.Module:
    return build(factory, data.shape, data.outputs, int(stream(seed, "weights").integers(2**63)))


def _joined(parts: Sequence[Tensor], place: torch.device) -> tuple[Tensor, Sequence[Tensor]]:
    """Rows of all parts as one tensor, and views of it in place of the parts."""
    if place.type == "cuda" and FLOAT * sum(part.numel() for part in parts) > free_bytes(place):
        raise UserError(
            "the rows of these devices do not fit into the memory of the GPU: set federation.device=cpu, or "
            "federation.momentum_rule=reset"
        )
    whole = (parts[0] if len(parts) == 1 else torch.cat(list(parts))).to(place)
    return whole, torch.split(whole, [len(part) for part in parts])


def _pool(datas: Sequence[Federated], place: torch.device) -> tuple[Tensor, Tensor, list[int]]:
    """The pooled sets of all runs, each set once, and where the set of each run begins."""
    places: dict[tuple[int, int], int] = {}
    distinct: list[Federated] = []
    total = 0
    for data in datas:
        key = (id(data.inputs), id(data.targets))
        if key not in places:
            places[key] = total
            distinct.append(data)
            total += len(data.inputs)
    offsets = [places[id(data.inputs), id(data.targets)] for data in datas]
    inputs = [torch.from_numpy(data.inputs) for data in distinct]
    targets = [torch.from_numpy(data.targets) for data in distinct]
    if len(distinct) == 1:
        return inputs[0].to(place), targets[0].to(place), offsets
    return torch.cat(inputs).to(place), torch.cat(targets).to(place), offsets
