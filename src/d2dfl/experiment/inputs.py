"""What an experiment works on: data, links and a model, by the configuration or a user's own."""

from dataclasses import dataclass
from pathlib import Path

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.datasets import load
from d2dfl.data.own.files import check_same, checksum, is_file, read_own
from d2dfl.errors import UserError
from d2dfl.federation.models import Factory
from d2dfl.network.links import Links, links_file


@dataclass(frozen=True)
class Inputs:
    """Data, and links and a model of a user's own; None: those of the configuration."""

    dataset: Dataset
    links: Links | None = None
    model: Factory | None = None


def data_set(config: Config, seed: int) -> Dataset:
    """The dataset of the configuration: one of the catalogue, or a file of the user's own."""
    data = config.data
    if is_file(data.dataset):
        return read_own(config).dataset(seed=seed)
    return load(
        data.dataset, seed=seed, split=data.split, verify=data.verify, download=data.download, radio=config.radio
    )


def configured_links(config: Config) -> Links:
    """Links from the file that the configuration names, or generated ones."""
    if not config.network.file:
        return Links()
    path = Path(config.network.file)
    check_same(path, config.network.sha256)
    return links_file(path)


def pinned(config: Config, dealt: bool = False) -> Config:
    """The configuration with what its own files say: their checksums, and how many devices there are.

    `dealt`: the user said how many devices there are, so that rows are dealt out to them.
    """
    if config.network.file:
        path = Path(config.network.file)
        number = configured_links(config).devices or 0
        if dealt and number != config.network.devices:
            raise UserError(f"--devices says {config.network.devices} and {path} has {number} devices: leave it out")
        config = config.with_(**{"network.sha256": checksum(path), "network.devices": number})
    if not is_file(config.data.dataset):
        return config
    path = Path(config.data.dataset)
    config = config.with_(**{"data.device": ""}) if dealt else config
    own = read_own(config)
    devices = len(own.devices) or config.network.devices
    if config.network.file and devices != config.network.devices:
        raise UserError(
            f"{path} has {devices} devices and {config.network.file} {config.network.devices}: they must be the same"
        )
    known = {"network.devices": devices, "data.sha256": checksum(path)}
    return config.with_(**known, **({"network.partitions": len(own.class_names)} if own.class_names else {}))
