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
DataFile = Annotated[
    Path | None,
    typer.Option("--data", help="Data of your own: .npz (X, y, device), .csv or .parquet.", show_default=False),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="Column of --data with the labels.  [default: label]", show_default=False),
]
DeviceColumn = Annotated[
    str | None,
    typer.Option(
        "--device-column", help="Column of --data that says who holds a row.  [default: device]", show_default=False
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


def own_config(
    config: Config,
    dataset: str | None,
    data: Path | None,
    label: str | None,
    device: str | None,
    network: Path | None,
    devices: int | None,
    trust: str | None,
) -> Config:
    """The configuration with the user's own files in it, and what they say about themselves."""
    if (label is not None or device is not None) and (data is None or data.suffix.lower() == ".npz"):
        option = "--label-column" if label is not None else "--device-column"
        raise UserError(f"{option} names a column of a .csv or .parquet file: give one with --data")
    if dataset is not None and data is not None:
        raise UserError(f"--dataset {dataset!r:.40} and --data are both given: give only one of them")
    if device is not None and devices is not None:
        raise UserError("--device-column says who holds a row, and --devices deals rows out: give only one of them")
    if not (data or network or config.network.file or Path(config.data.dataset).suffix):
        return config
    given = {"data.dataset": data and str(data), "data.label": label, "data.device": device}
    config = config.with_(**{path: value for path, value in given.items() if value is not None})
    config = config.with_(**{"network.file": str(network)}) if network is not None else config
    from d2dfl.data.own_files import is_file
    from d2dfl.experiment.inputs import configured_links, pinned  # imports PyTorch

    if data is not None and not is_file(str(data)):
        raise UserError(f"cannot tell the format of {str(data)!r}: give a file that ends in .npz, .csv or .parquet")
    if network is not None and trust is not None and configured_links(config).trusted:
        raise UserError(f"--trust is given, and {network} says who trusts whom: give only one of them")
    return pinned(config, dealt=devices is not None)
