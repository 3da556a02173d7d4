"""Losses give PyTorch's numbers, alone and for many devices at once."""

import subprocess
import sys

import torch
from torch.func import vmap
from torch.nn import functional

from d2dfl.federation.losses import CROSS_ENTROPY

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
