"""A step of many models of convolutions on a GPU: no windows in memory, no casts of weights, one CUDA graph.

Rounded copies of the weights (bfloat16) lie beside the float32 ones and are renewed by the kernel that takes the optimiser's step.
Convolutions read them as they lie (tiles.py) and write their gradients where that kernel reads them. Dense layers and the loss
are PyTorch's.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from d2dfl.config import FederationConfig
from d2dfl.federation.executors import tiles
from d2dfl.federation.executors.design import WHOLE, Convolution, Design
from d2dfl.federation.executors.loop import Job
from d2dfl.federation.optimisers import Memory, descend

# Weights of the head [row, ...], its inputs, targets, shares -> mean losses [row].
HeadLosses = Callable[[Sequence[Tensor], Tensor, Tensor, Tensor], Tensor]
Launch = Callable[[], object]

# Of a tile: rows, columns, warps, and blocks under way, by whether the columns are a multiple of 128; the
# fastest of up to 19 on an H200 (dev/LOG.md).
FORWARD = {True: (256, 128, 8, 4), False: (128, 64, 4, 3)}
BACKWARD = {True: (256, 128, 8, 4), False: (256, 64, 4, 4)}
BLOCK = 2048  # numbers of a block where the largest of four are taken


def descend_and_round(
    rows: Tensor, gradient: Tensor, own: Memory, anchor: Tensor | None, copy: Tensor, settings: FederationConfig
) -> None:
    """A step of the optimiser, and the rounded copy of what it made; compiled, one pass over all."""
    descend(rows, gradient.float(), own, anchor, settings)
    copy.copy_(rows)


class Fused:
    """Steps of `rows` models with minibatches of `batch` datapoints."""

    def __init__(self, job: Job, design: Design, head: HeadLosses, rows: int, batch: int) -> None:
        self.job, self.design, self.head = job, design, head
        self.rows, self.batch = rows, batch
        place = job.inputs.device
        self.chosen = torch.zeros(rows, batch, dtype=torch.int64, device=place)
        self.shares = torch.zeros(rows, batch, device=place)
        self.losses = torch.zeros(rows, device=place)
        # A row begins where the card can copy blocks from: at a multiple of 16 bytes.
        wide = -(-job.layout.parameters // 8) * 8
        self.copies = self._blank(rows, wide)
        self.gradients = self._blank(rows, wide)
        self.copy, self.gradient = (held[:, : job.layout.parameters] for held in (self.copies, self.gradients))
        self.descend = torch.compile(descend_and_round, dynamic=False)
        self.forward, self.backward = self._launches()
        self.graph = self._captured()

    def steps(self, rows: Tensor, own: Memory, anchor: Tensor | None, indices: Tensor, shares: Tensor) -> Tensor:
        """Steps on minibatches [step, row, n] in place; losses [step, row] before each."""
        number = indices.shape[2]
        wide = indices[:, :, :1].repeat(1, 1, self.batch)
        wide[:, :, :number] = indices
        self.shares[:, :number] = shares
        self.shares[:, number:] = 0
        self.copy.copy_(rows)
        losses = torch.empty(indices.shape[:2], device=rows.device)
        for step, chosen in enumerate(wide):
            self.chosen.copy_(chosen)
            self.graph.replay()
            losses[step] = self.losses
            self.descend(rows, self.gradient, own, anchor, self.copy, self.job.settings)
        return losses

    def _blank(self, *shape: int, kind: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.zeros(shape, dtype=kind, device=self.job.inputs.device)

    def _image(self, height: int, width: int, channels: int) -> Tensor:
        """Activations with a border of zeros."""
        return self._blank(self.rows, (height + 2) * (width + 2) * self.batch, channels)

    def _inside(self, image: Tensor, height: int, width: int) -> Tensor:
        """[row, n, channel, line, place] without the border."""
        whole = image.view(self.rows, height + 2, width + 2, self.batch, -1)
        return whole[:, 1:-1, 1:-1].permute(0, 3, 4, 1, 2)

    def _launches(self) -> tuple[list[Launch], list[Launch]]:
        """What computes the losses, and what computes the gradients, in order."""
        design = self.design
        forward, backward, now, slope = self._first()
        for number, layer in enumerate(design.convolutions):
            before = design.first.bias if number == 0 else design.convolutions[number - 1].bias
            there, back, now, slope = self._convolution(layer, before, now, slope)
            forward += there
            backward = back + backward
        height, width = design.result
        inputs, into = (self._inside(image, height, width) for image in (now, slope))
        forward.append(lambda: self._head(inputs, into))
        return forward, backward

    def _first(self) -> tuple[list[Launch], list[Launch], Tensor, Tensor]:
        """The first convolution: launches, its result, and room for the gradient to it."""
        first, rows, batch = self.design.first, self.rows, self.batch
        channels, height, width = self.job.inputs.shape[1:]
        lines, places = first.height // 2, first.width // 2
        windows = self._blank(rows, first.height * first.width * batch, first.room)
        result, slope = (self._image(lines, places, first.outputs) for _ in range(2))
        code = self._blank(rows, lines * places * batch, first.outputs, kind=torch.int8)
        parts = self._blank(rows, lines, first.outputs, first.room, kind=torch.float32)
        size = {"LINES": first.height, "PLACES": first.width, "N": batch, "TAPS": first.room, "OUT": first.outputs}
        cut = {"SIDE": first.side, "STRIDE": first.stride, "TOP": first.border[0], "LEFT": first.border[1]}
        data = {"CHANNELS": channels, "HEIGHT": height, "WIDTH": width, "PLACES": first.width, "N": batch}

        def windowed() -> None:
            grid = (first.height, batch // 8, rows)
            tiles.lay_windows[grid](self.job.inputs, self.chosen, windows, **data, **cut, BLOCK=8, TAPS=first.room)

        def forward() -> None:
            grid, stride = (lines * places, batch // 64, rows), self.copies.stride(0)
            tiles.first_forward[grid](
                windows, self.copies, result, code, stride, first.bias[0], **size, USED=first.taps, BLOCK=64
            )

        def backward() -> None:
            tiles.first_weights[lines, rows](slope, code, windows, parts, **size, BLOCK=64)
            own = self.gradients[:, : first.outputs * first.taps].view(rows, first.outputs, first.taps)
            own.copy_(parts.sum(dim=1)[:, :, : first.taps])

        return [windowed, forward], [backward], result, slope

    def _convolution(
        self, layer: Convolution, before: tuple[int, int], source: Tensor, slope: Tensor
    ) -> tuple[list[Launch], list[Launch], Tensor, Tensor]:
        """A convolution of `source`, whose gradient goes to `slope`, and its sum to the bias `before`: as above."""
        result = self._image(layer.height, layer.width, layer.outputs)
        if not layer.pooled:
            into = self._image(layer.height, layer.width, layer.outputs)
            forward, backward = [self._to_result(layer, source, result)], self._back(layer, before, source, slope, into)
            return forward, backward, result, into
        pooled, to_pooled = (self._image(*layer.result, layer.outputs) for _ in range(2))
        length = self.batch * layer.outputs
        grid = (length // BLOCK, layer.height * layer.width // 4, self.rows)
        size = {"H": layer.height, "W": layer.width, "SIZE": length, "BLOCK": BLOCK}
        forward = [self._to_result(layer, source, result), lambda: tiles.pool_forward[grid](result, pooled, **size)]
        # The gradient to the result takes its place.
        backward = [lambda: tiles.pool_backward[grid](to_pooled, result, **size)]
        return forward, backward + self._back(layer, before, source, slope, result), pooled, to_pooled

    def _to_result(self, layer: Convolution, source: Tensor, result: Tensor) -> Launch:
        """The convolution and relu."""
        rows, columns, warps, stages = FORWARD[layer.outputs % 128 == 0]
        rows = min(rows, self._line(layer))
        bias = self.copies[:, slice(*layer.bias)]
        maps = blocks(source, rows, WHOLE), blocks(self._weights(self.copies, layer), columns, WHOLE)
        out = blocks(result, rows, columns)
        grid = (layer.outputs // columns, layer.height * layer.width * self.batch // rows, self.rows)
        tile = {"BM": rows, "BN": columns, "BK": WHOLE, "STAGES": stages, "num_warps": warps}
        return lambda: tiles.conv_forward[grid](*maps, bias, out, bias.stride(0), **self._size(layer), **tile)

    def _back(
        self, layer: Convolution, before: tuple[int, int], source: Tensor, slope: Tensor, into: Tensor
    ) -> list[Launch]:
        """From the gradient `into` its result to that of its weights, of `source`, and of the bias `before`."""
        rows, columns, warps, stages = BACKWARD[layer.channels % 128 == 0]
        rows = min(rows, self._line(layer))
        grid = (layer.channels // columns, layer.height * layer.width * self.batch // rows, self.rows)
        sums = self._blank(self.rows, grid[1], layer.channels, kind=torch.float32)
        maps = blocks(into, rows, WHOLE), blocks(self._weights(self.copies, layer), WHOLE, columns)
        outs = blocks(source, rows, columns), blocks(slope, rows, columns), sums
        tile = {"BM": rows, "BN": columns, "BK": WHOLE, "STAGES": stages, "num_warps": warps}

        def to_source() -> None:
            tiles.conv_backward[grid](*maps, *outs, **self._size(layer), **tile)
            self.gradients[:, slice(*before)] = sums.sum(dim=1)

        high, wide = (128 if number % 128 == 0 else 64 for number in (layer.outputs, layer.channels))
        here = blocks(into, WHOLE, high), blocks(source, WHOLE, wide)
        own = blocks(self._weights(self.gradients, layer), high, wide)
        parts = (9 * layer.channels // wide, layer.outputs // high, self.rows)
        part = {"BO": high, "BC": wide, "BK": WHOLE, "STAGES": 3 if wide == 128 else 4, "num_warps": 4}

        def to_weights() -> None:
            tiles.conv_weights[parts](*here, own, **self._size(layer), **part)

        return [to_weights, to_source]

    def _line(self, layer: Convolution) -> int:
        """Rows of a tile that fit into each line of an image."""
        return 256 if layer.width * self.batch % 256 == 0 else 128

    def _size(self, layer: Convolution) -> dict[str, int]:
        return {"C": layer.channels, "OUT": layer.outputs, "H": layer.height, "W": layer.width, "N": self.batch}

    def _weights(self, held: Tensor, layer: Convolution) -> Tensor:
        """[row, output, taps and channels] of rows of all parameters."""
        part = held[:, layer.offset : layer.offset + layer.size]
        return part.view(self.rows, layer.outputs, 9 * layer.channels)

    def _head(self, inputs: Tensor, into: Tensor) -> None:
        """Losses, the head's gradients, and the gradient to its inputs, whose sum is that of the last bias."""
        design, layout = self.design, self.job.layout
        count = len(list(design.head.parameters()))
        weights = [view.detach().requires_grad_() for view in layout.views(self.copy)[-count:]]
        features = inputs.detach().requires_grad_()
        losses = self.head(weights, features, self.job.targets[self.chosen], self.shares)
        slope, *gradients = torch.autograd.grad(losses.sum(), [features, *weights])
        for view, gradient in zip(layout.views(self.gradient)[-count:], gradients, strict=True):
            view.copy_(gradient)
        into.copy_(slope)
        self.gradients[:, slice(*design.convolutions[-1].bias)] = slope.float().sum(dim=(1, 3, 4))
        self.losses.copy_(losses.detach())

    def _work(self) -> None:
        """A step but for the optimiser's."""
        for launch in [*self.forward, *self.backward]:
            launch()

    def _captured(self) -> torch.cuda.CUDAGraph:
        """All launches of a step as one."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._work()  # compiles
            self._work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._work()
        return graph


def blocks(held: Tensor, *shape: int) -> object:
    """How the card copies blocks [1, *shape] of a tensor."""
    return TensorDescriptor(held, list(held.shape), list(held.stride()), [1, *shape])
