"""Options that several commands share: records whose fields are options, and how they make a configuration."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from d2dfl.cli.commands import completion
from d2dfl.config import Config
from d2dfl.config.presets import PRESETS, preset
from d2dfl.config.sections.graph import TRUST_FORMS
from d2dfl.config.sections.learning import ENGINES, PARADIGMS, SCHEMES, SUPERVISED
from d2dfl.config.seeds import LARGEST_SEED
from d2dfl.errors import UserError
from d2dfl.experiment.folder.logs import LOGS
from d2dfl.storage import read_text

Devices = Annotated[
    int | None,
    typer.Option(
        help="Number of devices.  [default: 25, or 10 where --paradigm is unsupervised or regression]",
        show_default=False,
    ),
]
Partitions = Annotated[
    int | None, typer.Option(help="Number of data partitions (classes).  [default: 10]", show_default=False)
]
Labels = Annotated[
    int | None,
    typer.Option(
        "--labels-per-device",
        help="Partitions a device holds at the start.  [default: 3, or all of fewer]",
        show_default=False,
    ),
]
TrustRule = Annotated[
    str | None,
    typer.Option(
        "--trust",
        help=f"{TRUST_FORMS}, or an .npy file (receiver first).  [default: random:0.5]",
        show_default=False,
        autocompletion=completion.beginning_with(completion.trust_rules),
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0, max=LARGEST_SEED)]
NetworkFile = Annotated[
    Path | None, typer.Option("--network", help="A network of your own: .npz or .json.", show_default=False)
]
Preset = Annotated[
    str,
    typer.Option("--preset", help=f"Set of readings: {' or '.join(PRESETS)}.", autocompletion=completion.of(*PRESETS)),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="section.field=value, as often as needed; see `d2dfl fields`.",
        show_default=False,
        autocompletion=completion.settings,
    ),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file with settings.", show_default=False)]
Edges = Annotated[
    int | None, typer.Option(help="Incoming links a device may have.  [default: by preset]", show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for all results.", show_default=False)]
RunOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Run folder.  [default: in runs/, with a number where one of that name holds a run]",
        show_default=False,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Dataset; `d2dfl data list` names them.  [default: digits]",
        show_default=False,
        autocompletion=completion.beginning_with(completion.dataset_names),
    ),
]
DataFile = Annotated[
    Path | None,
    typer.Option("--data", help="Data of your own: .npz (X, y, device), .csv or .parquet.", show_default=False),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column", "--label", help="Column of --data with the labels.  [default: label]", show_default=False
    ),
]
DeviceColumn = Annotated[
    str | None,
    typer.Option(
        "--device-column",
        "--device",
        help="Column of --data that says who holds a row.  [default: device]",
        show_default=False,
    ),
]
LinksFile = Annotated[
    Path | None,
    typer.Option(
        "--network",
        help="Links of your own: .npz or .json with drop or rss, and trust if it is known.",
        show_default=False,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where devices train: local, or ray: an existing cluster.",
        autocompletion=completion.of(*ENGINES),
    ),
]
SchemeName = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        help=f"{', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}.  [default: {SCHEMES[0]}]",
        show_default=False,
        autocompletion=completion.of(*SCHEMES),
    ),
]
ParadigmName = Annotated[
    str,
    typer.Option(
        "--paradigm",
        help=f"What is known about the data: {', '.join(PARADIGMS)}.",
        autocompletion=completion.of(*PARADIGMS),
    ),
]
LogNames = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        help=f"Write scores while training goes on: {' or '.join(LOGS)}.",
        show_default=False,
        autocompletion=completion.of(*LOGS),
    ),
]
Rounds = Annotated[int | None, typer.Option(help="Rounds of training.  [default: 20]", show_default=False)]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where a cut run stopped; with --out alone, by what that folder holds.")
]

# The setting that an option stands for.
PATHS = {
    "devices": "network.devices",
    "partitions": "network.partitions",
    "labels": "network.labels_per_device",
    "trust": "network.trust",
    "edges": "discovery.edges",
    "dataset": "data.dataset",
    "scheme": "federation.scheme",
    "rounds": "federation.rounds",
}
NAMES = {"labels": "labels-per-device"}  # of options that are not called as their field


@dataclass(frozen=True)
class Common:
    """What every command with a configuration takes."""

    devices: Devices = None
    trust: TrustRule = None
    preset_name: Preset = "best"
    settings: Settings = None
    config_file: ConfigFile = None

    def config(self) -> Config:
        """The configuration that the options make."""
        given = [NAMES.get(name, name) for name in self._given() if PATHS[name].startswith("network.")]
        if getattr(self, "network", None) is not None and given:
            raise UserError(
                f"--{given[0]} describes a generated network and --network reads one: give only one of them"
            )
        return self._made()

    def _given(self) -> dict[str, Any]:
        """Named options that stand for a setting."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name in PATHS}
        return {name: value for name, value in named.items() if value is not None}

    def _begin(self) -> Config:
        """What holds where nothing is said."""
        return preset(self.preset_name, getattr(self, "paradigm", SUPERVISED))

    def _made(self) -> Config:
        """Preset and paradigm, then file, then --set, then named options: the later wins."""
        config = self._begin()
        if self.config_file is not None:
            config = config.with_toml(read_text(self.config_file, "a TOML file"), str(self.config_file))
        config = config.with_texts(self.settings or [])
        return config.with_(**{PATHS[name]: value for name, value in self._given().items()})


