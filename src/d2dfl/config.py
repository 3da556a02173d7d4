"""Configuration: frozen dataclasses, one field and one help line each, checked when built.

`Config` holds sections; presets.py has the two sets of readings (PAPER.md, "Readings").
"""

import dataclasses
import tomllib
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Self

from d2dfl.errors import UserError
from d2dfl.section import Section, option


@dataclass(frozen=True)
class NetworkConfig(Section):
    """Who holds what and who trusts whom, when the network is generated."""

    devices: int = option(25, "number of devices", low=1, high=100_000_000)
    partitions: int = option(10, "number of data partitions (classes)", low=1, high=100_000)
    labels_per_device: int = option(3, "partitions that a device holds at the start", low=1, high=100_000)
    samples_per_device: int = option(1200, "datapoints that a device holds at the start", low=0, high=1_000_000_000)
    threshold: str = option("iid", "datapoints a partition should keep: a share of the device's data, or iid (1/L)")
    trust: str = option(
        "random:0.5", "random:P, block[:P], rows:SPARSITY, columns:SPARSITY, full, none, or an .npy file"
    )


@dataclass(frozen=True)
class ChannelConfig(Section):
    """Radio links: received power, probability of a lost packet, reliable clusters, budgets (R25, R26)."""

    kind: Literal["path-loss", "gaussian", "physical", "harsh", "csv"] = option(
        "path-loss", "where received power comes from"
    )
    slots: int = option(
        0, "candidates a receiver hears (nearest first); 0: all up to 1,000 devices, 64 beyond", low=0, high=1_000_000
    )
    rate: float = option(0.8, "transmission rate r in bit/s/Hz", low=0, high=100)
    noise_power: float = option(0.02, "noise power, in the unit of the received power", low=0, high=1e30)
    median: float = option(0.3, "path-loss: median received power", low=1e-30, high=1e30)
    lowest: float = option(0.05, "path-loss, gaussian: received power is clipped below here", low=1e-30, high=1e30)
    highest: float = option(0.55, "path-loss, gaussian: received power is clipped above here", low=1e-30, high=1e30)
    exponent: float = option(2.0, "path-loss, physical: power falls with distance to this power", low=0, high=10)
    mean: float = option(0.3, "gaussian: mean received power", low=-1e30, high=1e30)
    deviation: float = option(0.1, "gaussian: standard deviation of the received power", low=0, high=1e30)
    shadowing_db: float = option(
        0.0, "path-loss, physical: standard deviation of log-normal shadowing, per link", low=0, high=100
    )
    side_m: float = option(
        500.0,
        "side of the square in which devices stand, for 25 devices; area grows with devices",
        low=1e-06,
        high=1000000000.0,
    )
    transmit_power_dbm: float = option(10.0, "physical: transmit power", low=-200, high=200)
    frequency_hz: float = option(2.4e9, "physical: carrier frequency", low=1, high=1000000000000000.0)
    bandwidth_hz: float = option(1e6, "physical: bandwidth", low=1, high=1000000000000000.0)
    noise_figure_db: float = option(6.0, "physical: receiver noise figure", low=0, high=200)
    file: str = option("", "csv: square table of received power, row = receiver, column = transmitter")
    reliability: float = option(0.05, "highest loss probability inside a reliable cluster (alpha_D)", low=0, high=1)
    budget_share: float = option(
        0.5, "inter-cluster budget as a share of the cluster's data (R29)", low=0, high=1000000.0
    )
    dynamic: bool = option(False, "received power is drawn anew at every step (Section VI-N)")
    levels: int = option(4, "dynamic: quantisation levels of the received power", low=1, high=256)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lowest > self.highest:
            raise UserError(f"channel.lowest cannot be {self.lowest:g}: give at most channel.highest, {self.highest:g}")


