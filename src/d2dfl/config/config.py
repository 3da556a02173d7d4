"""All settings of a run: frozen sections, changed by name, read from TOML and written as TOML."""

import dataclasses
import json
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

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
from d2dfl.errors import UserError
from d2dfl.registry import entry_named, no_such


@dataclass(frozen=True, repr=False)
class Config:
    """All settings of a run: with its methods and seeds they determine its results."""

    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    channel: ChannelConfig = dataclasses.field(default_factory=ChannelConfig)
    reward: RewardConfig = dataclasses.field(default_factory=RewardConfig)
    discovery: DiscoveryConfig = dataclasses.field(default_factory=DiscoveryConfig)
    qlearning: QlearningConfig = dataclasses.field(default_factory=QlearningConfig)
    marginal: MarginalConfig = dataclasses.field(default_factory=MarginalConfig)
    bandit: BanditConfig = dataclasses.field(default_factory=BanditConfig)
    gcn: GcnConfig = dataclasses.field(default_factory=GcnConfig)
    optimum: OptimumConfig = dataclasses.field(default_factory=OptimumConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    partition: PartitionConfig = dataclasses.field(default_factory=PartitionConfig)
    privacy: PrivacyConfig = dataclasses.field(default_factory=PrivacyConfig)
    radio: RadioSignalsConfig = dataclasses.field(default_factory=RadioSignalsConfig)
    exchange: ExchangeConfig = dataclasses.field(default_factory=ExchangeConfig)
    federation: FederationConfig = dataclasses.field(default_factory=FederationConfig)
    energy: EnergyConfig = dataclasses.field(default_factory=EnergyConfig)

    def __repr__(self) -> str:
        """What differs from the defaults, as one would type it."""
        defaults = type(self)().to_dict()
        changed = {
            f"{section}.{name}": value
            for section, fields in self.to_dict().items()
            for name, value in fields.items()
            if value != defaults[section][name]
        }
        return f"Config().with_(**{changed})" if changed else "Config()"

    def with_(self, **changes: Any) -> Self:
        """A copy with changed fields: `config.with_(**{"reward.gate": 5})` or `with_(reward__gate=5)`."""
        grouped: dict[str, dict[str, Any]] = {}
        for path, value in changes.items():
            section, name = split_path(path.replace("__", "."))
            grouped.setdefault(section, {})[name] = value
        return dataclasses.replace(
            self,
            **{section: dataclasses.replace(getattr(self, section), **fields) for section, fields in grouped.items()},
        )

    def with_texts(self, assignments: Iterable[str]) -> Self:
        """A copy changed by texts such as "reward.gate=5", as the command line takes them."""
        changes: dict[str, Any] = {}
        for text in assignments:
            path, equals, value = text.partition("=")
            if not equals:
                raise UserError(f"--set {text!r:.80} is not an assignment: write section.field=value")
            section, name = split_path(path.strip())
            changes[path.strip()] = type(getattr(self, section)).parse(name, value.strip())
        return self.with_(**changes)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain nested dictionaries, for JSON."""
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """TOML text that `with_toml` reads back to an equal Config."""
        lines: list[str] = []
        for section, fields in self.to_dict().items():
            lines += [f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in fields.items()), ""]
        return "\n".join(lines)

    def with_toml(self, text: str, source: str = "the configuration") -> Self:
        """A copy changed by TOML text; sections and fields that are absent stay. `source` is named in errors."""
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UserError(f"{source} is not TOML: {reason:.120}") from None
        changes: dict[str, Any] = {}
        for section, fields in tables.items():
            if not isinstance(fields, dict):
                raise UserError(f"{source} has {section!r:.80} outside a section: write [section], then field = value")
            changes.update({f"{section}.{name}": value for name, value in fields.items()})
        try:
            return self.with_(**changes)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None


def config_from(given: Config | Mapping[str, Any] | None, base: Config) -> Config:
    """A configuration, or the base with fields changed by their dotted names: {"discovery.edges": 2}."""
    if given is None or isinstance(given, Config):
        return given or base
    if not isinstance(given, Mapping) or not all(isinstance(path, str) for path in given):
        kind = type(given).__name__
        raise UserError(
            f'config is of the type {kind}: give a Config, or fields by name such as {{"discovery.edges": 2}}'
        )
    return base.with_(**given)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # JSON's escapes are TOML's, which also wants one for the character that deletes
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


@cache
def _sections() -> dict[str, Any]:
    return typing.get_type_hints(Config)


def split_path(path: str) -> tuple[str, str]:
    """Split "section.field" and make sure that both exist."""
    section, _, name = path.partition(".")
    names = [field.name for field in dataclasses.fields(entry_named("section", section, _sections()))]
    if name not in names:
        raise no_such("field", path, f"section {section} has {', '.join(names)}")
    return section, name
