"""What a training is at the end of a round: saved and restored bit for bit."""

import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.federated import Federated
from d2dfl.federation.mixing import Mixing
from d2dfl.federation.optimisers import Memory

VERSION = 3


@dataclass
class Curves:
    """What was measured. The first group has one entry per evaluation, the second one per round."""

    score_name: str = "accuracy"
    higher_is_better: bool = True
    rounds: list[int] = field(default_factory=list)  # rounds done at each evaluation; 0 is before training
    minibatches: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # mean over devices, where they hold different models
    spreads: list[float] = field(default_factory=list)  # standard deviation over devices; 0 for one shared model
    losses: list[float] = field(default_factory=list)
    device_scores: list[list[float]] = field(default_factory=list)  # one entry for one shared model
    training_losses: list[float] = field(default_factory=list)  # mean over the round's minibatches
    uploads: list[list[int]] = field(default_factory=list)  # [round][device] models sent to the server
    downloads: list[list[int]] = field(default_factory=list)  # [round][device] models received from it
    links: list[list[tuple[int, int, int]]] = field(default_factory=list)  # [round] (sender, receiver, models)

    @property
    def score(self) -> float:
        """The last one."""
        return self.scores[-1]

    @property
    def to_server(self) -> list[int]:
        """[round] models sent to the server."""
        return [sum(models) for models in self.uploads]

    @property
    def from_server(self) -> list[int]:
        """[round] models received from the server."""
        return [sum(models) for models in self.downloads]

    @property
    def between(self) -> list[int]:
        """[round] models sent from device to device."""
        return [sum(models for _, _, models in links) for links in self.links]

    def begin_round(self, devices: int) -> None:
        """A round in which nothing was sent yet."""
        self.uploads.append([0] * devices)
        self.downloads.append([0] * devices)
        self.links.append([])

    def book(self, mixing: Mixing) -> None:
        """Add the models that an aggregation sends to those of the round."""
        self.uploads[-1] = (mixing.uploads + self.uploads[-1]).tolist()
        self.downloads[-1] = (mixing.downloads + self.downloads[-1]).tolist()
        sent = Counter({(sender, receiver): models for sender, receiver, models in self.links[-1]})
        sent.update((sender, receiver) for sender, receiver in mixing.between.tolist())
        self.links[-1] = [(*pair, models) for pair, models in sorted(sent.items())]

    def rounds_to(self, target: float) -> int | None:
        """Rounds until the score was first as good as a target, or None."""
        sign = 1 if self.higher_is_better else -1
        pairs = zip(self.rounds, self.scores, strict=True)
        return next((done for done, score in pairs if sign * score >= sign * target), None)


@dataclass
class State:
    """Everything that a later round depends on. `train` changes it in place."""

    params: Tensor  # [device, parameter]
    memory: Memory  # of the optimiser
    done: NDArray[np.int64]  # [device] minibatches taken: where each device's stream stands
    seed: int
    settings: dict[str, Any]  # of the run, so that no other run goes on from it
    round: int = 0  # rounds done
    curves: Curves = field(default_factory=Curves)

    def save(self, path: Path) -> None:
        """Write the state whole or not at all; what was there before stays until the new one is safe on the disk."""
        content = {
            "version": VERSION,
            "devices": len(self.params),
            "params": _compact(self.params),
            "memory": {name: _compact(rows) for name, rows in self.memory.items()},
            "done": torch.from_numpy(self.done),
            "seed": self.seed,
            "settings": self.settings,
            "round": self.round,
            "curves": asdict(self.curves),
        }
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            # Straight to the disk: a copy in memory would double what training needs.
            with part.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except (OSError, RuntimeError) as error:
            part.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or "the disk may be full"
            raise UserError(f"cannot write {str(path)!r}: {reason}") from None

    @classmethod
    def load(cls, path: Path) -> "State":
        """Read a saved state; nothing in the file is ever executed."""
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            if content["version"] != VERSION:
                raise UserError(f"{path} was written by another version of d2dfl: train anew")
            devices = content["devices"]
            return cls(
                params=_full(content["params"], devices),
                memory={name: _full(rows, devices) for name, rows in content["memory"].items()},
                done=content["done"].numpy(),
                seed=content["seed"],
                settings=content["settings"],
                round=content["round"],
                curves=Curves(**content["curves"]),
            )
        except FileNotFoundError:
            raise UserError(f"there is no file {str(path)!r}") from None
        except UserError:
            raise
        except Exception:  # a damaged file fails anywhere inside torch.load
            raise UserError(f"cannot read {str(path)!r}: it is not a whole saved state") from None

    def check(self, settings: FederationConfig, seed: int, data: Federated, parameters: int) -> None:
        """Refuse a state of another run: it could go on, but its numbers would mean nothing."""
        known = identity(settings, data)
        for name, value in known.items():
            if self.settings.get(name) != value:
                raise UserError(
                    f"the saved state is of a run with {name} {self.settings.get(name)!r} and not {value!r}: "
                    "resume with the same settings, or train anew"
                )
        if self.seed != seed:
            raise UserError(f"the saved state is of seed {self.seed} and not {seed}: resume with the same seed")
        if self.params.shape[1] != parameters:
            raise UserError(
                f"the saved state is of a model with {self.params.shape[1]:,} parameters, not {parameters:,}"
            )


def identity(settings: FederationConfig, data: Federated) -> dict[str, Any]:
    """What must be equal for a run to go on: all settings but its length and where it is computed."""
    free = {"rounds", "executor", "device"}
    fixed = {name: value for name, value in asdict(settings).items() if name not in free}
    return fixed | {"sizes": data.sizes.tolist(), "loss": data.objective(settings).name}


def _compact(rows: Tensor) -> Tensor:
    """Equal rows, as after a broadcast, are saved once."""
    same = all(torch.equal(row, rows[0]) for row in rows[1:])
    return (rows[:1] if same else rows).detach().cpu().clone()


def _full(rows: Tensor, devices: int) -> Tensor:
    return rows.expand(devices, -1).clone() if len(rows) == 1 else rows
