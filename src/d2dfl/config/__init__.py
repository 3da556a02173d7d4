"""Settings: sections of fields with help and bounds, read from TOML, and two sets of readings (presets.py)."""

from d2dfl.config.config import Config, config_from, split_path
from d2dfl.config.sections.graph import (
    BanditConfig,
    ChannelConfig,
    DiscoveryConfig,
    GcnConfig,
    MarginalConfig,
    NetworkConfig,
    OptimumConfig,
    QlearningConfig,
    RewardConfig,
)
from d2dfl.config.sections.learning import (
    DataConfig,
    EnergyConfig,
    ExchangeConfig,
    FederationConfig,
    PartitionConfig,
    PrivacyConfig,
    RadioSignalsConfig,
)

__all__ = [
    "BanditConfig",
    "ChannelConfig",
    "Config",
    "DataConfig",
    "DiscoveryConfig",
    "EnergyConfig",
    "ExchangeConfig",
    "FederationConfig",
    "GcnConfig",
    "MarginalConfig",
    "NetworkConfig",
    "OptimumConfig",
    "PartitionConfig",
    "PrivacyConfig",
    "QlearningConfig",
    "RadioSignalsConfig",
    "RewardConfig",
    "config_from",
    "split_path",
]
