"""The datasets by name. A new one is an entry here: what it is, its files, and the reader for them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from d2dfl.config import RadioSignalsConfig
from d2dfl.data import radio, readers
from d2dfl.data.dataset import Kind
from d2dfl.data.files import Copied, File, Form
from d2dfl.data.readers import Paths, Raw


@dataclass(frozen=True)
class Entry:
    """What is known about a dataset before it is read."""

    name: str
    title: str
    kind: Kind
    shape: tuple[int, ...]  # of one input, channels first
    class_names: tuple[str, ...]  # empty for regression
    counts: tuple[int, int]  # datapoints of the set's own training and test part; (n, 0): no split of its own
    home: str
    licence: str
    read: Callable[[Paths], Raw] | None = None  # None: it has no files
    made: Callable[[], Raw] | None = None  # where it has no files and needs no settings
    generated: Callable[[RadioSignalsConfig, int, Copied], Raw] | None = (
        None  # where it is drawn: settings, seed, progress
    )
    forms: tuple[Form, ...] = ()
    folders: tuple[str, ...] = ()  # where system packages put the files
    note: str = ""

    @property
    def classes(self) -> int:
        return len(self.class_names)


DIGITS = tuple("0123456789")


def read_digits() -> Raw:
    """The 8 x 8 digits that ship with scikit-learn."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return Raw(pixels.reshape(-1, 1, 8, 8), labels.astype(np.int64), scale=(0, 16))


def read_diabetes() -> Raw:
    """Disease progression of 442 patients, which ships with scikit-learn."""
    from sklearn.datasets import load_diabetes

    measurements, progression = load_diabetes(return_X_y=True)
    return Raw(measurements.astype(np.float32), (progression / 100.0).astype(np.float32))


_FASHION = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"
# The md5 of what is inside: Debian's package holds the same bytes, compressed anew.
_FASHION_FILES = {
    "train-images-idx3-ubyte": "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "md5:9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "md5:8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "md5:15d484375f8d13e6eb1aabb0c3f46965",
}
_CIFAR_FILES = {
    "data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
    "data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "md5:634d18415352ddfa80567beed471001a",
    "data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "md5:40351d587109b95175f43aff81a1287e",
}
_SVHN = "https://ufldl.stanford.edu/housenumbers/"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"

_ENTRIES = (
    Entry(
        name="digits",
        title="Optical digits, 8 x 8, from scikit-learn",
        kind="image",
        shape=(1, 8, 8),
        class_names=DIGITS,
        counts=(1797, 0),
        home="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        licence="BSD-3-Clause (scikit-learn), CC BY 4.0 (UCI)",
        made=read_digits,
    ),
    Entry(
        name="diabetes",
        title="Disease progression of 442 patients, from scikit-learn",
        kind="table",
        shape=(10,),
        class_names=(),
        counts=(442, 0),
        home="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        licence="public (Efron, Hastie, Johnstone and Tibshirani 2004)",
        made=read_diabetes,
        note="targets in hundreds",
    ),
    Entry(
        name="radio",
        title="Radio signals, 11 modulations, generated on this machine",
        kind="signal",
        shape=(2, 128),
        class_names=readers.MODULATIONS,
        counts=(0, 0),
        home="",
        licence="made by this package",
        generated=radio.generated,
        note="generated data",
    ),
    Entry(
        name="fmnist",
        title="Fashion-MNIST",
        kind="image",
        shape=(1, 28, 28),
        class_names=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        counts=(60_000, 10_000),
        home="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        read=readers.read_fashion,
        forms=(
            Form(
                tuple(
                    File(f"{name}.gz", f"{_FASHION}{name}.gz", digest=digest, digest_of_content=True)
                    for name, digest in _FASHION_FILES.items()
                ),
                folders=("FashionMNIST/raw",),
            ),
            Form(
                tuple(File(name, digest=digest) for name, digest in _FASHION_FILES.items()),
                folders=("FashionMNIST/raw",),
            ),
        ),
        folders=("/usr/share/datasets/fashion-mnist",),
    ),
    Entry(
        name="cifar10",
        title="CIFAR-10",
        kind="image",
        shape=(3, 32, 32),
        class_names=(
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
        counts=(50_000, 10_000),
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="none stated; cite Krizhevsky 2009",
        read=readers.read_cifar10,
        forms=(
            Form(
                tuple(File(name, digest=digest) for name, digest in _CIFAR_FILES.items()),
                folders=("cifar-10-batches-py",),
                archive=File(
                    "cifar-10-python.tar.gz",
                    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                    170_498_071,
                    "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
                ),
                inside="cifar-10-batches-py/",
            ),
        ),
    ),
    Entry(
        name="svhn",
        title="Street View House Numbers, cropped digits",
        kind="image",
        shape=(3, 32, 32),
        class_names=DIGITS,
        counts=(73_257, 26_032),
        home="http://ufldl.stanford.edu/housenumbers",
        licence="non-commercial use only",
        read=readers.read_svhn,
        forms=(
            Form(
                (
                    File(
                        "train_32x32.mat",
                        f"{_SVHN}train_32x32.mat",
                        182_040_794,
                        "sha256:435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                    ),
                    File(
                        "test_32x32.mat",
                        f"{_SVHN}test_32x32.mat",
                        64_275_384,
                        "sha256:cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                    ),
                )
            ),
        ),
    ),
    Entry(
        name="usps",
        title="USPS handwritten digits",
        kind="image",
        shape=(1, 16, 16),
        class_names=DIGITS,
        counts=(7_291, 2_007),
        home="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps",
        licence="none stated; a public benchmark (Hull 1994)",
        read=readers.read_usps,
        forms=(
            Form(
                (
                    File("usps.bz2", f"{_LIBSVM}usps.bz2", digest="md5:ec16c51db3855ca6c91edd34d0e9b197"),
                    File("usps.t.bz2", f"{_LIBSVM}usps.t.bz2", digest="md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
                )
            ),
            # The same digits unsmoothed, as The Elements of Statistical Learning has them.
            Form((File("zip.train.gz"), File("zip.test.gz"))),
        ),
    ),
    Entry(
        name="california",
        title="California Housing, median house value of 20,640 blocks in 100,000 dollars",
        kind="table",
        shape=(8,),
        class_names=(),
        counts=(20_640, 0),
        home="https://scikit-learn.org/stable/datasets/real_world.html#california-housing-dataset",
        licence="public (StatLib; Pace and Barry 1997)",
        read=readers.read_california,
        forms=(
            Form((File("cal_housing_py3.pkz"),)),
            Form(
                (File("cal_housing.data"),),
                folders=("CaliforniaHousing",),
                archive=File(
                    "cal_housing.tgz",
                    "https://ndownloader.figshare.com/files/5976036",
                    digest="sha256:aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
                ),
                inside="CaliforniaHousing/",
            ),
        ),
        folders=("$SCIKIT_LEARN_DATA", "~/scikit_learn_data"),
    ),
    Entry(
        name="radioml",
        title="RadioML 2016.10a, the original",
        kind="signal",
        shape=(2, 128),
        class_names=readers.MODULATIONS,
        counts=(220_000, 0),
        home="https://www.deepsig.ai/datasets",
        licence="CC BY-NC-SA 4.0",
        read=readers.read_radioml,
        # Its home asks for a name and an e-mail address first, so there is nothing to download by ourselves. No digest
        # of it is published that we know of: only its form and the number of datapoints can be checked.
        forms=(Form((File("RML2016.10a_dict.pkl"),), archive=File("RML2016.10a.tar.bz2")),),
        note="AM-SSB is noise only in the original",
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
