"""Settings of the network, of the reward and of the learners."""

from dataclasses import dataclass
from typing import Literal

from d2dfl.config.metrics import METRICS
from d2dfl.config.section import Section, option
from d2dfl.errors import UserError

RewardKind = Literal["gain", "change"]  # compiled code knows the words of these lists by their places
ThresholdRule = Literal["over-ask", "tolerance", "before-loss", "strict"]
BudgetRule = Literal["hinge", "ratio", "literal"]
Agreement = Literal["ratio", "literal", "mean", "median"]
Untried = Literal["once", "zero", "optimistic"]

TRUST_FORMS = (
    "random:P, block[:P], rows:SPARSITY, columns:SPARSITY, insecure:SHARE, full, none"  # what a rule may look like
)


def threshold_share(rule: str, partitions: int) -> float:
    """Share of its data that a device wants of each partition; "iid" is 1/L (R7)."""
    try:
        share = 1.0 / partitions if rule == "iid" else float(rule)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UserError(f"network.threshold cannot be {rule!r}: give iid, or a share from 0 to 1 such as 0.05")
    return share


@dataclass(frozen=True)
class NetworkConfig(Section):
    """Who holds what and who trusts whom, when the network is generated."""

    devices: int = option(25, "number of devices", low=1, high=100_000_000)
    partitions: int = option(10, "number of data partitions (classes)", low=1, high=100_000)
    labels_per_device: int = option(3, "partitions that a device holds at the start", low=1, high=100_000)
    samples_per_device: int = option(1200, "datapoints that a device holds at the start", low=0, high=1_000_000_000)
    threshold: str = option("iid", "datapoints a partition should keep: a share of the device's data, or iid (1/L)")
    trust: str = option(
        "random:0.5",
        f"{TRUST_FORMS}, or an .npy file of trust[receiver, transmitter, partition] (R27, R46)",
    )
    file: str = option("", "run, compare: .npz or .json with links of your own, and trust if it is known")
    sha256: str = option("", "its checksum, which a run was made with; empty: any")


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
    noise_power: float = option(0.02, "noise power, in the unit of the received power", low=0, high=1e15)
    median: float = option(0.3, "path-loss: median received power", low=1e-30, high=1e15)
    lowest: float = option(0.05, "path-loss, gaussian: received power is clipped below here", low=1e-30, high=1e15)
    highest: float = option(0.55, "path-loss, gaussian: received power is clipped above here", low=1e-30, high=1e15)
    exponent: float = option(2.0, "path-loss, physical: power falls with distance to this power", low=0, high=10)
    mean: float = option(0.3, "gaussian: mean received power", low=-1e15, high=1e15)
    deviation: float = option(0.1, "gaussian: second number of N(mean, deviation)", low=0, high=1e15)
    deviation_rule: Literal["deviation", "variance"] = option(
        "deviation", "R45: gaussian: that number is the standard deviation, or the variance"
    )
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
    trace: str = option(
        "",
        "dynamic: a recorded trace (.npz) that is replayed in place of the gaussian draws, as `fleet network --trace` writes",
    )
    levels: int = option(4, "dynamic: quantisation levels of the received power", low=1, high=256)
    plan: Literal["expected", "levels", "exact"] = option(
        "expected",
        "R45: dynamic: all methods plan with mean losses, with those of the links' levels, or (a bound) exact ones",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lowest > self.highest:
            raise UserError(f"channel.lowest cannot be {self.lowest:g}: give at most channel.highest, {self.highest:g}")

    @property
    def power_deviation(self) -> float:
        """Standard deviation of the received power, gaussian (R45)."""
        return float(self.deviation**0.5 if self.deviation_rule == "variance" else self.deviation)


@dataclass(frozen=True)
class RewardConfig(Section):
    """The reward of a device and of the network (R1, R7 to R9)."""

    kind: RewardKind = option("gain", "R7: distance to i.i.d. won (gain), or distance moved (change, literal)")
    metric: str = option("total-variation", "R8: distance between label distributions", names=METRICS)
    gate: int = option(
        0, "labels that must meet their threshold before diversity pays (L-hat); 0: no gate", low=0, high=100_000
    )
    threshold_rule: ThresholdRule = option("over-ask", "R1: how a threshold can be met over a lossy link")
    tolerance: float = option(0.2, "R1 tolerance: a label counts from (1 - tolerance) of its threshold", low=0, high=1)
    diversity_weight: float = option(1.0, "alpha_1", low=-1000000.0, high=1000000.0)
    reliability_weight: float = option(0.2, "alpha_2", low=-1000000.0, high=1000000.0)
    budget_weight: float = option(1.0, "alpha_3", low=-1000000.0, high=1000000.0)
    budget_rule: BudgetRule = option("hinge", "R9: -max(0, d-B)/B, (B-d)/B, or B-d")
    global_weight: float = option(0.5, "gamma: weight of the global reward", low=0, high=1000000.0)
    agreement: Agreement = option(
        "ratio", "R11: ratio of mean divergences - 1, sum of ratios, mean or median of ratios - 1"
    )
    agreement_weight: float = option(
        1.0, "unsupervised: weight of the system agreement in the global reward", low=0, high=1000000.0
    )
    ridge: float = option(
        0.1, "R11: added to every cluster's covariance, as a share of the mean variance", low=0, high=1000000.0
    )

    @property
    def over_ask(self) -> bool:
        """R1: whether a receiver asks for more than it lacks, by what will be lost."""
        return self.threshold_rule == "over-ask"


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
    temperature: float = option(0.05, "R3: softmax temperature at the start", low=1e-09, high=1000000.0)
    temperature_end: float = option(0.005, "R3: softmax temperature at the end", low=1e-09, high=1000000.0)
    untried: Untried = option("once", "R13: what an action that was never tried is worth")
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
    temperature: float = option(
        0.7,
        "at the start, in what a device expects of its best link, in the mean, per ln(choices)",
        low=0,
        high=1000000.0,
    )
    cycle: int = option(
        250,
        "messages of the budget that one cooling takes; what is left warms up again, and the best graph stays",
        low=1,
        high=1_000_000_000,
    )
    patience: int = option(
        100, "rounds of turns in a row without a change after which a cooling ends", low=1, high=1_000_000_000
    )
    spread: float = option(
        0.5,
        "what fulfilling the claim of a device with one label is worth, in what a device expects of its best link",
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
        "nodes that branch and bound may visit on networks of up to 12 devices; with several links there must be fewer graphs",
        low=1,
        high=1_000_000_000_000,
    )
