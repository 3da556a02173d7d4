"""The rounds of one federation, or of several whose devices are rows of the same tensor.

One round: 1. who is present; 2. local steps up to the next aggregation; 3. the aggregation; 4. evaluation. In FedSGD
devices take no steps: they send their gradients, and the server steps along the mean.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.batches import Batches, Plan, plan_of
from d2dfl.federation.evaluation import ModelEvaluation
from d2dfl.federation.executors.loop import Executor
from d2dfl.federation.executors.shared import mean_gradient
from d2dfl.federation.federated import Federated
from d2dfl.federation.mixing import Mixing
from d2dfl.federation.optimisers import Memory, descend
from d2dfl.federation.schemes import Moment, Scheme, present
from d2dfl.federation.state import State


@dataclass
class Run:
    """One federation among those that train together."""

    data: Federated
    seed: int
    state: State
    batches: Batches
    evaluation: ModelEvaluation
    first: int  # its devices are the rows from here on
    offset: int  # its pooled set begins here
    here: NDArray[np.bool_]  # [device] present in this round

    def weights(self, settings: FederationConfig) -> NDArray[np.float64]:
        """[device] share in an average: datapoints after the exchange (R32); nothing for who is absent."""
        sizes = self.data.sizes if settings.weighting == "data" else self.data.sizes > 0
        return np.asarray(sizes * self.here, dtype=np.float64)


@dataclass
class Training:
    """Federations with the same model and settings that train together."""

    settings: FederationConfig
    scheme: Scheme
    runs: Sequence[Run]
    params: Tensor  # [device of any run, parameter]; the runs' states hold views of it
    memory: Memory  # of the optimisers of all runs
    executor: Executor

    def round(self) -> None:
        """Train all runs one round further."""
        number = self.runs[0].state.round
        length = self.scheme.round_steps(self.settings)
        for run in self.runs:
            run.here = present(self.settings, run.seed, number, run.data.devices)
            run.state.curves.begin_round(run.data.devices)
        rows, losses, waiting = np.zeros(0, dtype=np.int64), [], 0
        for step in range(number * length + 1, (number + 1) * length + 1):
            waiting += 1
            mixings = [
                self.scheme.mix(Moment(self.settings, run.seed, step, run.weights(self.settings))) for run in self.runs
            ]
            if not any(mixings) and step % length:
                continue
            if self.scheme.server_step:
                rows, found = self._server_step(mixings)
            else:
                plan, found = self._plan(self.runs, waiting), torch.empty(waiting, 0)
                rows = plan.rows
                if len(rows):
                    found = self.executor.train(self.params, self.memory, plan)
                self._mix(mixings)
            losses.append(found)
            waiting = 0
        self._finish(number + 1, rows, torch.cat(losses).cpu().numpy())

    def _plan(self, runs: Sequence[Run], steps: int) -> Plan:
        """The next minibatches of all who are present."""
        standing = [(run.batches, run.here, run.state.done) for run in runs]
        plan = plan_of(standing, steps, [run.offset for run in runs])
        for run in runs:
            run.state.done += steps * (run.here & (run.data.sizes > 0))
        return plan

    def _mix(self, mixings: Sequence[Mixing | None]) -> None:
        """The averages of models."""
        for run, mixing in zip(self.runs, mixings, strict=True):
            if mixing is None:
                continue
            mixing.apply(run.state.params)
            if self.settings.momentum_rule == "mix":
                for remembered in run.state.memory.values():
                    mixing.apply(remembered)
            run.state.curves.book(mixing)

    def _server_step(self, mixings: Sequence[Mixing | None]) -> tuple[NDArray[np.int64], Tensor]:
        """R41: devices send gradients; the server steps along their mean and tells everybody."""
        rows, losses = [np.zeros(0, dtype=np.int64)], [torch.empty(0, device=self.params.device)]
        for run, mixing in zip(self.runs, mixings, strict=True):
            plan = self._plan([run], 1)
            if mixing is None:  # nobody is there
                continue
            shares = np.asarray(np.bincount(mixing.sources[0], mixing.weights[0], run.data.devices), dtype=np.float64)
            model = run.state.params[0].clone()  # all devices hold the same
            gradient, found = mean_gradient(self.executor.job, model, plan, shares[plan.rows])
            descend(model[None], gradient[None], run.state.memory, None, self.settings)
            run.state.params.copy_(model.expand_as(run.state.params))
            run.state.curves.book(mixing)
            rows.append(run.first + plan.rows)
            losses.append(found)
        return np.concatenate(rows), torch.cat(losses)[None]

    def _finish(self, done: int, rows: NDArray[np.int64], losses: NDArray[np.float32]) -> None:
        """Book a round: refuse losses that are no numbers, note the mean, evaluate when it is time."""
        for run in self.runs:
            mine = (rows >= run.first) & (rows < run.first + run.data.devices)
            bad = ~np.isfinite(losses[:, mine]).all(axis=0)
            if bad.any():
                device = int(rows[mine][np.argmax(bad)]) - run.first
                raise UserError(
                    f"the loss of device {device} is no longer a number in round {done}: "
                    f"give a learning rate below {self.settings.learning_rate:g}"
                )
            run.state.curves.training_losses.append(float(losses[:, mine].mean()) if mine.any() else math.nan)
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