@dataclass(frozen=True)
class RewardConfig(Section):
    """The reward of a device and of the network (R1, R7 to R9)."""

    kind: Literal["gain", "change"] = option(
        "gain", "R7: distance to i.i.d. won (gain), or distance moved (change, literal)"
    )
    metric: Literal["total-variation", "wasserstein", "jensen-shannon"] = option(
        "total-variation", "R8: distance between label distributions"
    )
    gate: int = option(
        0, "labels that must meet their threshold before diversity pays (L-hat); 0: no gate", low=0, high=100_000
    )
    threshold_rule: Literal["over-ask", "tolerance", "before-loss", "strict"] = option(
        "over-ask", "R1: how a threshold can be met over a lossy link"
    )
    tolerance: float = option(0.2, "R1 tolerance: a label counts from (1 - tolerance) of its threshold", low=0, high=1)
    diversity_weight: float = option(1.0, "alpha_1", low=-1000000.0, high=1000000.0)
    reliability_weight: float = option(0.2, "alpha_2", low=-1000000.0, high=1000000.0)
    budget_weight: float = option(1.0, "alpha_3", low=-1000000.0, high=1000000.0)
    budget_rule: Literal["hinge", "ratio", "literal"] = option("hinge", "R9: -max(0, d-B)/B, (B-d)/B, or B-d")
    global_weight: float = option(0.5, "gamma: weight of the global reward", low=0, high=1000000.0)
    agreement: Literal["ratio", "literal", "mean", "median"] = option(
        "ratio", "R11: ratio of mean divergences - 1, sum of ratios, mean or median of ratios - 1"
    )
    agreement_weight: float = option(
        1.0, "unsupervised: weight of the system agreement in the global reward", low=0, high=1000000.0
    )
    ridge: float = option(
        0.1, "R11: added to every cluster's covariance, as a share of the mean variance", low=0, high=1000000.0
    )


@dataclass(frozen=True)
class DiscoveryConfig(Section):
    """What every method has in common."""

    method: str = option("marginal", "how the graph is found; `d2dfl methods` lists them")
    edges: int = option(5, "incoming links a device may have (E)", low=1, high=64)
    edge_mode: Literal["joint", "sequence"] = option("joint", "R16: all E at once, or the paper's greedy sequence")
    action: Literal["device", "partition"] = option(
        "device", "R17: learners choose a device, or one partition of a device (L times as many choices)"
    )
    no_link: bool = option(True, "R12: a device may choose no link")
    count_bits: int = option(16, "bits charged for a count in a message", low=1, high=1024)
    real_bits: int = option(32, "bits charged for a real number in a message", low=1, high=1024)


@dataclass(frozen=True)
class QlearningConfig(Section):
    """The paper's learner (R2 to R5, R13 to R15)."""

    steps: int = option(5000, "training steps", low=1, high=1_000_000_000)
    buffer: int = option(256, "rewards remembered (H)", low=1, high=1_000_000)
    reduction: float = option(0.9, "delta: how much a reward below the average is reduced", low=0, high=1000)
    update: Literal["per-action", "literal"] = option(
        "per-action", "R2: average per action, or one buffer for all actions"
    )
    reduction_rule: Literal["subtract", "multiply"] = option(
        "subtract", "R4: R - delta*|R|, or the literal (1-delta)*R"
    )
    temperature: float = option(0.2, "R3: softmax temperature at the start", low=1e-09, high=1000000.0)
    temperature_end: float = option(0.02, "R3: softmax temperature at the end", low=1e-09, high=1000000.0)
    untried: Literal["once", "zero", "optimistic"] = option("once", "R13: what an action that was never tried is worth")
    final: Literal["argmax", "sample"] = option("argmax", "R3: how the graph is read off the policies")
    state: Literal["link", "vector"] = option(
        "link", "R5, dynamic: a state is the link's own level, or the whole vector"
    )


