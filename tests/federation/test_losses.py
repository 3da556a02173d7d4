"""Losses give PyTorch's numbers, alone and for many devices at once."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.nn import functional

from d2dfl.errors import UserError
from d2dfl.federation import Federated
from d2dfl.federation.losses import CROSS_ENTROPY, MSE

STACKED = """
import sys
import torch
from torch.func import vmap
from d2dfl.federation.losses import CROSS_ENTROPY
vmap(CROSS_ENTROPY.per_sample)(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64))
print("sympy" in sys.modules)
"""


def test_cross_entropy_is_that_of_pytorch_to_the_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = (9 * torch.randn(3, 40, 7, generator=generator)).requires_grad_()
    targets = torch.randint(0, 7, (3, 40), generator=generator)
    losses = vmap(CROSS_ENTROPY.per_sample)(outputs, targets)
    usual = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").reshape(3, 40)
    assert torch.equal(losses, usual)
    weights = torch.rand(3, 40, generator=generator)
    (own,) = torch.autograd.grad((losses * weights).sum(), outputs)
    (theirs,) = torch.autograd.grad((usual * weights).sum(), outputs)
    assert torch.equal(own, theirs)


def test_many_devices_at_once_load_no_package_for_algebra() -> None:
    done = subprocess.run([sys.executable, "-c", STACKED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_loss_says_what_its_targets_have_to_be() -> None:
    own = replace(MSE, name="absolute", per_sample=lambda outputs, targets: (outputs - targets).abs().mean(dim=1))
    inputs, targets = np.zeros((4, 2), np.float32), np.full((4, 1), np.nan, np.float32)
    with pytest.raises(UserError, match="a target of the regression is no number"):
        Federated(inputs, targets, (np.arange(4),), inputs, targets, outputs=1, loss=own)
    labels = np.array([0, 1, 2, 0])
    with pytest.raises(UserError, match="give whole numbers from 0 to 1"):
        Federated(inputs, labels, (np.arange(4),), inputs, labels, outputs=2, loss=replace(CROSS_ENTROPY, name="own"))
