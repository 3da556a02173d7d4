"""What a training is at the end of a round: saved and restored bit for bit."""

from collections.abc import Sequence
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
from d2dfl.federation.optimisers import Memory, remembered
from d2dfl.federation.room import IN_MEMORY, Room
from d2dfl.federation.schemes import SCHEMES, present, scheme_named
from d2dfl.federation.sealed import PIECE, read_sealed, write_sealed

VERSION = 5


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
    def last_score(self) -> float:
        """The score of the model as it is now. Tables give `measures.final`: one evaluation alone moves from round to round."""
        return self.scores[-1]

    def begin_round(self, devices: int) -> None:
        """A round in which nothing was sent yet."""
        self.uploads.append([0] * devices)
        self.downloads.append([0] * devices)
        self.links.append([])

    def book(self, mixing: Mixing | None) -> None:
        """Add the models that an aggregation sends to those of the round."""
        if mixing is None:
            return
        self.uploads[-1] = (mixing.uploads + self.uploads[-1]).tolist()
        self.downloads[-1] = (mixing.downloads + self.downloads[-1]).tolist()
        if len(mixing.between):
            before = np.array(self.links[-1], dtype=np.int64).reshape(-1, 3)
            pairs = np.concatenate([before[:, :2], mixing.between])
            models = np.concatenate([before[:, 2], np.ones(len(mixing.between), dtype=np.int64)])
            known, places = np.unique(pairs, axis=0, return_inverse=True)
            sums = np.zeros(len(known), dtype=np.int64)
            np.add.at(sums, places.ravel(), models)
            self.links[-1] = list(zip(*known.T.tolist(), sums.tolist(), strict=True))


@dataclass
class State:
    """Everything that a later round depends on. `train` changes it in place."""

    params: Tensor  # [row, parameter]: one for all devices, or one a device (Scheme.rows)
    memory: Memory  # of the optimisers: a row a device, or one of the server's (Scheme.remembering)
    done: NDArray[np.int64]  # [device] minibatches taken: where each device's stream stands
    seed: int
    settings: dict[str, Any]  # of the run, so that no other run goes on from it
    round: int = 0  # rounds done
    curves: Curves = field(default_factory=Curves)

    def save(self, path: Path, rounds: int | None = None) -> str:
        """Write the state whole or not at all, and give its checksum.

        After all `rounds` nobody needs what optimisers remember, which may be gigabytes: nothing of it is written.
        """
        values = {
            "version": VERSION,
            "seed": self.seed,
            "settings": self.settings,
            "round": self.round,
            "curves": vars(self.curves),  # asdict copies every number of every round, each round anew
        }
        rows = {"params": _compact(self.params)}
        for name, held in self.memory.items():
            blank = np.zeros((1, held.shape[1]), dtype=np.float32)
            rows[f"memory.{name}"] = blank if self.round == rounds else _compact(held)
        return write_sealed(path, values, {"done": self.done, **rows})

    @classmethod
    def load(
        cls, path: Path, devices: int | None = None, checksum: str | None = None, room: Room = IN_MEMORY
    ) -> "State":
        """Read a saved state; nothing in the file is ever executed.

        `devices` and `checksum`, where they are known, must be those of the file. `room` says where rows are kept.
        """
        values, arrays, found = read_sealed(path, lambda *shape: room.rows(*shape).numpy())
        if checksum not in (None, found):
            raise UserError(f"{path} is not the state that was saved under this name: train anew")
        if values.get("version") != VERSION:
            raise UserError(f"{path} was written by another version of d2dfl: train anew")
        try:
            return _loaded(values, arrays, devices, room)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise UserError(f"{path} is not a saved state: its parts do not fit together") from None

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
        rows = scheme_named(settings.scheme).remembering(settings, data.devices)
        kept = {name: (rows, size) for name, size in remembered(settings, parameters).items()} if rows else {}
        shapes = {name: tuple(held.shape) for name, held in self.memory.items()}
        if shapes != kept or len(self.params) != scheme_named(settings.scheme).rows(data.devices):
            raise UserError("the saved state does not fit these devices and their optimiser: train anew")
        self._check_progress(settings, data)

    def _check_progress(self, settings: FederationConfig, data: Federated) -> None:
        """Rounds, minibatches and evaluations must be those that this many rounds have."""
        loss, steps = data.objective(settings), scheme_named(settings.scheme).round_steps(settings)
        done = np.zeros(data.devices, dtype=np.int64)
        if self.round <= settings.rounds:
            for number in range(self.round):
                done += steps * (present(settings, self.seed, number, data.devices) & (data.sizes > 0))
        due = set(range(settings.evaluate_every, self.round + 1, settings.evaluate_every))
        named = (loss.score_name, loss.higher_is_better) == (self.curves.score_name, self.curves.higher_is_better)
        if not named or self.round > settings.rounds or not due <= set(self.curves.rounds) or (self.done != done).any():
            raise UserError("the saved state does not fit the rounds that it is said to have: train anew")


