"""Datasets by name: found, checked, split, scaled; on small originals, and on real ones that $D2DFL_DATA has."""

import os
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import originals
import pytest
from sklearn.datasets import load_digits

from d2dfl.config import Config, RadioSignalsConfig
from d2dfl.data import Dataset, datasets
from d2dfl.data.catalogue import CATALOGUE, Entry
from d2dfl.data.readers import Raw
from d2dfl.errors import UserError
from d2dfl.experiment.inputs import data_set

ROOT = Path(__file__).resolve().parents[2]
REAL = [name for name in datasets.names() if os.environ.get("D2DFL_DATA") and datasets.describe(name).read]
REAL = [name for name in REAL if datasets.status(name).ready]
WRITERS: dict[str, Callable[[Path], object]] = {
    "fmnist": lambda folder: originals.write_fmnist(folder),
    "cifar10": lambda folder: originals.write_cifar10(folder / "cifar-10-batches-py"),
    "svhn": lambda folder: originals.write_svhn(folder),
    "usps": lambda folder: originals.write_usps(folder),
    "california": lambda folder: originals.write_california(folder, "tgz"),
    "radioml": lambda folder: originals.write_radioml(folder, each=10),
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty folder for datasets, and nothing anywhere else."""
    monkeypatch.setenv("D2DFL_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SCIKIT_LEARN_DATA", raising=False)
    lonely = {name: replace(entry, folders=()) for name, entry in CATALOGUE.items()}
    monkeypatch.setattr(datasets, "CATALOGUE", lonely)
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def test_every_dataset_with_files_has_a_test() -> None:
    assert set(WRITERS) == {name for name, entry in CATALOGUE.items() if entry.read}


@pytest.mark.parametrize("split", datasets.SPLITS)
@pytest.mark.parametrize("name", WRITERS)
def test_small_originals(own: Path, name: str, split: str) -> None:
    (own / name).mkdir()
    WRITERS[name](own / name)
    entry = datasets.describe(name)
    assert datasets.status(name).ready
    data = datasets.load(name, split=split, verify=False, download=False)
    assert data.shape == entry.shape
    assert data.train_inputs.dtype == data.test_inputs.dtype == np.float32
    assert data.train_targets.dtype == (np.int64 if data.classes else np.float32)
    assert "not verified" in data.note
    axes = (0, *range(2, data.train_inputs.ndim))
    np.testing.assert_allclose(data.train_inputs.mean(axis=axes), 0, atol=1e-4)
    np.testing.assert_allclose(data.train_inputs.std(axis=axes), 1, atol=1e-3)
    total = len(data.train_targets) + len(data.test_targets)
    if split == "80/20" or entry.counts[1] == 0:
        assert len(data.test_targets) == round(0.2 * total)


def test_validation_never_sees_the_test_part() -> None:
    whole, part = (datasets.load("digits", seed=3, split=split) for split in ("own", "validation"))
    assert len(part.test_targets) == round(0.2 * len(whole.train_targets))
    assert len(part.test_targets) + len(part.train_targets) == len(whole.train_targets)
    assert _tested_and_seen(whole, part) < 5  # a few digits are alike to the pixel's rank


def test_defaults_are_chosen_on_nothing_that_is_tested_on() -> None:
    """Digits have no test part of their own: all runs test on that of one split, and what settings are chosen on is without it."""
    chosen_on = runpy.run_path(str(ROOT / "benchmarks" / "choose.py"))["validation"]
    tested = data_set(Config().with_(**{"data.dataset": "digits"}), seed=0)
    assert _tested_and_seen(tested, chosen_on("digits")) < 5
    assert _tested_and_seen(tested, datasets.load("digits", seed=5000, split="validation")) > 200


def _tested_and_seen(whole: Dataset, part: Dataset) -> int:
    """Test datapoints of a set that a part of it holds."""
    # Inputs are standardised by the training part, which is smaller here: compare ranks of pixels, not values.
    unseen, seen = (
        {tuple(np.argsort(row.ravel(), kind="stable")) for row in inputs}
        for inputs in (
            whole.test_inputs * whole.train_inputs.std() + whole.train_inputs.mean(),
            np.concatenate([part.train_inputs, part.test_inputs]),
        )
    )
    return len(unseen & seen)


@pytest.mark.parametrize("name", WRITERS)
def test_small_originals_are_not_the_published_ones(own: Path, name: str) -> None:
    WRITERS[name](own)
    with pytest.raises(UserError, match="published"):
        datasets.load(name, download=False)


@pytest.mark.parametrize("name", WRITERS)
def test_a_dataset_that_is_not_here_says_what_to_put_where(own: Path, name: str) -> None:
    state = datasets.status(name)
    assert not state.ready
    with pytest.raises(UserError) as caught:
        datasets.load(name, download=False)
    sentence = str(caught.value)
    assert sentence == state.advice
    assert "\n" not in sentence
    assert str(datasets.path(name)) in sentence
    assert CATALOGUE[name].home in sentence
    assert any(file.name in sentence for form in CATALOGUE[name].forms for file in form.files)
    assert (f"`d2dfl data fetch {name}`" in sentence) == any(form.downloads for form in CATALOGUE[name].forms)


def test_status_names_the_missing_files(own: Path) -> None:
    originals.write_svhn(own)
    (own / "test_32x32.mat").unlink()
    state = datasets.status("svhn")
    assert state.paths == (own / "train_32x32.mat",)
    assert state.missing == ("test_32x32.mat",)


def test_fetch_downloads_into_the_cache_and_load_finds_it(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server").mkdir()
    originals.write_svhn(tmp_path / "server")
    entry = CATALOGUE["svhn"]
    form = replace(
        entry.forms[0],
        files=tuple(
            replace(file, url=(tmp_path / "server" / file.name).as_uri(), size=0, digest="")
            for file in entry.forms[0].files
        ),
    )
    monkeypatch.setattr(datasets, "CATALOGUE", {"svhn": replace(entry, forms=(form,), counts=(20, 10))})
    steps: list[str] = []
    data = datasets.load("svhn", progress=lambda what, done, total: steps.append(what))
    assert steps == ["downloading train_32x32.mat", "downloading test_32x32.mat"]
    assert len(data.train_targets) == 20
    assert datasets.path("svhn") == tmp_path / "cache" / "d2dfl" / "svhn"
    assert datasets.fetch("svhn").ready
    (tmp_path / "server" / "test_32x32.mat").unlink()
    (datasets.path("svhn") / "test_32x32.mat").unlink()
    with pytest.raises(UserError, match=r"cannot download test_32x32.mat .*; svhn is not on this machine: put"):
        datasets.load("svhn")
    assert (datasets.path("svhn") / "train_32x32.mat").exists()


def test_radioml_cannot_be_fetched_by_itself(own: Path) -> None:
    with pytest.raises(UserError, match=r"put RML2016.10a_dict.pkl .* from https://www.deepsig.ai"):
        datasets.fetch("radioml")


def test_an_archive_in_the_users_folder_is_unpacked_into_the_cache(own: Path, tmp_path: Path) -> None:
    content = originals.radioml_pickle({("QPSK", 0): np.ones((10, 2, 128), np.float32)})
    originals.pack(own / "RML2016.10a.tar.bz2", {"RML2016.10a_dict.pkl": content, "LICENSE.TXT": b""})
    steps: list[str] = []
    for _ in range(2):  # unpacked once, read twice
        data = datasets.load("radioml", verify=False, progress=lambda what, done, total: steps.append(what))
        assert len(data.train_targets) == 8
    assert steps == ["unpacking RML2016.10a_dict.pkl"]
    assert (tmp_path / "cache" / "d2dfl" / "radioml" / "RML2016.10a_dict.pkl").read_bytes() == content
    assert [path.name for path in own.iterdir()] == ["RML2016.10a.tar.bz2"]


def test_labels_out_of_range_and_values_that_are_no_numbers(own: Path) -> None:
    originals.write_fmnist(own)
    labels = np.array([0] * 29 + [10], dtype=np.uint8)
    (own / "train-labels-idx1-ubyte.gz").write_bytes(originals.gzip.compress(originals.idx(labels)))
    with pytest.raises(UserError, match="fmnist: the labels run from 0 to 10, and must be from 0 to 9"):
        datasets.load("fmnist", verify=False)
    cells = {("QPSK", 0): np.full((10, 2, 128), np.nan, np.float32)}
    (own / "RML2016.10a_dict.pkl").write_bytes(originals.radioml_pickle(cells))
    with pytest.raises(UserError, match="not numbers"):
        datasets.load("radioml", verify=False)


def test_a_text_that_ends_early_has_too_few_rows(own: Path) -> None:
    originals.write_california(own, "data")
    with pytest.raises(UserError, match="hold 50 datapoints and not the published 20,640"):
        datasets.load("california")


def test_digits_is_always_there(own: Path) -> None:
    data = datasets.load("digits")
    assert (data.classes, data.shape, data.note) == (10, (1, 8, 8), "")
    assert datasets.status("digits").ready
    assert datasets.fetch("digits").ready
    pixels, labels = load_digits(return_X_y=True)
    # Undo the standardisation: every image must be one of the originals, with its own label.
    everything = np.concatenate([data.train_inputs, data.test_inputs]).reshape(-1, 64)
    targets = np.concatenate([data.train_targets, data.test_targets])
    step = np.diff(np.unique(everything.round(4))).min()
    restored = np.rint((everything - everything.min()) / step).astype(int)
    table = {tuple(row): int(label) for row, label in zip(pixels.astype(int), labels, strict=True)}
    assert len(table) == len(everything) == 1797
    assert [table[tuple(row)] for row in restored] == targets.tolist()


def test_the_split_is_seeded_disjoint_and_stratified(own: Path) -> None:
    first, again, other = (datasets.load("digits", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.train_inputs, again.train_inputs)
    assert not np.array_equal(first.train_targets, other.train_targets)
    whole = np.bincount(load_digits().target)
    np.testing.assert_allclose(np.bincount(first.test_targets), 0.2 * whole, atol=1)
    train = {row.tobytes() for row in first.train_inputs}
    assert not train & {row.tobytes() for row in first.test_inputs}


def test_radio_is_labelled_as_generated_and_split_by_class_and_snr(own: Path) -> None:
    settings = RadioSignalsConfig(per_cell=10, lowest_snr_db=-1, highest_snr_db=2)
    data = datasets.load("radio", radio=settings)
    assert data.note == "generated data"
    assert np.bincount(data.test_targets).tolist() == [4] * 11
    targets, snr = np.repeat(np.arange(11), 20), np.tile([0, 2], 110)
    _, test = datasets.split_rows(datasets._strata(datasets.describe("radio"), targets, snr), seed=0)
    assert sorted(zip(targets[test], snr[test], strict=True)) == sorted([(n, s) for n in range(11) for s in (0, 2)] * 2)
    with pytest.raises(UserError, match="radio.lowest_snr_db cannot be 3"):
        datasets.load("radio", radio=RadioSignalsConfig(lowest_snr_db=3, highest_snr_db=3))


def test_unknown_names_and_splits() -> None:
    with pytest.raises(
        UserError, match="there is no dataset 'mnist': the datasets are digits, diabetes, radio, fmnist"
    ):
        datasets.load("mnist")
    with pytest.raises(UserError, match=r"data.split cannot be '90/10': give one of own, 80/20, validation"):
        datasets.load("digits", split="90/10")
    with pytest.raises(UserError, match="digits has no files"):
        datasets.path("digits")


def test_real_files() -> None:
    """Of every dataset that $D2DFL_DATA has; the digits are always there."""
    for name in ("digits", *REAL):
        data = datasets.load(name, verify=False, download=False)
        entry = datasets.describe(name)
        assert data.shape == entry.shape
        assert abs(float(data.train_inputs[:2000].mean())) < 0.5
        if entry.classes:
            assert set(np.unique(data.test_targets)) == set(range(entry.classes))


@pytest.mark.parametrize("value", ["1e300", "-2000000000", "nan", "inf"])
def test_values_that_no_dataset_has(own: Path, value: str) -> None:
    originals.write_california(own, "data")
    lines = (own / "cal_housing.data").read_text().splitlines()
    lines[3] = ",".join([value, *lines[3].split(",")[1:]])
    (own / "cal_housing.data").write_text("\n".join(lines))
    with pytest.raises(UserError, match="california: the files hold values that are not numbers, or beyond a billion"):
        datasets.load("california", verify=False)


def test_too_few_datapoints_for_two_parts(own: Path) -> None:
    originals.write_california(own, "data", rows=4)
    with pytest.raises(UserError, match="hold 4 datapoints: that is too few"):
        datasets.load("california", verify=False)


def test_a_damaged_archive_is_one_sentence(own: Path) -> None:
    originals.write_california(own, "tgz")
    whole = (own / "cal_housing.tgz").read_bytes()
    for length in (0, 5, 100, len(whole) // 2):
        (own / "cal_housing.tgz").write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"cal_housing\.tgz"):
            datasets.load("california", verify=False)


def test_a_generated_dataset_of_ones_own_hears_settings_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(settings: RadioSignalsConfig, seed: int, progress: object) -> Raw:
        values = np.random.default_rng(seed).normal(size=(20 * settings.per_cell, 2)).astype(np.float32)
        return Raw(values, np.arange(len(values)) % 2)

    entry = Entry("noise", "Noise", "table", (2,), ("a", "b"), (0, 0), "", "mine", generated=drawn)
    monkeypatch.setitem(CATALOGUE, "noise", entry)
    few, many = (datasets.load("noise", seed=1, radio=RadioSignalsConfig(per_cell=each)) for each in (2, 3))
    assert (len(few.train_inputs) + len(few.test_inputs), len(many.train_inputs) + len(many.test_inputs)) == (40, 60)
    assert not np.array_equal(
        few.train_inputs, datasets.load("noise", seed=2, radio=RadioSignalsConfig(per_cell=2)).train_inputs
    )
