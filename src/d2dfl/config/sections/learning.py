"""Settings of data, partitions, the exchange, training and energy."""

from dataclasses import dataclass
from typing import Literal, get_args

from d2dfl.config.section import Section, option

ParadigmName = Literal["supervised", "semi", "unsupervised", "regression"]
PARADIGMS: tuple[ParadigmName, ...] = get_args(ParadigmName)
SUPERVISED: ParadigmName = (
    "supervised"  # unless another is named; partitions are labels, which a network has without data
)
SCHEMES = ("fedavg", "fedprox", "fedsgd", "decentralised", "semi-decentralised")  # a plug-in may bring more
Engine = Literal["local", "ray"]  # where work is done; a reproduction takes backends of joblib, too
ENGINES: tuple[Engine, ...] = get_args(Engine)
Split = Literal["own", "80/20", "validation"]  # which datapoints are learned from, which are tested on
Summary = Literal["dispca", "projectors", "scatter"]  # what a device tells of its inputs
Features = Literal["raw", "spectrum", "gradients", "auto"]  # what projections are made of
Cuts = Literal["global", "local", "quantiles"]  # where a target is cut into ranges
Keeping = Literal["delete", "acknowledged", "copy"]  # what a sender does with what it sent
FIRST_ORDER = "first-order"  # the radio by which joules are counted unless another is named (R28)
Views = Literal["literal", "all"]  # what of a triplet is transformed


@dataclass(frozen=True)
class DataConfig(Section):
    """Which data, and who holds what of it at the start (R30)."""

    dataset: str = option(
        "digits", "dataset; `d2dfl data list` names them; or a file of your own: .npz, .csv, .parquet"
    )
    split: Split = option(
        "own",
        "the set's own training and test part, the paper's 80/20, or validation: the training part alone, 80/20, to "
        "choose settings on",
    )
    allocation: str = option("labels:3", "who holds what: labels:K (70/20/10 for 3), dirichlet:ALPHA, shards:K, iid")
    samples: int = option(
        0,
        "datapoints per device; 0: as many as the set and the rule allow, at most network.samples_per_device",
        low=0,
        high=1_000_000_000,
    )
    repeat: bool = option(
        False, "a datapoint may be at several devices where the set has too few for all of them; never twice at one"
    )
    verify: bool = option(True, "take only files that equal the published ones")
    download: bool = option(True, "download files that are not on this machine")
    label: str = option("label", "own .csv or .parquet: column of the labels or numbers to learn")
    device: str = option(
        "device", "own file: column (.npz: device) that says who holds a row; empty: rows are dealt out"
    )
    sha256: str = option("", "own file: its checksum, which a run was made with; empty: any")


@dataclass(frozen=True)
class PartitionConfig(Section):
    """What is known about the data, and how each device partitions it (R22 to R24, R34 to R36)."""

    paradigm: ParadigmName = option(SUPERVISED, "all labels known, some known, none known, or a number to predict")
    components: int = option(
        16, "semi, unsupervised: principal components shared and projected on (d)", low=1, high=10_000
    )
    pca: Summary = option(
        "dispca", "R34: devices send scaled components, projectors, or (tests' oracle) whole scatter matrices"
    )
    features: Features = option(
        "raw",
        "semi, unsupervised: project inputs as they are, spectra of signals, gradients of pictures, or (auto) what suits",
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
    cuts: Cuts = option("global", "R36: cut at the largest gaps of all targets, of each device's own, or at quantiles")


@dataclass(frozen=True)
class PrivacyConfig(Section):
    """What devices tell each other before the exchange: optional Gaussian noise, and how many must stand together."""

    epsilon: float = option(0.0, "privacy loss of one device's messages; 0: no noise", low=0, high=1000000.0)
    delta: float = option(1e-5, "probability that the loss is larger", low=1e-300, high=0.5)
    contributors: int = option(
        3, "devices that must add to a label's sketch, or it is not formed", low=2, high=1_000_000_000
    )


@dataclass(frozen=True)
class RadioSignalsConfig(Section):
    """The generated radio signals (R40)."""

    per_cell: int = option(200, "signals for each modulation and signal-to-noise ratio", low=2, high=1_000_000)
    lowest_snr_db: int = option(-20, "lowest signal-to-noise ratio, in steps of 2 dB", low=-20, high=18)
    highest_snr_db: int = option(18, "highest signal-to-noise ratio", low=-20, high=18)
    mended: bool = option(False, "true: AM-SSB carries speech; false: noise only, as in RadioML 2016.10a")


@dataclass(frozen=True)
class ExchangeConfig(Section):
    """How datapoints move (R9, R20, R21)."""

    keep: Keeping = option(
        "delete", "R21: a sender deletes what it sent, deletes what was acknowledged, or keeps a copy"
    )
    lossy: bool = option(True, "R20: each datapoint is lost with the link's loss probability")
    attempts: int = option(
        1, "transmissions of a datapoint before it is given up; 1: sent once, as in the text", low=1, high=1_000_000
    )
    budget: Literal["hard", "soft"] = option(
        "hard", "R9: clusters take at most their budget from outside (hard), or what the graph says (soft)"
    )


@dataclass(frozen=True)
class FederationConfig(Section):
    """How the devices train and whose models are averaged when (R29, R31 to R33)."""

    scheme: str = option(SCHEMES[0], f"who averages with whom: {', '.join(SCHEMES)}")
    model: str = option("auto", "model that every device trains; auto: one that suits the dataset")
    rounds: int = option(20, "rounds", low=1, high=10_000_000)
    interval: int = option(10, "minibatches between aggregations, which is one round (tau_a)", low=1, high=1_000_000)
    batch: int = option(
        64, "datapoints in a minibatch; a device that holds fewer takes all it has", low=1, high=10_000_000
    )
    optimiser: Literal["sgd", "adam"] = option("sgd", "optimiser of every device; fedsgd: of the server (R41)")
    learning_rate: float = option(0.01, "learning rate (1e-3 suits adam)", low=0, high=1e20)
    momentum: float = option(0.9, "sgd: momentum", low=0, high=1)
    momentum_rule: Literal["keep", "reset", "mix"] = option(
        "keep",
        "at an aggregation devices keep their momentum, forget it (as stateless clients), or it is averaged too; "
        "fedsgd: the server keeps its own",
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
    block: int = option(
        0,
        "devices that train at once; 0: as many as pays. It changes memory and time, no result",
        low=0,
        high=100_000_000,
    )
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto", "of products on a GPU; auto: bfloat16. Weights and CPUs always take float32"
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "processor; auto: cuda where there is one")
    margin: float = option(1.0, "unsupervised: margin of the triplet loss (R37)", low=0, high=1000000.0)
    views: Views = option(
        "literal",
        "R42, unsupervised: the positive of a triplet alone is transformed, or all three, with random light too",
    )
    probe: int = option(
        10_000, "unsupervised: pooled training datapoints that linear evaluation learns from", low=1, high=1_000_000_000
    )
    evaluate_every: int = option(
        1, "rounds between evaluations on the test set; the last round always has one", low=1, high=10_000_000
    )


@dataclass(frozen=True)
class EnergyConfig(Section):
    """What transmissions cost (R28). `d2dfl compare` charges them with one radio; constants are those of all."""

    radio: str = option(FIRST_ORDER, "energy of a transmission: first-order, two-slope, shannon, fixed-power")
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
