"""Many models of one architecture as batched matrix products: the fast way to stack on a GPU, dense ones anywhere.

A convolution of all devices at once is one batched product: windows of the input, laid out with channels last, times
each device's kernels, which lie in its row of params in just that order. Nothing is transposed and nothing is looped.
Works for sequences of convolutions, pooling, ReLU, flattening and dense layers; other models go through vmap.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# (the layer's weights, activations [row, n, *space, channels] or [row, n, features]) -> activations
LayerStep = Callable[[Sequence[Tensor], Tensor], Tensor]


def stacked_forward(model: nn.Module) -> Callable[[Sequence[Tensor], Tensor], Tensor] | None:
    """Stacked parameters and inputs [row, n, channels, *space] -> outputs [row, n, ...]; None: not such a model."""
    if not isinstance(model, nn.Sequential) or not all(held.requires_grad for held in model.parameters()):
        return None
    if shares_weights(model):
        return None
    steps: list[tuple[LayerStep, int]] = []  # and how many tensors of weights each takes
    for layer in model:
        step = _step(layer)
        if step is None:
            return None
        steps.append((step, len(list(layer.parameters()))))

    def forward(weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        now = inputs.movedim(2, -1) if inputs.ndim > 3 else inputs
        place = 0
        for step, number in steps:
            now = step(weights[place : place + number], now)
            place += number
        return now

    return forward


def shares_weights(model: nn.Module) -> bool:
    """Whether a tensor of weights has two places in a model."""
    return len(list(model.named_parameters(remove_duplicate=False))) > len(list(model.parameters()))


def _step(layer: nn.Module) -> LayerStep | None:
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        return _convolution(layer)
    if isinstance(layer, nn.Linear):
        return _dense(layer.bias is not None)
    if isinstance(layer, nn.ReLU):
        return lambda _, now: functional.relu(now)
    if isinstance(layer, nn.MaxPool1d | nn.MaxPool2d):
        return _pooling(layer)
    if isinstance(layer, nn.ZeroPad2d):
        left, right, top, bottom = layer.padding
        return lambda _, now: functional.pad(now, (0, 0, left, right, top, bottom))
    if isinstance(layer, nn.Flatten) and layer.start_dim == 1 and layer.end_dim == -1:
        return lambda _, now: (now.movedim(-1, 2) if now.ndim > 3 else now).flatten(2)
    return None


class _Product(torch.autograd.Function):
    """Inputs [row, n, in] times kernels [row, out, in], plus bias [row, out].

    PyTorch's own gradient of such a product comes out transposed, and turning it takes a CPU longer than the product.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, kernel)
        return torch.baddbmm(bias.unsqueeze(1), inputs, kernel.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        inputs, kernel = ctx.saved_tensors
        to_inputs = torch.bmm(gradient, kernel) if ctx.needs_input_grad[0] else None
        return to_inputs, torch.bmm(gradient.transpose(1, 2), inputs), gradient.sum(dim=1)


def _dense(bias: bool) -> LayerStep:
    def step(own: Sequence[Tensor], now: Tensor) -> Tensor:
        if bias and not now.is_cuda:
            product: Tensor = _Product.apply(now, own[0], own[1])  # type: ignore[no-untyped-call]  # torch leaves it untyped
            return product
        kernel = own[0].transpose(1, 2)
        return torch.baddbmm(own[1].unsqueeze(1), now, kernel) if bias else torch.bmm(now, kernel)

    return step


def _pair(value: int | tuple[int, ...] | str, number: int) -> tuple[int, ...] | None:
    if isinstance(value, str):
        return None
    return (value,) * number if isinstance(value, int) else tuple(value)


def _convolution(layer: nn.Conv1d | nn.Conv2d) -> LayerStep | None:
    axes = len(layer.kernel_size)
    padding = _pair(layer.padding, axes)
    plain = layer.groups == 1 and set(layer.dilation) == {1} and layer.padding_mode == "zeros"
    if not plain or padding is None or layer.bias is None:
        return None
    size, stride = layer.kernel_size, layer.stride
    border = [part for pad in reversed(padding) for part in (pad, pad)]

    def step(own: Sequence[Tensor], now: Tensor) -> Tensor:
        kernel, bias = own
        rows, outputs = kernel.shape[:2]
        now = functional.pad(now, (0, 0, *border))
        room = [(now.shape[2 + axis] - size[axis]) // stride[axis] + 1 for axis in range(axes)]
        windows = []
        for offset in product(*(range(k) for k in size)):  # in the order in which kernels lie in a row
            cut = tuple(slice(o, o + s * (r - 1) + 1, s) for o, s, r in zip(offset, stride, room, strict=True))
            windows.append(now[(slice(None), slice(None), *cut)])
        columns = torch.cat(windows, dim=-1).reshape(rows, -1, kernel[0, 0].numel())
        flat = kernel.movedim(2, -1).reshape(rows, outputs, -1)  # channels last: for 2-D a view of the row
        result = torch.baddbmm(bias.unsqueeze(1), columns, flat.transpose(1, 2))
        return result.view(rows, -1, *room, outputs)

    return step


def _pooling(layer: nn.MaxPool1d | nn.MaxPool2d) -> LayerStep | None:
    axes = 1 if isinstance(layer, nn.MaxPool1d) else 2
    size, stride = _pair(layer.kernel_size, axes), _pair(layer.stride, axes)
    if size is None or size != stride or layer.padding != 0 or layer.dilation != 1 or layer.ceil_mode:
        return None
    window: tuple[int, ...] = size

    def step(_: Sequence[Tensor], now: Tensor) -> Tensor:
        rows, number, *space, channels = now.shape
        whole = [length // k for length, k in zip(space, window, strict=True)]
        cut = tuple(slice(0, w * k) for w, k in zip(whole, window, strict=True))
        shape = [part for w, k in zip(whole, window, strict=True) for part in (w, k)]
        parts = now[(slice(None), slice(None), *cut)].reshape(rows, number, *shape, channels)
        return parts.amax(dim=tuple(3 + 2 * axis for axis in range(axes)))

    return step
