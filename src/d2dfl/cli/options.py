"""Options that several commands share, and how they make a configuration."""

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


def config_of(
    name: str,
    file: Path | None,
    settings: list[str] | None,
    devices: int | None,
    partitions: int | None,
    labels: int | None,
    trust: str | None,
    edges: int | None,
    network: Path | None,
    paradigm: str = "supervised",
) -> Config:
    """Preset and paradigm, then file, then --set, then named options: the later wins."""
    config = preset(name, paradigm)
    if file is not None:
        config = config.with_toml(read_text(file, "a TOML file"), str(file))
    config = config.with_texts(settings or [])
    generated = {"devices": devices, "partitions": partitions, "labels_per_device": labels, "trust": trust}
    given = {f"network.{field}": value for field, value in generated.items() if value is not None}
    if network is not None and given:
        option = next(iter(given)).removeprefix("network.").replace("_", "-")
        raise UserError(f"--{option} describes a generated network and --network reads one: give only one of them")
    if edges is not None:
        given["discovery.edges"] = edges
    return config.with_(**given)