@dataclass(frozen=True)
class MarginalConfig(Section):
    """Our learner (R6)."""

    messages: int = option(
        500, "message budget per device and link it may have, everything counted", low=1, high=1_000_000_000
    )
    cycle: int = option(
        300, "messages per device, link and cooling cycle; the best cycle's graph is kept", low=1, high=1_000_000_000
    )
    temperature: float = option(
        1.0, "at the start of a cycle, in mean gains a device could have alone per ln(choices)", low=0, high=1000000.0
    )
    dynamic: Literal["current", "expected"] = option(
        "current", "dynamic channel: plan with the power at the exchange, or the expected loss"
    )
    spread: float = option(
        0.05,
        "what fulfilling the wish of a device with one label is worth, so that different labels meet",
        low=0,
        high=1000000.0,
    )


@dataclass(frozen=True)
class BanditConfig(Section):
    """A bandit per device, on the paper's reward."""

    kind: Literal["ucb", "exp3"] = option("ucb", "UCB1 or EXP3")
    steps: int = option(5000, "steps", low=1, high=1_000_000_000)
    exploration: float = option(0.1, "ucb: width of the bonus; exp3: share of uniform play", low=0, high=1000)


@dataclass(frozen=True)
class GcnConfig(Section):
    """The graph convolutional network of Appendix C (R38)."""

    epochs: int = option(100, "training epochs", low=1, high=1_000_000)
    learning_rate: float = option(1e-3, "Adam learning rate", low=0, high=100)
    weight_decay: float = option(5e-4, "Adam weight decay", low=0, high=100)
    systems: int = option(64, "training systems of 10 devices", low=1, high=100_000)


@dataclass(frozen=True)
class OptimumConfig(Section):
    """The reference optimum."""

    starts: int = option(16, "starts of the local search", low=1, high=1_000_000)
    sweeps: int = option(1000, "annealing sweeps per start, fewer where a sweep costs more", low=1, high=1_000_000_000)
    messages: int = option(
        5000,
        "message budget per device and link of our learner's long run, which is one more start",
        low=1,
        high=1_000_000_000,
    )
    nodes: int = option(
        2_000_000,
        "nodes that branch and bound may visit on networks of up to 12 devices",
        low=1,
        high=1_000_000_000_000,
    )


@dataclass(frozen=True)
class DataConfig(Section):
    """Which data, and who holds what of it at the start (R30)."""

    dataset: str = option("digits", "dataset; `d2dfl data list` names them")
    split: Literal["own", "80/20"] = option("own", "the set's own training and test part, or the paper's 80/20")
    allocation: str = option("labels:3", "who holds what: labels:K (70/20/10 for 3), dirichlet:ALPHA, shards:K, iid")
    samples: int = option(
        0,
        "datapoints per device; 0: as many as the set and the rule allow, at most network.samples_per_device",
        low=0,
        high=1_000_000_000,
    )
    verify: bool = option(True, "take only files that equal the published ones")
    download: bool = option(True, "download files that are not on this machine")


@dataclass(frozen=True)
class PartitionConfig(Section):
    """What is known about the data, and how each device partitions it (R22 to R24, R34 to R36)."""

    paradigm: Literal["supervised", "semi", "unsupervised", "regression"] = option(
        "supervised", "all labels known, some known, none known, or a number to predict"
    )
    components: int = option(
        16, "semi, unsupervised: principal components shared and projected on (d)", low=1, high=10_000
    )
    pca: Literal["dispca", "projectors", "scatter"] = option(
        "dispca", "R34: devices send scaled components, projectors, or (tests' oracle) whole scatter matrices"
    )
    labelled: float = option(
        0.15, "semi: share of a device's datapoints with a label, at least one per label", low=0, high=1
    )
    labeller: str = option("propagation", "semi: how the rest gets labels: propagation, nearest or mlp")
    neighbours: int = option(3, "semi, propagation: nearest neighbours of the kernel (R35)", low=1, high=10_000)
    clusters: int = option(20, "unsupervised: K-means clusters a device (L)", low=1, high=10_000)
    clustering: Literal["own", "shared"] = option(
        "shared", "unsupervised: clusters of each device's own (Algorithm 2), or common to all devices (Algorithm 1)"
    )
    request: float = option(
        0.1, "unsupervised: datapoints asked for over a link, as a share of one's own (R24)", low=0, high=1000
    )
    keep: float = option(0.5, "unsupervised: share of each cluster that a device never gives away (R24)", low=0, high=1)
    ranges: int = option(10, "regression: partitions of the target (L)", low=1, high=10_000)
    cuts: Literal["global", "local", "quantiles"] = option(
        "global", "R36: cut at the largest gaps of all targets, of each device's own, or at quantiles"
    )


