"""What one would write by hand: PyTorch and nothing else.

`many` keeps a model per device and averages them; `plain` is the same with PyTorch's own memory order; `one` takes a
single model through all devices and adds up what each made of it.
"""

from collections.abc import Callable

import torch
from shared import Clock, Task, new_optimiser, options, task_in, tested
from torch import nn


def steps(model: nn.Module, task: Task, round_number: int, device: int, plain: bool) -> None:
    """The local steps of one device in one round."""
    optimiser = new_optimiser(model, task.settings)
    for step in range(task.steps):
        inputs, targets = task.batch(round_number, device, step)
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs.contiguous() if plain else inputs), targets).backward()
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def many(task: Task, plain: bool) -> tuple[nn.Module, Callable[[int], None]]:
    models = [task.new_model() for _ in range(task.devices)]
    if plain:
        models = [model.to(memory_format=torch.contiguous_format) for model in models]  # type: ignore[call-overload]  # torch knows it, its types do not

    def work(round_number: int) -> None:
        for device, model in enumerate(models):
            steps(model, task, round_number, device, plain)
        with torch.no_grad():
            for same in zip(*(model.parameters() for model in models), strict=True):
                mean = same[0].clone()
                for parameter in same[1:]:
                    mean.add_(parameter)
                mean.div_(task.devices)
                for parameter in same:
                    parameter.copy_(mean)

    return models[0], work


def one(task: Task) -> tuple[nn.Module, Callable[[int], None]]:
    model, shared = task.new_model(), task.new_model()
    sums = [torch.zeros_like(parameter) for parameter in model.parameters()]

    @torch.no_grad()
    def begin() -> None:
        for parameter, first in zip(model.parameters(), shared.parameters(), strict=True):
            parameter.copy_(first)

    @torch.no_grad()
    def end() -> None:
        for parameter, total in zip(model.parameters(), sums, strict=True):
            total.add_(parameter)

    @torch.no_grad()
    def average() -> None:
        for parameter, total in zip(shared.parameters(), sums, strict=True):
            parameter.copy_(total.div_(task.devices))
            total.zero_()

    def work(round_number: int) -> None:
        for device in range(task.devices):
            begin()
            steps(model, task, round_number, device, plain=False)
            end()
        average()

    return shared, work


def main() -> None:
    chosen = options()
    task, clock = task_in(chosen.folder), Clock(chosen)
    model, work = one(task) if chosen.kind == "one" else many(task, plain=chosen.kind == "plain")
    clock.wait()
    for number in range(chosen.rounds):
        work(number)
        clock.tick()
    plain = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch knows it, its types do not
    clock.say({**tested(plain, task), "version": f"torch {torch.__version__}"})


if __name__ == "__main__":
    main()
