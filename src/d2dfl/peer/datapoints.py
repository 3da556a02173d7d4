"""Datapoints in and out of a store: .npz shards with inputs and targets, or a function of one's own; and as a torch Dataset."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.arrays import read_npz
from d2dfl.errors import UserError
from d2dfl.peer.store.operations import Note, Operation, TakeIn
from d2dfl.peer.store.store import Store
from d2dfl.peer.wire.messages import FORM as SENT_FORM
from d2dfl.peer.wire.messages import LARGEST_POINT
from d2dfl.storage import read_bytes

if TYPE_CHECKING:
    from torch.utils.data import Dataset

ShardFile = tuple[str, int, int]  # name, size, time of a file
FORM = re.compile(r"([<>|][fiub][0-9]{1,2})((?::[0-9]{1,9}){0,8})")


@dataclass(frozen=True)
class Shard:
    """Datapoints that come in together."""

    name: str
    digest: bytes
    inputs: NDArray[Any]
    targets: NDArray[Any]


def read_shards(source: str, home: Path) -> Iterator[Shard]:
    """All shards: of the files in a folder, or of `module.py:function`."""
    if ".py:" in source:
        yield from _own_shards(source, home)
        return
    folder = home / source
    if not folder.is_dir():
        raise UserError(f"there is no folder {str(folder)!r}: put .npz files with inputs and targets there")
    try:
        paths = sorted(
            path for path in folder.iterdir() if path.name.endswith(".npz")
        )  # glob() says nothing of one that is closed
    except OSError as error:
        raise UserError(f"cannot read {str(folder)!r}: {error.strerror}") from None
    for path in paths:
        digest = hashlib.sha256(read_bytes(path, "an .npz file")).digest()
        arrays = read_npz(path, ("inputs", "targets"))
        missing = [name for name in ("inputs", "targets") if name not in arrays]
        if missing:
            raise UserError(f"{path} has no {missing[0]}: a shard holds inputs and targets")
        yield Shard(path.name, digest, np.asarray(arrays["inputs"]), np.asarray(arrays["targets"]))


def shard_files(source: str, home: Path) -> set[ShardFile]:
    """The files of a folder with shards, to see whether something is new; a function has none."""
    found = set()
    for path in () if ".py:" in source else (home / source).glob("*.npz"):
        with suppress(OSError):
            about = path.stat()
            found.add((path.name, about.st_size, about.st_mtime_ns))
    return found


def _own_shards(source: str, home: Path) -> Iterator[Shard]:
    from d2dfl.plugins import load_file

    file, _, name = source.rpartition(":")
    function: Callable[[], Any] | None = getattr(load_file(home / file), name, None)
    if not callable(function):
        raise UserError(f"{file} has no function {name!r:.60}: name one that gives (name, inputs, targets)")
    found = function()
    if not isinstance(found, Iterable):
        raise UserError(
            f"{name} of {file} gave {found!r:.60}: it must give (name, inputs, targets), one after the other"
        )
    for item in found:
        try:
            shard, inputs, targets = item
            inputs, targets = np.ascontiguousarray(inputs), np.ascontiguousarray(targets)
        except (TypeError, ValueError):
            raise UserError(
                f"{name} of {file} gave {item!r:.60}: it must give (name, inputs, targets) with arrays"
            ) from None
        yield Shard(str(shard), hashlib.sha256(inputs.tobytes() + targets.tobytes()).digest(), inputs, targets)


def look_through(store: Store, source: str, home: Path, labels: tuple[str, ...]) -> Iterator[tuple[Shard, bool]]:
    """All shards, and whether one is new; whatever a run would not take in is refused here."""
    known = {name: bytes(digest) for name, digest in store.db.execute("SELECT name, digest FROM shards")}
    form = store.form()
    for shard in read_shards(source, home):
        try:
            shard.name.encode()
        except UnicodeEncodeError:
            raise UserError(f"the shard {shard.name!r:.60} has a name that is no text: give it another") from None
        new = shard.name not in known
        if new:
            found = form_of(shard, labels)
            if len(shard.inputs) and form not in (None, found):
                raise UserError(f"{shard.name} has inputs {found}, and others here have {form}: a store has one form")
            form = found if len(shard.inputs) else form
        if known.setdefault(shard.name, shard.digest) != shard.digest:
            raise UserError(f"the shard {shard.name!r} has changed since it was taken in: give new data a new name")
        yield shard, new


def take_in(store: Store, source: str, home: Path, labels: tuple[str, ...], now: float) -> int:
    """Put new shards into the store, all of them or none; the number of datapoints that came in."""
    before = int(store.fact("points") or 0)
    store.apply(_taken(store, source, home, labels), now)
    return int(store.fact("points") or 0) - before


def _taken(store: Store, source: str, home: Path, labels: tuple[str, ...]) -> Iterator[Operation]:
    for shard, new in look_through(store, source, home, labels):
        if new:
            form = form_of(shard, labels)
            dtype = np.dtype(form.partition(":")[0])
            contents = [row.tobytes() for row in shard.inputs.astype(dtype, copy=False)]
            rows = [
                (labels[target], form, content)
                for target, content in zip(shard.targets.tolist(), contents, strict=True)
            ]
            yield TakeIn(shard.name, shard.digest, rows)
            yield Note("taken-in", points=len(rows), text=shard.name[:200])


def form_of(shard: Shard, labels: tuple[str, ...]) -> str:
    """What its datapoints look like; refused where they are none, or not as peer.toml says."""
    name, inputs, targets = shard.name, shard.inputs, shard.targets
    if targets.ndim != 1 or inputs.ndim < 1 or len(inputs) != len(targets):
        raise UserError(f"{name} has inputs {inputs.shape} and targets {targets.shape}: give one target for each input")
    if targets.dtype.kind not in "iu" or (targets.size and not 0 <= targets.min() <= targets.max() < len(labels)):
        raise UserError(
            f"{name} has targets that are no numbers of labels: give 0 to {len(labels) - 1}, as peer.toml names"
        )
    dtype = inputs.dtype.newbyteorder("<") if inputs.dtype.itemsize > 1 else inputs.dtype
    form = ":".join([np.dtype(dtype).str, *map(str, inputs.shape[1:])])
    if not re.fullmatch(SENT_FORM, form):  # no other could be handed over
        raise UserError(
            f"{name} has inputs of the type {inputs.dtype} and the shape {inputs.shape[1:]}: give numbers, 8 axes at most"
        )
    if inputs.dtype.kind == "f" and not np.isfinite(inputs).all():
        row = int(np.flatnonzero(~np.isfinite(inputs).reshape(len(inputs), -1).all(axis=1))[0])
        raise UserError(f"{name} holds NaN or infinity in row {row:,}: leave such datapoints out")
    if inputs[:1].nbytes > LARGEST_POINT:
        raise UserError(f"{name} has datapoints of {inputs[:1].nbytes:,} bytes: one may have {LARGEST_POINT:,}")
    return form


def arrays(store: Store) -> tuple[NDArray[Any], NDArray[np.int64], list[tuple[bytes, int]]]:
    """Inputs, targets and (origin, number) of all that the device holds now; datapoints that are leaving are not among them."""
    labels: list[str] = json.loads(store.fact("labels") or "[]")
    rows = store.db.execute(
        "SELECT origin, number, label, form, content FROM points WHERE leaving IS NULL ORDER BY origin, number"
    ).fetchall()
    strange = sorted({row[2] for row in rows} - set(labels))
    if strange:
        raise UserError(f"the store holds the label {strange[0]!r:.60}, which peer.toml does not name")
    forms = {row[3] for row in rows}
    if len(forms) > 1:
        raise UserError(
            f"the store holds inputs of different forms, {' and '.join(sorted(forms)[:2])}: they make no dataset"
        )
    inputs = [decoded(form, content) for _, _, _, form, content in rows]
    targets = np.array([labels.index(row[2]) for row in rows], dtype=np.int64)
    return np.stack(inputs) if inputs else np.empty((0,)), targets, [(row[0], row[1]) for row in rows]


def decoded(form: str, content: bytes) -> NDArray[Any]:
    """An input from its bytes: plain numbers of a size that agrees with the form."""
    found = FORM.fullmatch(form)
    if not found:
        raise UserError(f"a datapoint has the form {form!r:.60}, which is none")
    try:
        shape = tuple(int(side) for side in found[2].split(":")[1:])
        return np.frombuffer(content, dtype=np.dtype(found[1])).reshape(shape)
    except (TypeError, ValueError):
        raise UserError(f"a datapoint has {len(content)} bytes, which are not of the form {form}") from None


def dataset(store: Store, use: str = "") -> "Dataset[Any]":
    """A torch Dataset of what the device holds now. `use` names the training, so that forgetting can say what had used a datapoint."""
    import torch
    from torch.utils.data import TensorDataset

    if use:
        inputs, targets = _used(store, use[:100])
    else:
        inputs, targets, _ = arrays(store)
    return TensorDataset(torch.from_numpy(inputs.copy()), torch.from_numpy(targets))


def _used(store: Store, use: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """What a training reads, noted in the same transaction: a peer that runs beside it forgets nothing between the two unlisted."""
    try:
        store.db.execute("BEGIN IMMEDIATE")
        inputs, targets, points = arrays(store)
        store.db.executemany("INSERT OR IGNORE INTO uses VALUES (?, ?, ?)", [(use, *point) for point in points])
        store.db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        raise UserError(f"cannot note the training {use!r:.60}, so it is given nothing: {error}") from None
    finally:
        if store.db.in_transaction:
            store.db.execute("ROLLBACK")
    return inputs, targets
