"""Models by name. A model is a factory: shape of one input, number of outputs -> nn.Module, without BatchNorm (R31).

No model here has dropout: its masks would make devices depend on the order in which they train.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from d2dfl.errors import UserError, described
from d2dfl.registry import entry_named
from d2dfl.words import a_kind

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


def tried(factory: Factory, shape: Shape, outputs: int) -> Factory:
    """A factory after it made one model, which was shown two inputs; or a sentence why that went wrong."""
    try:
        model = _seeded(factory, shape, outputs, 0)
        answer = _shown(model, torch.zeros(2, *shape)) if isinstance(model, nn.Module) else None
    except UserError:
        raise
    except Exception as error:  # whatever a user's model does
        raise UserError(f"model cannot take inputs of the shape {shape}: {described(error):.200}") from error
    if answer is None:
        raise UserError(f"model makes {a_kind(model)}: give a class or function that makes a torch.nn.Module")
    if not isinstance(answer, Tensor) or answer.shape != (2, outputs):
        found = tuple(answer.shape[1:]) if isinstance(answer, Tensor) else type(answer).__name__
        raise UserError(f"model gives outputs of the shape {found}: the data asks for {outputs} numbers")
    if not answer.requires_grad:
        raise UserError("model gives outputs without a gradient: give some that are computed from its weights")
    return factory


def _shown(model: nn.Module, inputs: Tensor) -> object:
    """What a model gives for inputs, while it trains."""
    check_averages(model)
    before = {name: held.clone() for name, held in model.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        model.eval()(inputs)
        answer: object = model.train()(inputs)
    for name, held in model.named_buffers():
        if not torch.equal(held, before[name]):
            raise UserError(
                f"the model changes {name} by itself: only weights are averaged and kept; give it none such"
            )
    return answer


def build(factory: Factory, shape: Shape, outputs: int, seed: int) -> nn.Module:
    """A model whose first weights depend on the seed alone; a model that cannot be averaged is refused.

    What it does not train is the same for every seed: runs and devices share it.
    """
    model = _seeded(factory, shape, outputs, seed)
    check_averages(model)
    if seed and len(list(_untrained(model))):
        with torch.no_grad():
            for own, first in zip(_untrained(model), _untrained(_seeded(factory, shape, outputs, 0)), strict=True):
                own.copy_(first)
    return model


def check_averages(model: nn.Module) -> None:
    """Refuse a model whose state is not weights alone, in 32 bits, of shapes that are known."""
    for name, module in model.named_modules():
        if getattr(module, "track_running_stats", False):
            raise UserError(
                f"the model has {type(module).__name__} ({name or 'itself'}), whose running statistics break "
                "under label skew: use GroupNorm or no normalisation"
            )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("the model has no parameter to train: give a model with weights that require a gradient")
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.UninitializedParameter):
            raise UserError(f"the model has {name} of no shape yet: give layers that know their inputs, not lazy ones")
        if parameter.dtype != torch.float32:
            kind = str(parameter.dtype).removeprefix("torch.")
            raise UserError(f"the model has {name} of the type {kind}: give weights of the type float32")


def _seeded(factory: Factory, shape: Shape, outputs: int, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        # Of the CPU, where models are made: to seed those of other devices, too, takes 3 ms a model.
        torch.default_generator.manual_seed(seed)
        return factory(shape, outputs)


def _untrained(model: nn.Module) -> Iterator[Tensor]:
    """Frozen weights and buffers."""
    yield from (held for held in model.parameters() if not held.requires_grad)
    yield from model.buffers()


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
