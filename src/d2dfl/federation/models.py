"""Models by name. A model is a factory: shape of one input, number of outputs -> nn.Module, without BatchNorm (R31).

No model here has dropout: its masks would make devices depend on the order in which they train.
"""

from collections.abc import Callable
from itertools import pairwise
from math import prod

import torch
from torch import nn

from d2dfl.errors import UserError
from d2dfl.registry import entry_named

Shape = tuple[int, ...]
Factory = Callable[[Shape, int], nn.Module]

EMBEDDING = 8  # outputs of the two encoders (Appendix C)
SIDE = 32  # AlexNet's input; smaller images get a border of zeros


def outputs_for(classes: int, encodes: bool) -> int:
    """Numbers that a model gives for an input: an embedding, one a class, or the number to predict."""
    return EMBEDDING if encodes else classes or 1


def alexnet(shape: Shape, outputs: int) -> nn.Module:
    """AlexNet for 32 x 32 images: five convolutions and three dense layers, 2.6 million parameters."""
    channels, height, width = _image("alexnet", shape)
    rows, columns = max(height, SIDE), max(width, SIDE)
    top, left = (rows - height) // 2, (columns - width) // 2
    border = nn.ZeroPad2d((left, columns - width - left, top, rows - height - top))
    return _prepared(
        nn.Sequential(
            *([border] if (rows, columns) != (height, width) else []),
            *(nn.Conv2d(channels, 64, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(64, 192, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Flatten(),
            *_dense((256 * (rows // 16) * (columns // 16), 256, 256, outputs)),
        )
    )


def alexnet1d(shape: Shape, outputs: int) -> nn.Module:
    """The same five and three layers for signals such as 2 x 128."""
    if len(shape) != 2 or shape[1] < 16:
        raise UserError(f"alexnet1d cannot take inputs of the shape {shape}: give channels x samples, 16 or more")
    channels, samples = shape
    return _prepared(
        nn.Sequential(
            *(nn.Conv1d(channels, 64, 7, stride=2, padding=3), nn.ReLU(), nn.MaxPool1d(2)),
            *(nn.Conv1d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2)),
            *(nn.Conv1d(192, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv1d(384, 256, 3, padding=1), nn.ReLU()),
            *(nn.Conv1d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2)),
            nn.Flatten(),
            *_dense((256 * (((samples + 1) // 2) // 8), 256, 256, outputs)),
        )
    )


def cnn(shape: Shape, outputs: int) -> nn.Module:
    """A small network of two convolutions and two dense layers, for images from 4 x 4."""
    channels, height, width = _image("cnn", shape)
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *_dense((64 * (height // 4) * (width // 4), 128, outputs)),
    )


def cnn_lite(shape: Shape, outputs: int) -> nn.Module:
    """Two convolutions that each halve an image, for processors without a GPU: a tenth of the work of `cnn`."""
    channels, height, width = _image("cnn-lite", shape)
    rows, columns = -(-height // 4), -(-width // 4)
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        nn.Flatten(),
        *_dense((32 * rows * columns, 64, outputs)),
    )


def cnn1d_lite(shape: Shape, outputs: int) -> nn.Module:
    """The same for signals such as 2 x 128."""
    if len(shape) != 2 or shape[1] < 16:
        raise UserError(f"cnn1d-lite cannot take inputs of the shape {shape}: give channels x samples, 16 or more")
    channels, samples = shape
    return nn.Sequential(
        *(nn.Conv1d(channels, 16, 7, stride=2, padding=3), nn.ReLU()),
        *(nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU()),
        nn.Flatten(),
        *_dense((32 * -(-samples // 4), 64, outputs)),
    )


def mlp(shape: Shape, outputs: int) -> nn.Module:
    """Three dense layers, for anything."""
    return nn.Sequential(nn.Flatten(), *_dense((prod(shape), 128, 64, outputs)))


def encoder_conv(shape: Shape, outputs: int = EMBEDDING) -> nn.Module:
    """Four convolutions and the projection to the embedding (Section VI: the encoder of Fashion-MNIST)."""
    channels, height, width = _image("encoder-conv", shape)
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(64 * (height // 4) * (width // 4), outputs)),
    )


def encoder_mlp(shape: Shape, outputs: int = EMBEDDING) -> nn.Module:
    """Three dense layers down to the embedding (Section VI: the encoder of USPS)."""
    return nn.Sequential(nn.Flatten(), *_dense((prod(shape), 256, 128, outputs)))


MODELS: dict[str, Factory] = {
    "alexnet": alexnet,
    "alexnet1d": alexnet1d,
    "cnn": cnn,
    "cnn-lite": cnn_lite,
    "cnn1d-lite": cnn1d_lite,
    "mlp": mlp,
    "encoder-conv": encoder_conv,
    "encoder-mlp": encoder_mlp,
}


def model_named(name: str) -> Factory:
    """The model of this name, or a UserError that lists the names."""
    return entry_named("model", name, MODELS)


def default_model(shape: Shape) -> str:
    """The name of a sensible model for inputs of this shape."""
    if len(shape) == 2 and shape[1] >= 16:
        return "alexnet1d"
    if len(shape) == 3 and min(shape[1:]) >= 12:
        return "alexnet" if shape[0] == 3 else "cnn"
    return "mlp"


def default_encoder(shape: Shape) -> str:
    """The name of a sensible encoder for inputs of this shape: as the paper, dense up to 16 x 16."""
    return "encoder-conv" if len(shape) == 3 and min(shape[1:]) > 16 else "encoder-mlp"


def build(factory: Factory, shape: Shape, outputs: int, seed: int) -> nn.Module:
    """A model whose first weights depend on the seed alone; a model that cannot be averaged is refused."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = factory(shape, outputs)
    for name, module in model.named_modules():
        if getattr(module, "track_running_stats", False):
            raise UserError(
                f"the model has {type(module).__name__} ({name or 'itself'}), whose running statistics break "
                "under label skew: use GroupNorm or no normalisation"
            )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("the model has no parameter to train: give a model with weights that require a gradient")
    return model


def _dense(widths: tuple[int, ...]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return layers[:-1]


def _image(name: str, shape: Shape) -> Shape:
    if len(shape) != 3 or min(shape[1:]) < 4:
        raise UserError(f"{name} cannot take inputs of the shape {shape}: give channels x height x width, 4 or more")
    return shape


def _prepared(model: nn.Sequential) -> nn.Sequential:
    """He's initial weights: with PyTorch's own, eight layers without normalisation start too flat to learn."""
    for module in model:
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model