def identity(settings: FederationConfig, data: Federated) -> dict[str, Any]:
    """What must be equal for a run to go on: all settings but its length and where it is computed."""
    free = {"rounds", "executor", "device", "block"}
    fixed = {name: value for name, value in asdict(settings).items() if name not in free}
    return fixed | {"sizes": data.sizes.tolist(), "loss": data.objective(settings).name}


def _compact(rows: Tensor) -> NDArray[np.float32]:
    """Equal rows, as after a broadcast, are saved once."""
    same = all(torch.equal(row, rows[0]) for row in rows[1:])
    return np.asarray((rows[:1] if same else rows).detach().cpu().numpy())


def _loaded(values: dict[str, Any], arrays: dict[str, NDArray[Any]], devices: int | None, room: Room) -> State:
    """A state from what a file holds; ValueError where it does not fit together."""
    done, params = arrays.pop("done"), arrays.pop("params")
    number, curves = values["round"], _curves(values["curves"], len(done))
    memory = {name.removeprefix("memory."): rows for name, rows in arrays.items()}
    whole = done.dtype == np.int64 and done.ndim == 1 and (devices is None or len(done) == devices)
    if not whole or type(number) is not int or number < 0 or type(values["seed"]) is not int:
        raise ValueError("counts")
    if (done < 0).any() or not isinstance(values["settings"], dict) or len(curves.training_losses) != number:
        raise ValueError("counts")
    scheme, mixes = SCHEMES.get(values["settings"].get("scheme", "")), values["settings"].get("momentum_rule") == "mix"
    models = len(done) if scheme is None else scheme.rows(len(done))
    remembering = models if mixes or (scheme is not None and scheme.server_step) else len(done)
    for rows, number_of_rows in ((params, models), *((rows, remembering) for rows in memory.values())):
        fits = rows.dtype == np.float32 and rows.ndim == 2 and len(rows) in (1, number_of_rows)
        if not fits or not _finite(rows):
            raise ValueError("rows")
    return State(
        params=_full(params, models, room),
        memory={name: _full(rows, remembering, room) for name, rows in memory.items()},
        done=done,
        seed=values["seed"],
        settings=values["settings"],
        round=number,
        curves=curves,
    )


def _curves(values: dict[str, Any], devices: int) -> Curves:
    """Curves that a training of so many devices can have; ValueError for any other."""
    curves = Curves(**values)
    evaluated: list[list[Any]] = [curves.minibatches, curves.scores, curves.spreads, curves.losses]
    passed: list[list[Any]] = [curves.uploads, curves.downloads, curves.links]
    same = all(len(one) == len(curves.rounds) for one in [*evaluated, curves.device_scores])
    same = same and all(len(one) == len(curves.training_losses) for one in passed)
    named = type(curves.score_name) is str and type(curves.higher_is_better) is bool
    rising = _counts(curves.rounds, len(curves.training_losses)) and curves.rounds == sorted(set(curves.rounds))
    finite = all(_numbers(one) for one in [*evaluated, *curves.device_scores])
    trained = all(type(value) is float for value in curves.training_losses)  # not a number where nobody trained
    sent = all(len(one) == devices and _counts(one) for one in [*curves.uploads, *curves.downloads])
    curves.links = [[(sender, receiver, models) for sender, receiver, models in links] for links in curves.links]
    linked = all(_counts(link[:2], devices - 1) and _counts(link[2:]) for links in curves.links for link in links)
    if not (same and named and rising and finite and trained and sent and linked):
        raise ValueError("curves")
    return curves


def _counts(values: Sequence[Any], highest: int = 1 << 40) -> bool:
    return all(type(value) is int and 0 <= value <= highest for value in values)


def _numbers(values: Sequence[Any]) -> bool:
    return all(type(value) in (int, float) and abs(value) < 1e300 for value in values)


def _finite(rows: NDArray[np.float32]) -> bool:
    """Whether all are numbers; a piece at a time, because rows may be a file larger than the memory."""
    flat = rows.reshape(-1)
    return all(bool(np.isfinite(flat[first : first + PIECE]).all()) for first in range(0, len(flat), PIECE))


def _full(rows: NDArray[np.float32], number: int, room: Room) -> Tensor:
    """Rows as they were; zeros are not written, and so take no place."""
    held = torch.from_numpy(rows)
    if len(rows) == number:
        return held
    full = room.rows(number, rows.shape[1])
    return full.copy_(held) if rows.any() else full