@dataclass(frozen=True)
class PrivacyConfig(Section):
    """Optional Gaussian noise on what devices tell each other before the exchange."""

    epsilon: float = option(0.0, "privacy loss of one device's messages; 0: no noise", low=0, high=1000000.0)
    delta: float = option(1e-5, "probability that the loss is larger", low=1e-300, high=0.5)


@dataclass(frozen=True)
class RadioConfig(Section):
    """The generated radio signals (R40)."""

    per_cell: int = option(200, "signals for each modulation and signal-to-noise ratio", low=2, high=1_000_000)
    lowest_snr_db: int = option(-20, "lowest signal-to-noise ratio, in steps of 2 dB", low=-20, high=18)
    highest_snr_db: int = option(18, "highest signal-to-noise ratio", low=-20, high=18)
    mended: bool = option(False, "true: AM-SSB carries speech; false: noise only, as in RadioML 2016.10a")


@dataclass(frozen=True)
class ExchangeConfig(Section):
    """How datapoints move (R20, R21)."""

    keep: Literal["delete", "acknowledged", "copy"] = option(
        "delete", "R21: a sender deletes what it sent, deletes what was acknowledged, or keeps a copy"
    )
    lossy: bool = option(True, "R20: each datapoint is lost with the link's loss probability")
    attempts: int = option(
        1, "transmissions of a datapoint before it is given up; 1: sent once, as in the text", low=1, high=1_000_000
    )


@dataclass(frozen=True)
class FederationConfig(Section):
    """How the devices train and whose models are averaged when (R29, R31 to R33)."""

    scheme: str = option("fedavg", "who averages with whom: fedavg, fedprox, fedsgd, decentralised, semi-decentralised")
    model: str = option("auto", "model that every device trains; auto: one that suits the dataset")
    rounds: int = option(20, "rounds", low=1, high=10_000_000)
    interval: int = option(10, "minibatches between aggregations, which is one round (tau_a)", low=1, high=1_000_000)
    batch: int = option(
        64, "datapoints in a minibatch; a device that holds fewer takes all it has", low=1, high=10_000_000
    )
    optimiser: Literal["sgd", "adam"] = option("sgd", "local optimiser")
    learning_rate: float = option(0.01, "learning rate (1e-3 suits adam)", low=0, high=1e30)
    momentum: float = option(0.9, "sgd: momentum", low=0, high=1)
    momentum_rule: Literal["keep", "reset", "mix"] = option(
        "keep", "at an aggregation devices keep their momentum, forget it (as stateless clients), or it is averaged too"
    )
    weight_decay: float = option(0.0, "weight decay (added to the gradient)", low=0, high=1000000.0)
    mu: float = option(0.01, "fedprox: weight of the pull to the last global model", low=0, high=1000000.0)
    weighting: Literal["data", "equal"] = option(
        "data", "models are averaged by datapoints after the exchange, or equally"
    )
    neighbours: int = option(7, "decentralised: models that a device draws each round", low=1, high=1_000_000)
    subset: int = option(5, "semi-decentralised: devices in a subset", low=1, high=100_000_000)
    subset_every: int = option(
        2, "semi-decentralised: minibatches between averages inside a subset", low=1, high=1_000_000
    )
    global_every: int = option(
        8, "semi-decentralised: minibatches between global averages, which is one round", low=1, high=1_000_000
    )
    heads: Literal["mixed", "raw"] = option(
        "mixed",
        "semi-decentralised, when both fall together: the sampled device sends its subset's average, or its own model",
    )
    stragglers: int = option(0, "devices whose model never arrives; they still receive", low=0, high=100_000_000)
    straggler_rule: Literal["fixed", "redrawn"] = option("fixed", "stragglers are the same in all rounds, or redrawn")
    participation: float = option(1.0, "share of the devices that train and send in a round", low=0, high=1)
    executor: Literal["auto", "loop", "stack"] = option(
        "auto", "devices train one by one, all at once, or as is fastest"
    )
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto", "of products on a GPU; auto: bfloat16. Weights and CPUs always take float32"
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "processor; auto: cuda where there is one")
    margin: float = option(1.0, "unsupervised: margin of the triplet loss (R37)", low=0, high=1000000.0)
    probe: int = option(
        10_000, "unsupervised: pooled training datapoints that linear evaluation learns from", low=1, high=1_000_000_000
    )
    evaluate_every: int = option(
        1, "rounds between evaluations on the test set; the last round always has one", low=1, high=10_000_000
    )


