"""The rounds of one federation, or of several whose devices train at once.

One round: 1. who is present; 2. local steps up to the next aggregation; 3. the aggregation; 4. evaluation. Three kinds:
with a server, where devices train in blocks and are added up on the way; with a row for every device, where models differ
from round to round; and FedSGD, where devices take no steps: they send gradients, and the server steps along the mean.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.batches import Batches
from d2dfl.federation.blocks import Entries
from d2dfl.federation.evaluation import ModelEvaluation
from d2dfl.federation.executors.loop import Executor
from d2dfl.federation.federated import Federated
from d2dfl.federation.mixing import Mixing
from d2dfl.federation.optimisers import Memory, descend
from d2dfl.federation.schemes import Moment, Scheme, alone, present
from d2dfl.federation.state import State
from d2dfl.federation.sums import PIECES, pieces_of
from d2dfl.federation.workplace import MODEL, Losses, Order, Outcome, Place, Segment, added_up, inside_of


@dataclass
class Run:
    """One federation among those that train together."""

    data: Federated
    seed: int
    state: State
    batches: Batches
    evaluation: ModelEvaluation
    first: int  # where rows are kept a device, its devices are the rows from here on
    offset: int  # its pooled set begins here
    here: NDArray[np.bool_]  # [device] present in this round

    @property
    def active(self) -> NDArray[np.int64]:
        """Devices that train in this round."""
        return np.nonzero(self.here & (self.data.sizes > 0))[0]

    def moment(self, settings: FederationConfig, step: int) -> Moment:
        """What a scheme is asked. R32: the weight of a device is its datapoints after the exchange; 0: it is absent."""
        sizes = self.data.sizes if settings.weighting == "data" else self.data.sizes > 0
        return Moment(settings, self.seed, step, np.asarray(sizes * self.here, dtype=np.float64))


@dataclass(frozen=True)
class Round:
    """A round that has begun: when who averages, and what devices are to do."""

    segments: Sequence[Segment]
    order: Order


@dataclass
class Training(ABC):
    """Federations with the same model and settings that train together."""

    settings: FederationConfig
    scheme: Scheme
    runs: Sequence[Run]
    params: Tensor  # [row of any run, parameter]; the runs' states hold views of it
    memory: Memory  # of the optimisers of all runs
    executor: Executor
    place: Place  # where devices train

    @abstractmethod
    def _order(self, segments: Sequence[Segment]) -> Order:
        """What devices are to do."""

    @abstractmethod
    def _take(self, run: Run, sums: dict[str, Tensor]) -> None:
        """What the server does with the sums over those who were there."""

    def begin(self) -> Round:
        """One round further: who is there, and what they are to do at the place where they train."""
        segments = list(self._segments())
        return Round(segments, self._order(segments))

    def finish(self, now: Round, outcomes: Sequence[Outcome]) -> None:
        """Book what came of it."""
        losses = np.concatenate([one.losses for one in outcomes], axis=1)
        sums = added_up(outcomes, len(self.runs))
        for number, run in enumerate(self.runs):
            if sums[number]:
                self._take(run, sums[number])
            run.state.done[now.order.entries.of(number)] += len(losses)
            for segment in now.segments:
                run.state.curves.book(segment.mixings[number])
        self._finish(now.order.entries, losses)

    def _done(self, entries: Entries) -> NDArray[np.int64]:
        """[entry] minibatches that it has taken."""
        return np.concatenate([run.state.done[entries.of(number)] for number, run in enumerate(self.runs)])

    def _segments(self) -> Iterator[Segment]:
        """Begin a round: who is there, and when who averages."""
        number, length, waiting = self.runs[0].state.round, self.scheme.round_steps(self.settings), 0
        for run in self.runs:
            run.here = present(self.settings, run.seed, number, run.data.devices)
            run.state.curves.begin_round(run.data.devices)
        for step in range(number * length + 1, (number + 1) * length + 1):
            waiting += 1
            mixings = [self.scheme.mix(run.moment(self.settings, step)) for run in self.runs]
            if any(mixings) or step % length == 0:
                yield Segment(waiting, mixings)
                waiting = 0

    def _finish(self, entries: Entries, losses: Losses) -> None:
        """Book a round: refuse losses that are no numbers, note the mean, evaluate when it is time."""
        for number, run in enumerate(self.runs):
            devices, own = entries.of(number), losses[:, entries.places(number)]
            done = run.state.round + 1
            bad = ~np.isfinite(own).all(axis=0)
            if bad.any():
                raise UserError(
                    f"the loss of device {int(devices[bad].min())} is no longer a number in round {done}: "
                    f"give a learning rate below {self.settings.learning_rate:g}"
                )
            run.state.curves.training_losses.append(float(own.mean()) if own.size else math.nan)
            run.state.round = done
            if done % self.settings.evaluate_every == 0 or done >= self.settings.rounds:
                self._evaluate(run)

    def _evaluate(self, run: Run) -> None:
        """Test the model of all, or the models of each where they differ (R33)."""
        curves, done = run.state.curves, run.state.round
        losses, scores = run.evaluation.results(self.executor, run.state.params)
        fine = np.isfinite(losses) & np.isfinite(scores)
        if not fine.all():
            whose = "the shared model" if self.scheme.shared else f"device {run.evaluation.devices[np.argmin(fine)]}"
            raise UserError(
                f"the test loss of {whose} is no longer a number in round {done}: "
                f"give a learning rate below {self.settings.learning_rate:g}"
            )
        curves.rounds.append(done)
        curves.minibatches.append(done * self.scheme.round_steps(self.settings))
        curves.scores.append(float(scores.mean()))
        curves.spreads.append(float(scores.std()))
        curves.losses.append(float(losses.mean()))
        curves.device_scores.append(scores.tolist())


@dataclass
class ServerTraining(Training):
    """With a server: all devices begin a round with one model; what they make of it is added up where they train."""

    def _order(self, segments: Sequence[Segment]) -> Order:
        """Who trains, those of a group beside each other, and in whose average."""
        groups = groups_of(self.scheme, self.settings, self.runs)
        entries = Entries.of_groups([(run.active, own[run.active]) for run, own in zip(self.runs, groups, strict=True)])
        shares, pieces, memory = [], [], []
        for number, (run, mixing) in enumerate(zip(self.runs, segments[-1].mixings, strict=True)):
            devices = entries.of(number)
            shares.append(_shares(self.scheme, run, mixing)[devices])
            pieces.append(pieces_of(groups[number])[devices] + number * PIECES)
            memory.append(run.first + devices)
        return Order(
            entries,
            self._done(entries),
            np.concatenate(shares),
            np.concatenate(pieces),
            np.concatenate(memory),
            inside_of(segments, entries),
            (0, len(self.runs) * PIECES),
        )


@dataclass
class BlockTraining(ServerTraining):
    """Devices take steps, in blocks, and their models are added up."""

    def _take(self, run: Run, sums: dict[str, Tensor]) -> None:
        for name, total in sums.items():
            (run.state.memory[name] if name else run.state.params).copy_(total)


@dataclass
class RowTraining(Training):
    """Without a server: every device keeps a model of its own."""

    def _order(self, segments: Sequence[Segment]) -> Order:
        entries = Entries.of_groups([(run.active, run.active) for run in self.runs])
        rows = np.concatenate([run.first + entries.of(number) for number, run in enumerate(self.runs)])
        nowhere = np.zeros(len(entries), dtype=np.int64)  # nobody is added up
        return Order(entries, self._done(entries), nowhere.astype(float), nowhere, rows, segments, (0, 0))

    def _take(self, run: Run, sums: dict[str, Tensor]) -> None:
        raise AssertionError("there is no server")


@dataclass
class GradientTraining(ServerTraining):
    """FedSGD (R41): devices send gradients; the server steps along their mean and tells everybody."""

    def _take(self, run: Run, sums: dict[str, Tensor]) -> None:
        descend(run.state.params, sums[MODEL].to(run.state.params)[None], run.state.memory, None, self.settings)


def groups_of(scheme: Scheme, settings: FederationConfig, runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """[run][device] number of its group."""
    find = scheme.groups or alone
    return [find(run.moment(settings, 0)) for run in runs]


def _shares(scheme: Scheme, run: Run, mixing: Mixing | None) -> NDArray[np.float64]:
    """[device] its share in the average that ends a round."""
    if mixing is None and not len(run.active):  # nobody is there
        return np.zeros(run.data.devices)
    if mixing is None or not mixing.shared:
        raise UserError(
            f"the scheme {scheme.name} says that groups of devices train apart, and does not end a round with one average "
            "for all: leave out its groups"
        )
    return mixing.shares()
