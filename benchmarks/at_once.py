"""At the same time, and over a radio that loses: our learner as devices that share nothing but messages (discovery/protocol).

First table: devices that hand a token round, and devices that revise at the same time, each by its own clock. Messages in all,
messages in series, the time that takes at 20 ms a message, and the objective as a share of what the token finds. Masked sums before and
negotiations after are the same for both and left out. Up to 64 slots a device; 3 labels a device, five links.

Second table: the same devices at the same time, over a radio that loses messages, delays them (the mean by as much again) and
doubles 5 %. An exchange of question and answer takes 1 / (1 - p)^2 questions and 1 / (1 - p) answers; accounts pay for
exchanges, so messages should grow by half the sum of both.

Plain Python: a discovery with 1,000 devices takes minutes.

    python benchmarks/at_once.py [--sizes 25x20,100x8] [--links 5] [--messages 200] [--first 6000]
                                 [--losses 0,0.1,0.2,0.3] [--lossy 10] [--token 1] [--token-up-to 100]
"""

import argparse

import numpy as np

from d2dfl import Config, Network, preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game.board import board_of, free_choice
from d2dfl.discovery.methods import marginal
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.fleet import Fleet
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules
from d2dfl.discovery.protocol.weather import Weather, radio_of
from d2dfl.discovery.task import Task
from d2dfl.rng import device_keys, stream

SECONDS = 0.02  # that a message takes
SLOTS = 64
DOUBLING = 0.05


def prepared(network: Network, config: Config, seed: int, kind: type[Device]) -> tuple[Fleet, Rules]:
    """Devices before their introductions, and the rules that they agree on."""
    terms, edges = Terms.of(config.reward), config.discovery.edges
    board = board_of(network, terms)
    cycles, budget = marginal.cycles_of(config.marginal), config.marginal.messages * edges
    learner = marginal.introduce(board, terms, budget, config.marginal.spread, edges, cycles=cycles)
    cooling = marginal.cooling_of(learner, config.marginal)
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    fleet = Fleet.of(network, config, keys, learner.account, free, learner.claim, learner.useful, kind)
    return fleet, Rules(*cooling, network.devices, cycles)


def objective(network: Network, config: Config, fleet: Fleet) -> float:
    return evaluate(network, graph_of(network, fleet.slots(), config.reward.over_ask), config.reward).objective


def settings(devices: int, links: int, messages: int) -> Config:
    slots = {"channel.slots": SLOTS} if devices > SLOTS else {}
    return preset("best").with_(
        **{"network.devices": devices, "discovery.edges": links, "marginal.messages": messages, **slots}
    )


def run_all(network: Network, config: Config, seed: int, kind: type[Device]) -> Fleet:
    fleet, rules = prepared(network, config, seed, kind)
    fleet.introduce()
    (fleet.run_at_once if kind is OwnClock else fleet.run)(rules)
    return fleet


def one_size(config: Config, seeds: range, token_runs: int) -> None:
    """What the token finds is computed by the compiled learner, which tests hold to be the same link for link."""
    ratios, rows = [], []
    for seed in seeds:
        network = Network.generate(config, seed)
        fleet = run_all(network, config, seed, OwnClock)
        in_turns = marginal.find(Task(network, config, seed, edges=config.discovery.edges))
        worth = evaluate(network, graph_of(network, in_turns.slots, config.reward.over_ask), config.reward).objective
        ratios.append(objective(network, config, fleet) / worth)
        rows.append((fleet.messages, fleet.depth))
    tokens = [run_all(Network.generate(config, seed), config, seed, Device) for seed in seeds[:token_runs]]
    if tokens:
        show(config, "token", [(fleet.messages, fleet.depth) for fleet in tokens], "1 | 1")
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
    show(config, "at the same time", rows, f"{np.mean(ratios):.3f} ± {error:.3f} | {min(ratios):.3f}")


def show(config: Config, name: str, measured: list[tuple[float, float]], share: str) -> None:
    messages, depth = np.mean(measured, axis=0)
    print(
        f"| {config.network.devices:,} | {len(measured)} | {name} | {messages:,.0f} | {depth:,.0f} | "
        f"{SECONDS * depth:,.0f} s | {share} |",
        flush=True,
    )


def one_loss(config: Config, seeds: range, loss: float, lossless: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Messages, time and objective in the mean, as a row beside those without loss on the same networks."""
    measured = []
    for seed in seeds:
        network = Network.generate(config, seed)
        fleet, rules = prepared(network, config, seed, OwnClock)
        weather = Weather(loss, DOUBLING, 1.0)
        radio = radio_of(fleet.devices, weather, stream(seed, "weather"))
        radio.introduce()
        radio.run(rules)
        measured.append((radio.messages, max(radio.ends.values()), objective(network, config, fleet)))
    messages, depth, _ = np.mean(measured, axis=0).tolist()
    first = lossless or measured
    ratios = np.array(measured)[:, 2] / np.array(first)[:, 2]
    error = ratios.std(ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
    predicted = (1 / (1 - loss) ** 2 + 1 / (1 - loss)) / 2
    print(
        f"| {loss:.0%} | {messages:,.0f} | {messages / np.mean(first, axis=0)[0]:.2f} | {predicted:.2f} | "
        f"{SECONDS * depth:,.0f} s | {ratios.mean():.3f} ± {error:.3f} |",
        flush=True,
    )
    return first


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="25x20,100x8", help="devices x networks")
    parser.add_argument("--links", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--first", type=int, default=6000)
    parser.add_argument("--losses", default="0,0.1,0.2,0.3")
    parser.add_argument("--lossy", type=int, default=10, help="networks of 25 devices for the second table")
    parser.add_argument("--token", type=int, default=1, help="networks on which devices also hand a token round")
    parser.add_argument("--token-up-to", type=int, default=100, help="most devices that also hand a token round")
    chosen = parser.parse_args()
    print(f"{chosen.links} links, {chosen.messages} messages a device and link, networks from {chosen.first} on")
    if chosen.sizes:
        print("\n| devices | networks | | messages | in series | at 20 ms | objective | lowest |")
        print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for text in (text for text in chosen.sizes.split(",") if text):
        size, networks = (int(part) for part in text.split("x"))
        config = settings(size, chosen.links, chosen.messages)
        one_size(config, range(chosen.first, chosen.first + networks), chosen.token * (size <= chosen.token_up_to))
    if not chosen.lossy:
        return
    print("\n| lost | messages | growth | predicted | time | objective |\n|---:|---:|---:|---:|---:|---:|")
    lossless: list[tuple[float, ...]] = []
    config = settings(25, chosen.links, chosen.messages)
    for loss in (float(text) for text in chosen.losses.split(",")):
        lossless = one_loss(config, range(chosen.first, chosen.first + chosen.lossy), loss, lossless)


if __name__ == "__main__":
    main()
