"""Configuration of the data."""

from dataclasses import dataclass
from typing import Literal

from d2dfl.config import Section, option


@dataclass(frozen=True)
class DataConfig(Section):
    """Which data, and who holds what of it at the start (R30)."""

    dataset: str = option("digits", "dataset; `d2dfl data list` names them")
    split: Literal["own", "80/20"] = option("own", "the set's own training and test part, or the paper's 80/20")
    allocation: str = option("labels:3", "who holds what: labels:K (70/20/10 for 3), dirichlet:ALPHA, shards:K, iid")
    verify: bool = option(True, "take only files that equal the published ones")
    download: bool = option(True, "download files that are not on this machine")


@dataclass(frozen=True)
class RadioConfig(Section):
    """The generated radio signals (R40)."""

    per_cell: int = option(200, "signals for each modulation and signal-to-noise ratio", low=2)
    lowest_snr_db: int = option(-20, "lowest signal-to-noise ratio, in steps of 2 dB", low=-20, high=18)
    highest_snr_db: int = option(18, "highest signal-to-noise ratio", low=-20, high=18)
    mended: bool = option(False, "true: AM-SSB carries speech; false: noise only, as in RadioML 2016.10a")
