"""Testing: the loss and the score of models on the common test set."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.federation.executors.loop import Executor, embed
from d2dfl.federation.federated import Federated
from d2dfl.rng import stream

PROBED = 10  # models; each costs its outputs for the probe's and the test data, and a regression on them
TOGETHER = 256  # models that are tested at once
VIEWED = 512  # test datapoints from which the loss of a contrastive run is estimated


@dataclass(frozen=True)
class ModelEvaluation:
    """What one run is tested on. All that is drawn depends on the seed alone: it is the same for all methods."""

    devices: NDArray[np.int64]  # whose models are tested
    inputs: Tensor
    targets: Tensor
    viewed: Tensor | None  # a loss with a probe: these test datapoints only, in random order
    learned: Tensor | None  # a loss with a probe: what of the pooled sets of all runs the probe learns from

    @classmethod
    def of(
        cls, data: Federated, settings: FederationConfig, seed: int, shared: bool, offset: int, place: torch.device
    ) -> "ModelEvaluation":
        """One shared model, or the models of all devices; with a probe those of PROBED devices at most.

        `offset` says where the pooled set of the run begins. The probe learns from datapoints of the whole pooled set,
        whoever holds them or lost them: the score measures models, not what was left for the probe.
        """
        devices = np.arange(1 if shared else data.devices)
        inputs, targets = torch.from_numpy(data.test_inputs).to(place), torch.from_numpy(data.test_targets).to(place)
        if data.objective(settings).probe is None:
            return cls(devices, inputs, targets, None, None)
        if len(devices) > PROBED:
            devices = np.sort(stream(seed, "probed-devices").choice(devices, PROBED, replace=False))
        viewed = stream(seed, "viewed").permutation(len(inputs))[:VIEWED]
        learned = np.sort(stream(seed, "probe").permutation(len(data.inputs))[: settings.probe]) + offset
        return cls(devices, inputs, targets, torch.from_numpy(viewed).to(place), torch.from_numpy(learned).to(place))

    def results(self, executor: Executor, params: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Losses and scores of the tested devices, from the weights of all [row, parameter]; NaN: no number."""
        pieces = [self.devices[start : start + TOGETHER] for start in range(0, len(self.devices), TOGETHER)]
        found = [self._results(executor, params, piece) for piece in pieces]
        return np.concatenate([losses for losses, _ in found]), np.concatenate([scores for _, scores in found])

    def _results(
        self, executor: Executor, params: Tensor, devices: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        models = params[torch.from_numpy(devices).to(params.device)] if len(self.devices) > 1 else params[:1]
        probe = executor.job.loss.probe
        if probe is None or self.viewed is None or self.learned is None:
            losses, scores = executor.evaluate(models, self.inputs, self.targets)
            return losses.double().cpu().numpy(), scores.double().cpu().numpy()
        losses, _ = executor.evaluate(models, self.inputs[self.viewed], self.targets[self.viewed])
        job = executor.job
        found = [
            probe(
                embed(job, row, job.inputs, self.learned),
                job.targets[self.learned],
                embed(job, row, self.inputs),
                self.targets,
            )
            for row in models
        ]
        return losses.double().cpu().numpy(), np.array(found)