@dataclass(frozen=True)
class Generated(Common):
    """A network that is generated."""

    partitions: Partitions = None
    labels: Labels = None
    seed: Seed = 0

    def _made(self) -> Config:
        """A device holds all partitions where there are fewer than it usually holds, and nobody said how many it does."""
        config = super()._made()
        usual = preset(self.preset_name).network.labels_per_device
        if self.labels is None and config.network.labels_per_device == usual > config.network.partitions:
            return config.with_(**{"network.labels_per_device": config.network.partitions})
        return config


@dataclass(frozen=True)
class Graphs(Generated):
    """Graphs in a network that is generated or read."""

    network: NetworkFile = None
    edges: Edges = None
    out: Out = None


@dataclass(frozen=True)
class Learning(Common):
    """A training, and where it is kept."""

    dataset: DatasetName = None
    data: DataFile = None
    label: LabelColumn = None
    device: DeviceColumn = None
    network: LinksFile = None
    paradigm: ParadigmName = SUPERVISED
    scheme: SchemeName = None
    rounds: Rounds = None
    edges: Edges = None
    out: RunOut = None
    resume: Resume = False
    log: LogNames = None
    engine: EngineName = "local"

    @property
    def unsaid(self) -> bool:
        """Whether nothing is given but where a run is kept and how it is done."""
        return self == replace(Learning(), out=self.out, resume=self.resume, log=self.log, engine=self.engine)

    def config(self) -> Config:
        """With the user's own files in it, and what they say about themselves."""
        config = self._made()
        self._check_own()
        if not (self.data or self.network or config.network.file or Path(config.data.dataset).suffix):
            return config
        given = {"data.dataset": self.data and str(self.data), "data.label": self.label, "data.device": self.device}
        given |= {"network.file": self.network and str(self.network)}
        config = config.with_(**{path: value for path, value in given.items() if value is not None})
        from d2dfl.data.own.files import is_file
        from d2dfl.experiment.inputs import configured_links, pinned  # imports PyTorch

        if self.data is not None and not is_file(str(self.data)):
            raise UserError(
                f"cannot tell the format of {str(self.data)!r}: give a file that ends in .npz, .csv or .parquet"
            )
        if self.network is not None and self.trust is not None and configured_links(config).trusted:
            raise UserError(f"--trust is given, and {self.network} says who trusts whom: give only one of them")
        return pinned(config, dealt=self.devices is not None)

    def _check_own(self) -> None:
        """Refuse options that contradict each other."""
        named = self.label is not None or self.device is not None
        if named and (self.data is None or self.data.suffix.lower() == ".npz"):
            option = "--label-column" if self.label is not None else "--device-column"
            raise UserError(f"{option} names a column of a .csv or .parquet file: give one with --data")
        if self.dataset is not None and self.data is not None:
            raise UserError(f"--dataset {self.dataset!r:.40} and --data are both given: give only one of them")
        if self.device is not None and self.devices is not None:
            raise UserError("--device-column says who holds a row, and --devices deals rows out: give only one of them")
