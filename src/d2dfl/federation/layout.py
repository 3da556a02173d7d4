"""How a model lies in its row of params[device, parameter]."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Layout:
    """Names, shapes and places of a model's trainable parameters in a row.

    Kernels of 2-D convolutions lie in a row with their channels last, the order that is fastest on processors, so
    that views need no copies in either executor.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, model: nn.Module) -> "Layout":
        """The layout of a model."""
        trained = [(name, tuple(tensor.shape)) for name, tensor in model.named_parameters() if tensor.requires_grad]
        return cls(tuple(name for name, _ in trained), tuple(shape for _, shape in trained))

    @property
    def sizes(self) -> list[int]:
        return [prod(shape) for shape in self.shapes]

    @property
    def parameters(self) -> int:
        """Length of a row."""
        return sum(self.sizes)

    @property
    def convolutional(self) -> bool:
        """Whether a model has convolutions."""
        return any(len(shape) > 2 for shape in self.shapes)

    def views(self, rows: Tensor) -> list[Tensor]:
        """Views [..., *shape] of each parameter in one row or in several."""
        leading = rows.shape[:-1]
        parts = []
        for part, shape in zip(torch.split(rows, self.sizes, dim=-1), self.shapes, strict=True):
            if len(shape) == 4:
                out, channels, height, width = shape
                parts.append(part.view(*leading, out, height, width, channels).movedim(-1, -3))
            else:
                parts.append(part.view((*leading, *shape)))  # a single number, too
        return parts

    def flatten(self, tensors: Sequence[Tensor | None], into: Tensor) -> None:
        """Write tensors [..., *shape], such as gradients, into a row or rows. None: the model did not use it."""
        for view, tensor in zip(self.views(into), tensors, strict=True):
            if tensor is None:
                view.zero_()
            else:
                view.copy_(tensor)

    def add(self, tensors: Sequence[Tensor | None], into: Tensor) -> None:
        """Add to what `flatten` wrote."""
        for view, tensor in zip(self.views(into), tensors, strict=True):
            if tensor is not None:
                view.add_(tensor)

    def row_of(self, model: nn.Module) -> Tensor:
        """The row of a model's present weights."""
        row = torch.empty(self.parameters)
        held = dict(model.named_parameters())
        self.flatten([held[name].detach() for name in self.names], row)
        return row

    def bind(self, model: nn.Module, row: Tensor) -> list[nn.Parameter]:
        """Make a model's parameters views of a row; what is done to one is done to the other."""
        held = dict(model.named_parameters())
        bound = [held[name] for name in self.names]
        for parameter, view in zip(bound, self.views(row), strict=True):
            parameter.data = view
        return bound
