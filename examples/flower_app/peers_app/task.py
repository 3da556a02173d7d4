"""What client and server share: the model of the simulator, with the same first weights."""

import torch
from torch import nn

from d2dfl.federation.models import build, mlp

PIXELS, CLASSES = 64, 10


def make_model(seed: int) -> nn.Module:
    return build(mlp, (PIXELS,), CLASSES, seed)


def train(
    model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, draws: torch.Generator, config: dict[str, float]
) -> float:
    """So many minibatches of SGD, each drawn anew; the mean loss."""
    optimiser = torch.optim.SGD(model.parameters(), lr=config["learning-rate"], momentum=config["momentum"])
    whole, interval = 0.0, int(config["interval"])
    for _ in range(interval):
        rows = torch.randint(len(inputs), (int(config["batch"]),), generator=draws)
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        whole += float(loss.detach())
    return whole / interval
