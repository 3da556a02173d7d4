"""Options that several commands share: records whose fields are options, and how they make a configuration."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from d2dfl.config import Config
from d2dfl.config.presets import PARADIGMS, preset
from d2dfl.errors import UserError
from d2dfl.storage import read_text

Devices = Annotated[
    int | None, typer.Option(help="Number of devices.  [default: 25, 10 by paradigm]", show_default=False)
]
Partitions = Annotated[
    int | None, typer.Option(help="Number of data partitions (classes).  [default: 10]", show_default=False)
]
Labels = Annotated[
    int | None,
    typer.Option(
        "--labels-per-device",
        help="Partitions a device holds at the start.  [default: 3]",
        show_default=False,
    ),
]
TrustRule = Annotated[
    str | None,
    typer.Option(
        "--trust",
        help="random:P, block, rows:S, columns:S, full, none, or an .npy file.  [default: random:0.5]",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0, max=2**63 - 1)]
NetworkFile = Annotated[
    Path | None, typer.Option("--network", help="A network of your own: .npz or .json.", show_default=False)
]
Preset = Annotated[str, typer.Option("--preset", help="Set of readings: best (ours) or paper.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="section.field=value, as often as needed; see `d2dfl fields`.", show_default=False),
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
    typer.Option("--dataset", help="Dataset; `d2dfl data list` names them.  [default: digits]", show_default=False),
]
SchemeName = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        help="fedavg, fedprox, fedsgd, decentralised or semi-decentralised.  [default: fedavg]",
        show_default=False,
    ),
]
ParadigmName = Annotated[
    str,
    typer.Option("--paradigm", help=f"What is known about the data: {', '.join(PARADIGMS)}."),
]
LogNames = Annotated[
    list[str] | None,
    typer.Option("--log", help="Write scores while training goes on: tensorboard or csv.", show_default=False),
]
Rounds = Annotated[int | None, typer.Option(help="Rounds of training.  [default: 20]", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a cut run stopped.")]

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
        """Preset and paradigm, then file, then --set, then named options: the later wins."""
        config = preset(self.preset_name, getattr(self, "paradigm", "supervised"))
        if self.config_file is not None:
            config = config.with_toml(read_text(self.config_file, "a TOML file"), str(self.config_file))
        config = config.with_texts(self.settings or [])
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name in PATHS}
        given = {name: value for name, value in given.items() if value is not None}
        described = [NAMES.get(name, name) for name in given if PATHS[name].startswith("network.")]
        if getattr(self, "network", None) is not None and described:
            raise UserError(
                f"--{described[0]} describes a generated network and --network reads one: give only one of them"
            )
        return config.with_(**{PATHS[name]: value for name, value in given.items()})


@dataclass(frozen=True)
class Generated(Common):
    """A network that is generated."""

    partitions: Partitions = None
    labels: Labels = None
    seed: Seed = 0


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
    paradigm: ParadigmName = "supervised"
    scheme: SchemeName = None
    rounds: Rounds = None
    edges: Edges = None
    out: RunOut = None
    resume: Resume = False
    log: LogNames = None