@dataclass(frozen=True)
class EnergyConfig(Section):
    """What transmissions cost (R28). `d2dfl compare` charges them with one radio; constants are those of all."""

    radio: str = option("first-order", "energy of a transmission: first-order, two-slope, shannon, fixed-power")
    server_factor: float = option(
        3.0, "distance to the server, in mean distances between devices", low=0, high=1000000000.0
    )
    value_bits: int = option(8, "bits of one value of a datapoint; its label is one more value", low=1, high=1024)
    parameter_bits: int = option(32, "bits of one parameter of a model", low=1, high=1024)
    electronics_nj_bit: float = option(
        50.0, "first-order, two-slope: electronics, at either end (E_elec)", low=0, high=1000000000000.0
    )
    amplifier_pj_bit_m2: float = option(100.0, "first-order: amplifier (epsilon)", low=0, high=1000000000000.0)
    free_space_pj_bit_m2: float = option(
        10.0, "two-slope: amplifier before the crossover distance", low=0, high=1000000000000.0
    )
    multipath_pj_bit_m4: float = option(
        0.0013, "two-slope: amplifier beyond the crossover distance", low=1e-12, high=1000000000000.0
    )
    transmit_power_w: float = option(0.1, "shannon, fixed-power: radiated power", low=1e-12, high=1000000000.0)
    circuit_power_w: float = option(
        0.1, "shannon, fixed-power: power of the circuits, at either end", low=0, high=1000000000.0
    )
    bandwidth_hz: float = option(1e6, "shannon: bandwidth", low=1, high=1000000000000000.0)
    noise_dbm_hz: float = option(
        -168.0, "shannon: noise density; thermal noise and a noise figure of 6 dB", low=-1000, high=200
    )
    loss_at_1_m_db: float = option(40.0, "shannon: path loss over one metre, here at 2.4 GHz", low=0, high=1000)
    loss_exponent: float = option(3.0, "shannon: power falls with distance to this power", low=0, high=10)
    rate_bit_s: float = option(1e6, "fixed-power: rate", low=1e-06, high=1000000000000000.0)


@dataclass(frozen=True)
class Config:
    """Everything that determines a discovery, except the seed."""

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
    radio: RadioConfig = dataclasses.field(default_factory=RadioConfig)
    exchange: ExchangeConfig = dataclasses.field(default_factory=ExchangeConfig)
    federation: FederationConfig = dataclasses.field(default_factory=FederationConfig)
    energy: EnergyConfig = dataclasses.field(default_factory=EnergyConfig)

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
        return self.with_(**changes)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


@cache
def _sections() -> dict[str, Any]:
    return typing.get_type_hints(Config)


def split_path(path: str) -> tuple[str, str]:
    """Split "section.field" and make sure that both exist."""
    sections = _sections()
    section, _, name = path.partition(".")
    if section not in sections:
        raise UserError(f"there is no section {section!r:.80}: the sections are {', '.join(sections)}")
    names = [field.name for field in dataclasses.fields(sections[section])]
    if name not in names:
        raise UserError(f"there is no field {path!r:.80}: section {section} has {', '.join(names)}")
    return section, name
