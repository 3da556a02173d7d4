"""Which models fused.py computes, where, and what it needs to know of them."""

from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import nn

from d2dfl.federation.executors.loop import PIECE, Job

CAPABILITY = (9, 0)  # of H100 and H200, for which it is written
LEAST = 0.75  # of a minibatch, filled up to whole blocks, that must be datapoints
WHOLE = 64  # channels and datapoints come in multiples of as many


@dataclass(frozen=True)
class First:
    """The first convolution, relu and the largest of 2 x 2; its weights begin a row."""

    channels: int
    outputs: int
    side: int
    stride: int
    border: tuple[int, int]  # top, left
    height: int  # before the largest are taken
    width: int

    @property
    def taps(self) -> int:
        """Numbers in a window."""
        return self.side * self.side * self.channels

    @property
    def room(self) -> int:
        """A power of two that holds them."""
        return max(16, 1 << (self.taps - 1).bit_length())

    @property
    def bias(self) -> tuple[int, int]:
        """Where its bias begins and ends in a row."""
        return self.outputs * self.taps, self.outputs * (self.taps + 1)


@dataclass(frozen=True)
class Convolution:
    """A convolution of 3 x 3 that keeps the size, relu, and perhaps the largest of 2 x 2."""

    channels: int
    outputs: int
    height: int
    width: int
    pooled: bool
    offset: int  # of its weights in a row

    @property
    def size(self) -> int:
        """Numbers of its weights."""
        return self.outputs * 9 * self.channels

    @property
    def bias(self) -> tuple[int, int]:
        """Where its bias begins and ends in a row."""
        return self.offset + self.size, self.offset + self.size + self.outputs

    @property
    def result(self) -> tuple[int, int]:
        """Height and width of what it gives."""
        return (self.height // 2, self.width // 2) if self.pooled else (self.height, self.width)


@dataclass(frozen=True)
class Design:
    """A model as fused.py computes it."""

    first: First
    convolutions: tuple[Convolution, ...]
    head: nn.Sequential  # relu, flattening and the dense layers

    @property
    def result(self) -> tuple[int, int]:
        """Height and width of what the head takes."""
        return self.convolutions[-1].result


def design_for(job: Job) -> Design | None:
    """The design of a job's model, or None: another model, loss, precision or card."""
    inputs = job.inputs
    if not inputs.is_cuda or torch.cuda.get_device_capability(inputs.device) != CAPABILITY or not _descriptors():
        return None
    if job.settings.precision == "float32" or inputs.dtype != torch.float32 or not inputs.is_contiguous():
        return None
    if job.loss.prepare is not None or job.loss.least > 1:
        return None
    return design_of(job.model, tuple(inputs.shape[1:]))


def filled(batch: int) -> int | None:
    """Room for a minibatch, or None where too much of it would be empty, or one pass does not take it."""
    room = -(-batch // WHOLE) * WHOLE
    return room if LEAST * room <= batch <= PIECE else None


def _descriptors() -> bool:
    """Whether there is a Triton that knows how cards copy blocks."""
    try:
        return find_spec("triton.tools.tensor_descriptor") is not None
    except ModuleNotFoundError:
        return False


def design_of(model: nn.Module, shape: tuple[int, ...]) -> Design | None:
    """The design of a model for inputs of a shape; None: not such a model."""
    if not isinstance(model, nn.Sequential) or len(shape) != 3:
        return None
    if not all(weights.requires_grad for weights in model.parameters()):
        return None
    layers = list(model)
    left = right = top = bottom = 0
    if layers and isinstance(layers[0], nn.ZeroPad2d):
        left, right, top, bottom = layers[0].padding
        del layers[0]
    blocks = _blocks(layers)
    if len(blocks) < 2 or not _dense(layers):
        return None
    first = _first(*blocks[0], (shape[0], shape[1] + top + bottom, shape[2] + left + right), (top, left))
    if first is None:
        return None
    height, width, offset = first.height // 2, first.width // 2, first.bias[1]
    convolutions: list[Convolution] = []
    for layer, pooled in blocks[1:]:
        same = (layer.kernel_size, layer.stride, layer.padding) == ((3, 3), (1, 1), (1, 1))
        whole = layer.in_channels % WHOLE == 0 and layer.out_channels % WHOLE == 0
        if not same or not whole or width % 2 or (pooled and height % 2):
            return None
        convolutions.append(Convolution(layer.in_channels, layer.out_channels, height, width, pooled, offset))
        (height, width), offset = convolutions[-1].result, convolutions[-1].bias[1]
    return Design(first, tuple(convolutions), nn.Sequential(nn.ReLU(), *layers))


def _blocks(layers: list[nn.Module]) -> list[tuple[nn.Conv2d, bool]]:
    """Convolutions with relu, and whether the largest of 2 x 2 are taken; they leave the list."""
    blocks: list[tuple[nn.Conv2d, bool]] = []
    while len(layers) > 1 and isinstance(layers[0], nn.Conv2d) and isinstance(layers[1], nn.ReLU):
        layer = layers[0]
        if layer.groups != 1 or layer.dilation != (1, 1) or layer.padding_mode != "zeros" or layer.bias is None:
            break
        pooled = len(layers) > 2 and isinstance(layers[2], nn.MaxPool2d) and _halves(layers[2])
        blocks.append((layer, pooled))
        del layers[: 2 + pooled]
    return blocks


def _halves(layer: nn.MaxPool2d) -> bool:
    twos = (2, (2, 2))
    return layer.kernel_size in twos and layer.stride in twos and layer.padding == 0 and layer.dilation == 1


def _dense(layers: list[nn.Module]) -> bool:
    """Whether these are dense layers behind a flattening."""
    flat = (
        isinstance(layers[0], nn.Flatten) and (layers[0].start_dim, layers[0].end_dim) == (1, -1) if layers else False
    )
    return flat and all(
        isinstance(layer, nn.ReLU) or (isinstance(layer, nn.Linear) and layer.bias is not None) for layer in layers[1:]
    )


def _first(layer: nn.Conv2d, pooled: bool, shape: tuple[int, int, int], border: tuple[int, int]) -> First | None:
    """The first convolution of images [channel, line, place]."""
    (side, other), (stride, another), padding = layer.kernel_size, layer.stride, layer.padding
    if isinstance(padding, str) or side != other or stride != another:
        return None
    height, width = ((size + 2 * around - side) // stride + 1 for size, around in zip(shape[1:], padding, strict=True))
    own = (border[0] + padding[0], border[1] + padding[1])
    first = First(layer.in_channels, layer.out_channels, side, stride, own, height, width)
    square = height % 2 == 0 and 1 < width <= WHOLE and width & (width - 1) == 0  # kernels work on powers of two
    fits = first.channels == shape[0] and first.outputs == WHOLE and first.room <= WHOLE
    return first if pooled and square and fits else None
