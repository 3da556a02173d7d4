"""Speed of the game: one PettingZoo environment against copies stepped together, in one run, on one core.

Random legal actions, full mesh, static channel; a step gives rewards (all three kinds), observations and masks. The plain
way asks `evaluate` for the objective and once more without each device's link, which is what a step has to know.

    python benchmarks/env.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from d2dfl import Config, Network, preset
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.env import GraphDiscovery
from d2dfl.env.vector import VectorGame

SIZES = ((10, 1), (25, 1), (25, 5), (100, 1))  # devices, links
COPIES = (1, 16, 256)
ROUNDS, SECONDS = 5, 0.3  # all ways take turns; each turn lasts about this long


def parallel(config: Config) -> Callable[[], int]:
    """One environment: dictionaries in, dictionaries out."""
    env = GraphDiscovery(config, Network.generate(config, 0), steps=10**9)
    env.reset(seed=0)
    draw = _actions(config, 1)

    def step() -> int:
        env.step(dict(zip(env.agents, draw()[0].tolist(), strict=True)))
        return 1

    return step


def vector(config: Config, copies: int) -> Callable[[], int]:
    """As many copies, each on a network of its own, in one call."""
    game = VectorGame([Network.generate(config, seed) for seed in range(copies)], config)
    draw = _actions(config, copies)

    def step() -> int:
        game.step(draw())
        game.observe()
        game.masks()
        return copies

    return step


def plain(config: Config) -> Callable[[], int]:
    """`evaluate`, and again without each link in turn."""
    network, edges = Network.generate(config, 0), config.discovery.edges
    draw = _actions(config, 1)
    links = np.tile(np.arange(edges, dtype=np.int32), (network.devices, 1))

    def step() -> int:
        links[:, 0] = draw()[0]
        links[links == network.slots] = -1
        over_ask = config.reward.over_ask
        evaluate(network, graph_of(network, links, over_ask), config.reward)
        for device in range(network.devices):
            fewer = links.copy()
            fewer[device, 0] = -1
            evaluate(network, graph_of(network, fewer, over_ask), config.reward)
        return 1

    return step


def _actions(config: Config, copies: int) -> Callable[[], np.ndarray]:
    rng, devices = np.random.default_rng(0), config.network.devices
    return lambda: rng.integers(devices, size=(copies, devices))  # slots 0 to devices - 2, and no link


def rate(step: Callable[[], int]) -> float:
    """Environment steps a second of processor time over one turn: other work on the machine counts little."""
    done, began = 0, time.process_time()
    while (passed := time.process_time() - began) < SECONDS:
        done += step()
    return done / passed


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(
        f"environment steps a second of processor time, median of {ROUNDS} turns (multiple of the PettingZoo environment)"
    )
    for devices, edges in SIZES:
        config = preset("best").with_(**{"network.devices": devices, "discovery.edges": edges})
        ways = {"PettingZoo": parallel(config), "plain": plain(config)}
        ways |= {f"VectorGame({copies})": vector(config, copies) for copies in COPIES}
        for step in ways.values():
            step()  # compiles
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, step in ways.items():
                rates[name].append(rate(step))
        median = {name: statistics.median(values) for name, values in rates.items()}
        row = [f"{name} {value:,.0f} ({value / median['PettingZoo']:.2f} x)" for name, value in median.items()]
        print(f"{devices} devices, {edges} link(s): " + ", ".join(row), flush=True)


if __name__ == "__main__":
    main()
