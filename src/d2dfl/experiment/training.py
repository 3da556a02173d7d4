"""Train on what devices hold, in one call: `d2dfl.train`."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from d2dfl.config import Config, config_from
from d2dfl.config.seeds import checked_seed
from d2dfl.data import Dataset
from d2dfl.errors import UserError
from d2dfl.experiment.measures import final_score
from d2dfl.experiment.pipeline import suited
from d2dfl.experiment.setting import holdings_at_start, paradigm_of
from d2dfl.federation import Curves, Federated, State, check_training, model_named, model_of, start, train_many
from d2dfl.federation.layout import Layout
from d2dfl.federation.models import Factory, Shape, tried
from d2dfl.federation.schemes import scheme_named
from d2dfl.notebook import facts_html, line
from d2dfl.progress import Share, silent
from d2dfl.storage import written_whole
from d2dfl.words import a_kind, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Model = str | nn.Module | type[nn.Module] | Factory
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Trained:
    """Curves and models of one training."""

    curves: Curves
    models: tuple[nn.Module, ...]  # one for all devices, or one a device in schemes without a server
    data: Federated

    @property
    def model(self) -> nn.Module:
        """The model that all devices share, or that of the first device."""
        return self.models[0]

    @property
    def score(self) -> float:
        """On the test part: the mean of the last fifth of the curve, as in every table. `curves.last_score` is the model's own."""
        return final_score(self.curves.scores)

    def _facts(self) -> dict[str, str]:
        return {
            self.curves.score_name: f"{self.score:.3f}",
            "rounds": counted(self.curves.rounds[-1], "round"),
            "devices": counted(self.data.devices, "device"),
            "models": counted(len(self.models), "model"),
        }

    def __repr__(self) -> str:
        facts = self._facts()
        score = facts.pop(self.curves.score_name)
        return line("Trained", f"{self.curves.score_name} {score}", *facts.values())

    def _repr_html_(self) -> str:
        return facts_html("Trained", self._facts())

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Score against rounds; with a path it is written there, too."""
        from d2dfl.report.drawing.lines import figure_of, write_figure
        from d2dfl.report.findings import Chart, Line

        rounds, scores = tuple(map(float, self.curves.rounds)), tuple(self.curves.scores)
        chart = Chart("", "round", self.curves.score_name, (Line("trained", "", rounds, scores, scores, scores),))
        return write_figure(figure_of(chart), path)


def train(
    data: Federated | Dataset,
    config: Config | Mapping[str, Any] | None = None,
    *,
    model: Model | None = None,
    holdings: Sequence[NDArray[np.int64]] | None = None,
    seed: int = 0,
    progress: Share = silent,
) -> Trained:
    """Federated learning on what every device holds.

    `data` is a dataset with `holdings`, numbers of datapoints per device, such as those that `exchange` gives; without
    them those that the data says, or dealt out by the configuration's rule. Or it is a `Federated`, which has it all.
    `model` is a name (`mlp`, `cnn`, …), a class or function called with (shape, outputs) or with nothing, or a module;
    without it one that suits the inputs. Rounds, scheme, optimiser and so on are the configuration's [federation];
    `config`: all settings, or those that are changed by their names.
    """
    config, seed = config_from(config, Config()), checked_seed(seed)
    settings, devices = (
        config.federation,
        data if isinstance(data, Federated) else _on_devices(data, config, holdings, seed),
    )
    if isinstance(data, Federated) and holdings is not None:
        raise UserError("holdings are given twice: a Federated says itself who holds what")
    chosen = settings.model if model is None else model
    if isinstance(chosen, str):
        chosen = suited(chosen, config, devices.shape)
    factory = factory_from(chosen, devices.shape, devices.outputs)
    state = start(factory, devices, settings, seed, check_training(factory, [(devices, seed)], settings))
    (curves,) = train_many(factory, [(devices, seed)], settings, progress=progress, states=[state])
    return Trained(curves, models_of(factory, devices, state, config), devices)


def _on_devices(dataset: Dataset, config: Config, holdings: Sequence[NDArray[np.int64]] | None, seed: int) -> Federated:
    if not isinstance(dataset, Dataset):
        raise UserError(f"data is of the type {type(dataset).__name__}: give a Dataset, or a Federated")
    paradigm = paradigm_of(config)
    if holdings is None:
        held = holdings_at_start(config, dataset, paradigm.skew(config, dataset), seed)
    else:
        held = tuple(np.asarray(rows) for rows in holdings)
        if any(rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu") for rows in held):
            raise UserError("holdings are not numbers of datapoints: give one array of whole numbers for each device")
        held = tuple(rows.astype(np.int64) for rows in held)
    return Federated.of(dataset, held, loss=paradigm.loss)


def models_of(factory: Factory, data: Federated, state: State, config: Config) -> tuple[nn.Module, ...]:
    """The final model, or those of all devices in schemes without a server."""
    shared = scheme_named(config.federation.scheme).shared
    return tuple(model_of(factory, data, state, device) for device in range(1 if shared else data.devices))


def weights_of(models: Sequence[nn.Module]) -> Weights:
    """The state of a model; of several, each tensor has the model's number as its first axis."""
    states = [model.state_dict() for model in models]
    if len(states) == 1:
        return {name: held.detach().clone(memory_format=torch.contiguous_format) for name, held in states[0].items()}
    return {name: torch.stack([state[name].detach() for state in states]).contiguous() for name in states[0]}


def weights_in(factory: Factory, data: Federated, state: State) -> Weights:
    """The same from a state, without a module for every row."""
    model = model_of(factory, data, state)
    if len(state.params) == 1:
        return weights_of([model])
    layout, rows = Layout.of(model), state.params.detach().cpu()
    trained = dict(zip(layout.names, layout.views(rows), strict=True))
    return {
        name: trained.get(name, held.expand(len(rows), *held.shape)).contiguous()
        for name, held in model.state_dict().items()
    }


def save_weights(weights: Weights, path: Path) -> None:
    """Write a plain state dictionary for `torch.load(path, weights_only=True)`; the same weights give the same bytes."""
    with written_whole(path) as file:
        try:
            torch.save(weights, file)
        except RuntimeError as error:  # so PyTorch says that a disk is full
            raise OSError(str(error).splitlines()[0]) from error


def factory_from(model: Model, shape: Shape, outputs: int) -> Factory:
    """A factory of models that take such inputs and give so many outputs, tried once, or a sentence why not."""
    return tried(model_named(model) if isinstance(model, str) else _factory(model), shape, outputs)


def _factory(model: Any) -> Factory:
    """A user's model as a function of (shape, outputs)."""
    if isinstance(model, nn.Module):
        return lambda _shape, _outputs: copy.deepcopy(model)
    if not callable(model):
        raise UserError(f"model is {a_kind(model)}: give a name, a class or function, or a torch.nn.Module")
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):  # built in
        return model  # type: ignore[no-any-return]  # the trial says what is wrong
    needed = [
        one
        for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) == 0 and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return lambda _shape, _outputs: model()
    if len(needed) in (0, 2):
        return model  # type: ignore[no-any-return]  # called with two arguments
    raise UserError(f"model takes {counted(len(needed), 'argument')}: give one that takes (shape, outputs), or none")
