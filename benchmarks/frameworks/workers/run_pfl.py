"""pfl-research: its simulated backend and FederatedAveraging; under torchrun its users are split over processes."""

import os
from importlib.metadata import version

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from shared import Clock, Task, options, ordered, task_in, tested
from torch import Tensor, nn


class Learner(nn.Module):
    """The task's model with the loss that pfl asks for."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.model(ordered(inputs)), targets)

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, Weighted]:
        return {"loss": Weighted(float(self.loss(inputs, targets)) * len(targets), len(targets))}


class AfterRound(TrainingProcessCallback):
    """Ticks the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.clock.tick()
        return False, Metrics()


class Turns:
    """Device after device, round after round. pfl draws once for each worker and keeps what is its own."""

    def __init__(self, devices: int, present: int, workers: int) -> None:
        self.devices, self.present, self.workers, self.drawn = devices, present, workers, 0

    def __call__(self) -> tuple[int, int]:
        turn, worker = divmod(self.drawn, self.workers)
        self.drawn += 1
        own = len(range(worker, self.present, self.workers))  # devices of this worker in a round
        number, place = divmod(turn, own)
        # Where few take part, other ones in every round.
        return number, (worker + place * self.workers + number * self.present) % self.devices


def data_of(task: Task, workers: int) -> FederatedDataset:
    inputs, targets = torch.from_numpy(task.inputs), torch.from_numpy(task.targets)

    def dataset(turn: tuple[int, int]) -> Dataset:
        chosen = torch.cat(
            [task.chosen(*turn, step) for step in range(task.steps)]
        )  # its minibatches, one after another
        return Dataset((inputs[chosen], targets[chosen]), user_id=str(turn[1]))

    return FederatedDataset(dataset, Turns(task.devices, task.present, workers))


def main() -> None:
    chosen = options()
    workers, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    root = os.getppid() if workers > 1 else os.getpid()
    task, clock = task_in(chosen.folder), Clock(chosen, root, talks=rank == 0)
    learner = Learner(task.new_model())
    model = PyTorchModel(
        learner,
        local_optimizer_create=lambda parameters, lr: torch.optim.SGD(
            parameters, lr, task.settings["momentum"], fused=True
        ),
        central_optimizer=torch.optim.SGD(learner.parameters(), 1.0),
    )
    clock.wait()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=chosen.rounds,
            evaluation_frequency=chosen.rounds,  # in round 0 only, which does not count
            train_cohort_size=task.present,
            val_cohort_size=0,
        ),
        SimulatedBackend(data_of(task, workers), data_of(task, workers)),
        model,
        NNTrainHyperParams(
            local_num_epochs=1,
            local_learning_rate=task.settings["learning_rate"],
            local_batch_size=len(task.chosen(0, 0, 0)),
        ),
        NNEvalHyperParams(local_batch_size=None),
        [AfterRound(clock)],
        send_metrics_to_platform=False,
    )
    clock.say({**tested(learner.model, task), "version": f"pfl {version('pfl')}"})


if __name__ == "__main__":
    main()
