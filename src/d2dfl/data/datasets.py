"""Datasets by name: find or fetch the original files, read, check, split, scale."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import RadioSignalsConfig
from d2dfl.config.sections.learning import Split
from d2dfl.data import files
from d2dfl.data.catalogue import CATALOGUE, Entry
from d2dfl.data.dataset import Dataset as Dataset
from d2dfl.data.dataset import standardise
from d2dfl.data.files import Copied, Form
from d2dfl.data.readers import Raw
from d2dfl.data.shares import whole_parts
from d2dfl.errors import UserError
from d2dfl.progress import silent
from d2dfl.registry import entry_named
from d2dfl.rng import stream

SPLITS = get_args(Split)
TEST_SHARE = 0.2
LARGEST_VALUE = 1e9  # of an input or a target: its square must leave room in a sum
FEWEST = 5  # datapoints of which a fifth is one


@dataclass(frozen=True)
class DatasetStatus:
    """Where a dataset is, or what is missing."""

    name: str
    ready: bool
    folder: Path | None  # where the files are, or belong; None: it has no files
    paths: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    advice: str = ""  # one sentence, when it is not ready


def names() -> tuple[str, ...]:
    """All datasets."""
    return tuple(CATALOGUE)


def describe(name: str) -> Entry:
    """What is known about a dataset before it is read."""
    return entry_named("dataset", name, CATALOGUE)


def status(name: str) -> DatasetStatus:
    """Where the files of a dataset are, or which are missing."""
    entry = describe(name)
    found = _find(entry)
    if found is not None:
        paths = tuple(found[1].values())
        return DatasetStatus(name, True, paths[0].parent if paths else None, paths)
    folders = files.search_folders(name, entry.folders)
    here = tuple(files.partly(entry.forms, folders))
    missing = tuple(file.name for file in entry.forms[0].files if file.name not in {path.name for path in here})
    return DatasetStatus(name, False, files.cache_folder(name), here, missing, _advice(entry, fetchable=True))


def path(name: str) -> Path:
    """The folder of a dataset: where its files are, or where they belong."""
    folder = status(name).folder
    if folder is None:
        raise UserError(f"{name} has no files: {describe(name).title}")
    return folder


def fetch(name: str, progress: Copied | None = None) -> DatasetStatus:
    """Download what is missing or damaged into the user's cache."""
    entry = describe(name)
    found = _find(entry)
    if found is None or not _whole(*found):
        form = next((form for form in entry.forms if form.downloads), None)
        if form is None:
            raise UserError(_advice(entry, fetchable=False))
        try:
            files.fetch(form, files.cache_folder(name), progress or silent)
        except UserError as error:
            raise UserError(f"{error}; {_advice(entry, fetchable=False)}") from None
    return status(name)


def load(
    name: str,
    *,
    seed: int = 0,
    split: str = "own",
    verify: bool = True,
    download: bool = True,
    radio: RadioSignalsConfig | None = None,
    progress: Copied | None = None,
) -> Dataset:
    """A dataset, split and standardised. A set without a test part of its own is split 80/20, by the seed.

    With the split `validation` the test part is never seen: a fifth of the training part takes its place. That is what
    settings are chosen on.
    """
    entry = describe(name)
    if split not in SPLITS:
        raise UserError(f"data.split cannot be {split!r}: give one of {', '.join(SPLITS)}")
    if entry.made is not None:
        raw = entry.made()
    elif entry.generated is not None:
        raw = entry.generated(radio or RadioSignalsConfig(), seed, progress or silent)
    else:
        raw = _read(entry, verify, download, progress or silent)
    _check(entry, raw, verify)
    notes = [entry.note] if entry.note else []
    if entry.read is not None and not verify:
        notes.append("files not verified")
    return _prepare(entry, raw, split, seed, "; ".join(notes))


def _find(entry: Entry) -> tuple[Form, Mapping[str, Path]] | None:
    if entry.read is None:
        return Form(()), {}
    found = files.find(entry.forms, files.search_folders(entry.name, entry.folders))
    if found is not None and found[0].archive is not None and found[0].archive.name in found[1]:
        # An archive that was unpacked before need not be unpacked again.
        return files.find([replace(found[0], archive=None)], [files.cache_folder(entry.name)]) or found
    return found


def _whole(form: Form, paths: Mapping[str, Path]) -> bool:
    try:
        _verify(form, paths)
    except UserError:
        return False
    return True


def _verify(form: Form, paths: Mapping[str, Path]) -> None:
    known = {file.name: file for file in (*form.files, *([form.archive] if form.archive else []))}
    for name, place in paths.items():
        files.verify(known[name], place)


