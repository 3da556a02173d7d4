"""Variety: how near our learner comes to the best known objective when networks differ from those that it was tuned on.

The base is that of benchmarks/quality.py: our objective, 25 devices in a full mesh, 10 labels of which a device holds 3
(70/20/10), trust 0.5, thresholds at 5 % of a device's data. One factor at a time is changed, then all at once by chance
("mix": every network another). With 2 labels a device holds 1 of them. `marginal` has 500 messages a device and link, all
counted. The best known graph is the best of `marginal`, `greedy` and `optimum`: 6 annealed starts and a run of our learner with
2,000 messages up to 25 devices, fewer beyond (`effort`), so there shares are measured against a weaker best. Share 0 is no
exchange. Networks from 7000 on, which nothing was tuned on.

    python benchmarks/variety.py [--networks 6] [--mixes 8] [--first 7000] [--links 1,5] [--only devices,mix]
                                 [--jobs 2] [--lines FILE [--show]]
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl import Network, discover, preset
from d2dfl.data.shares import whole_parts
from d2dfl.discovery.evaluation import share_of
from d2dfl.rng import stream
from lines import Line, measure

BASE: Mapping[str, Any] = {
    "network.threshold": "0.05",
    "reward.reliability_weight": 1.0,
    "channel.budget_share": 0.1,
    "marginal.messages": 500,
}
METHODS = ("marginal", "greedy", "optimum")


class Setting(NamedTuple):
    """One line of the table."""

    factor: str
    value: str
    changes: Mapping[str, Any] = {}
    dirichlet: float = 0.0  # concentration of each device's labels; 0: a fixed number of labels a device
    networks: int = 0  # 0: as many as asked for

    @property
    def name(self) -> str:
        return f"{self.factor} {self.value}".strip()


def effort(devices: int) -> dict[str, int]:
    """How long the reference searches: its cost grows with the third power of the number of devices."""
    if devices <= 25:
        return {"optimum.starts": 6, "optimum.messages": 2000}
    if devices <= 60:
        return {"optimum.starts": 6, "optimum.messages": 1000}
    return {"optimum.starts": 3, "optimum.messages": 500}


def settings() -> Iterator[Setting]:
    """One factor at a time."""
    yield Setting("base", "")
    for labels in (2, 3, 5, 20, 30):
        held = {"network.partitions": labels, "network.labels_per_device": 1 if labels == 2 else min(3, labels - 1)}
        yield Setting("labels", str(labels), held)
    for slots in (4, 8, 16):
        yield Setting("hears", str(slots), {"channel.slots": slots})
    for trust in (0.1, 0.25, 0.75, 1.0):
        yield Setting("trust", f"{trust:g}", {"network.trust": f"random:{trust:g}"})
    yield Setting("threshold", "0.02", {"network.threshold": "0.02"})
    yield Setting("threshold", "iid", {"network.threshold": "iid"})
    for concentration in (0.1, 0.3):
        yield Setting("Dirichlet", f"{concentration:g}", {}, concentration)
    for concentration in (0.1, 0.3, 1.0, 10.0):  # with low thresholds even devices need next to nothing
        changes = {"network.threshold": "iid"}
        yield Setting("Dirichlet", f"{concentration:g}, threshold iid", changes, concentration)
    as_delivered = {"network.threshold": "iid", "reward.reliability_weight": 0.2, "channel.budget_share": 0.5}
    yield Setting("preset", "best", as_delivered)
    yield Setting("devices", "10", {"network.devices": 10})
    yield Setting("devices", "50", {"network.devices": 50})


def claims() -> Iterator[Setting]:
    """Devices with a single label claim pairs of labels, which is no part of the objective: with and without it."""
    two, ten = ({"network.partitions": labels, "network.labels_per_device": 1} for labels in (2, 10))
    without = {"marginal.spread": 0.0}
    yield Setting("claims", "none, labels 2", {**two, **without})
    yield Setting("claims", "1 label of 10 a device", ten)
    yield Setting("claims", "none, 1 label of 10 a device", {**ten, **without})
    yield Setting("claims", "none, Dirichlet 0.1", without, 0.1)


def large() -> Iterator[Setting]:
    yield Setting("devices", "100", {"network.devices": 100}, networks=4)
    yield Setting("devices", "200", {"network.devices": 200}, networks=2)


def mix(seed: int) -> Setting:
    """A network in which everything is drawn by chance."""
    rng = stream(seed, "variety")
    devices, labels = int(rng.integers(10, 61)), int(rng.integers(2, 31))
    held = int(rng.integers(1, min(labels, 6)))
    dirichlet = float(rng.choice([0.0, 0.1, 0.3, 1.0, 10.0]))
    threshold, slots = str(rng.choice(["0.02", "0.05", "iid"])), int(rng.choice([0, 4, 8, 16]))
    trust = round(float(rng.uniform(0.1, 1.0)), 2)
    data = f"Dirichlet {dirichlet:g}" if dirichlet else f"{held} a device"
    slots = 0 if slots >= devices - 1 else slots
    heard = f"hears {slots}" if slots else "full mesh"
    changes = {
        "network.devices": devices,
        "network.partitions": labels,
        "network.labels_per_device": held,
        "network.threshold": threshold,
        "network.trust": f"random:{trust}",
        "channel.slots": slots,
    }
    text = f"{devices} devices, {labels} labels, {data}, {heard}, trust {trust}, threshold {threshold}"
    return Setting("mix", text, changes, dirichlet, networks=1)


def dirichlet_counts(devices: int, labels: int, samples: int, concentration: float, seed: int) -> NDArray[np.float64]:
    """counts[device, label] of devices of the same size, each with shares of its own."""
    shares = stream(seed, "variety", "counts").dirichlet(np.full(labels, concentration), size=devices)
    return np.array([whole_parts(samples, row) for row in shares], dtype=np.float64)


def setting_named(name: str, network: int) -> Setting:
    """A line of the table by what stands before it."""
    fixed = {setting.name: setting for setting in (*settings(), *claims(), *large())}
    return fixed[name] if name in fixed else mix(network)


def shares_on(setting: str, links: int, network: int) -> dict[str, float]:
    """Share of the best known objective by method, on one network; no entries where no exchange is worth anything."""
    chosen = setting_named(setting, network)
    config = preset("best").with_(**{**BASE, **chosen.changes, "discovery.edges": links})
    held = config.network
    config = config.with_(**effort(held.devices))
    if chosen.dirichlet:
        counts = dirichlet_counts(held.devices, held.partitions, held.samples_per_device, chosen.dirichlet, network)
        drawn = Network.around(counts, config, network)
    else:
        drawn = Network.generate(config, network)
    found = {method: discover(drawn, config, seed=network, method=method).evaluation for method in METHODS}
    best, none = max(item.objective for item in found.values()), found["greedy"].no_exchange
    if best - none <= 1e-9:
        return {}
    return {method: share_of(item.objective, best, none) for method, item in found.items()}


def tasks_of(options: argparse.Namespace) -> Iterator[Line]:
    """The first network of every line of the table, then the second."""
    fixed = [(setting, options.first) for setting in (*settings(), *claims())]
    mixed = [(mix(seed), seed) for seed in range(options.first, options.first + options.mixes)]
    wanted = options.only.split(",") if options.only else []
    lines = [*fixed, *mixed, *((setting, options.first) for setting in large())]
    for number in range(options.networks):
        for setting, first in lines:
            if number < (setting.networks or options.networks) and (not wanted or setting.factor in wanted):
                for links in options.links.split(","):
                    yield {"setting": setting.name, "links": int(links), "network": first + number}


def show(lines: list[Line], links: list[int]) -> None:
    heads = [f"{method}, {count} links (lowest)" for count in links for method in ("marginal", "greedy")]
    print("| setting | networks | " + " | ".join(heads) + " |\n|---|" + "---:|" * (1 + len(heads)))
    for name in dict.fromkeys(line["setting"] for line in lines):
        there = [line for line in lines if line["setting"] == name]
        cells = [name, "/".join(dict.fromkeys(str(sum(line["links"] == count for line in there)) for count in links))]
        for count in links:
            for method in ("marginal", "greedy"):
                values = [line[method] for line in there if line["links"] == count and method in line]
                cells.append(f"{np.mean(values):.3f} ({min(values):.3f})" if values else "nothing to win")
        print("| " + " | ".join(cells) + " |")
    for count in links:
        every = [(line["marginal"], line["setting"]) for line in lines if line["links"] == count and "marginal" in line]
        if every:
            share, name = min(every)
            mean = np.mean([found for found, _ in every])
            print(f"{count} links: mean of all {mean:.3f}, worst {share:.3f} ({name}), {len(every)} networks")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=6)
    parser.add_argument("--mixes", type=int, default=8)
    parser.add_argument("--first", type=int, default=7000, help="seed of the first network")
    parser.add_argument("--links", default="1,5")
    parser.add_argument("--only", default="", help="factors, separated by commas; all if empty")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lines", type=Path, help="file of results; those that it has are not measured again")
    parser.add_argument("--show", action="store_true", help="the table of what --lines has, nothing else")
    options = parser.parse_args()
    lines = measure(shares_on, list(tasks_of(options)), options.jobs, options.lines, options.show)
    show(lines, [int(count) for count in options.links.split(",")])


if __name__ == "__main__":
    main()