def _read(entry: Entry, verify: bool, download: bool, progress: Copied) -> Raw:
    found = _find(entry)
    if found is None and download:
        fetch(entry.name, progress)
        found = _find(entry)
    if found is None or entry.read is None:
        raise UserError(_advice(entry, fetchable=True))
    form, paths = found
    if verify:
        _verify(form, paths)
    if form.archive is not None and form.archive.name in paths:
        paths = files.unpack(form, paths[form.archive.name], files.cache_folder(entry.name), progress)
    return entry.read(paths)


def _advice(entry: Entry, fetchable: bool) -> str:
    """How to have a dataset; `fetchable`: nobody has tried to download it yet."""
    form = next((form for form in entry.forms if form.downloads), entry.forms[0])
    archive = f" (or {form.archive.name})" if form.archive else ""
    by_hand = f"{form.names()}{archive} from {entry.home} into {files.cache_folder(entry.name)}"
    if fetchable and form.downloads:
        return (
            f"{entry.name} is not on this machine: fetch it with `d2dfl data fetch {entry.name}`, or put {by_hand}, "
            "or set D2DFL_DATA to the folder that has it"
        )
    return f"{entry.name} is not on this machine: put {by_hand}, or set D2DFL_DATA to the folder that has it"


def _check(entry: Entry, raw: Raw, verify: bool) -> None:
    """Shapes, counts, labels and values in range, no NaN: whatever a damaged file could have smuggled in."""
    count = 0
    for inputs, targets in ((raw.inputs, raw.targets), (raw.test_inputs, raw.test_targets)):
        if inputs is None or targets is None:
            continue
        count += len(inputs)
        if inputs.shape != (len(targets), *entry.shape) or len(targets) == 0:
            raise UserError(f"{entry.name}: the inputs have the shape {inputs.shape}, not n x {entry.shape}")
        for values in (inputs, targets):  # NaN is neither above nor below anything
            if not (values.min() >= -LARGEST_VALUE and values.max() <= LARGEST_VALUE):
                raise UserError(f"{entry.name}: the files hold values that are not numbers, or beyond a billion")
        if entry.classes and not 0 <= targets.min() <= targets.max() < entry.classes:
            raise UserError(
                f"{entry.name}: the labels run from {targets.min()} to {targets.max()}, "
                f"and must be from 0 to {entry.classes - 1}"
            )
    if count < FEWEST:
        raise UserError(
            f"{entry.name}: the files hold {count} datapoints: that is too few for a training and a test part"
        )
    if verify and sum(entry.counts) not in (0, count):
        raise UserError(
            f"{entry.name}: the files hold {count:,} datapoints and not the published {sum(entry.counts):,}: "
            "fetch them again, or set data.verify=false to take them as they are"
        )


def _prepare(entry: Entry, raw: Raw, split: str, seed: int, note: str) -> Dataset:
    inputs, targets = raw.inputs, raw.targets
    if raw.test_inputs is not None and raw.test_targets is not None:
        inputs, targets = (
            np.concatenate([inputs, raw.test_inputs]),
            np.concatenate([targets, raw.test_targets]),
        )
    strata = _strata(entry, targets, raw.snr_db)
    if split != "80/20" and raw.test_inputs is not None:
        train, test = np.arange(len(raw.inputs)), np.arange(len(raw.inputs), len(inputs))
    else:
        train, test = split_rows(strata, seed)
    if split == "validation":
        train, test = (train[rows] for rows in split_rows(strata[train], seed, "validation"))
    low, high = raw.scale
    x_train, x_test = (_rescaled(inputs[rows], low, high) for rows in (train, test))
    standardise(x_train, x_test)
    kind = np.int64 if entry.classes else np.float32
    return Dataset(
        name=entry.name,
        train_inputs=x_train,
        train_targets=targets[train].astype(kind),
        test_inputs=x_test,
        test_targets=targets[test].astype(kind),
        class_names=entry.class_names,
        kind=entry.kind,
        note=note,
    )


def _strata(entry: Entry, targets: NDArray[Any], snr_db: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """What must be equally frequent in both parts: the class, for signals the class at each SNR."""
    if not entry.classes:
        return np.zeros(len(targets), dtype=np.int64)
    keys = targets.astype(np.int64) * 1000 + (0 if snr_db is None else snr_db)
    return np.asarray(np.unique(keys, return_inverse=True)[1])


def split_rows(
    strata: NDArray[np.int64], seed: int, name: str = "split"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random rows of the training and test part, 80/20, the test part spread evenly over the strata."""
    sizes = np.bincount(strata)
    wanted = whole_parts(round(TEST_SHARE * len(strata)), sizes / len(strata))
    shuffled = stream(seed, name).permutation(len(strata))
    grouped = shuffled[np.argsort(strata[shuffled], kind="stable")]
    rank = np.arange(len(strata)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_test = rank < np.repeat(wanted, sizes)
    return np.sort(grouped[~is_test]), np.sort(grouped[is_test])


def _rescaled(inputs: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    scaled = inputs.astype(np.float32)
    scaled -= np.float32(low)
    scaled /= np.float32(high - low)
    return scaled
