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
                                 [--jobs 2] [--lines FILE [--show]]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2dfl import Config, Network, preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game.board import board_of, free_choice
from d2dfl.discovery.methods import marginal
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.fleet import Fleet
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules
from d2dfl.discovery.protocol.weather import Weather, lossy_radio
from d2dfl.discovery.task import Task
from d2dfl.rng import device_keys, stream
from lines import Line, measure

SECONDS = 0.02  # that a message takes
SLOTS = 64
DOUBLING = 0.05
TOKEN, CLOCKS, RADIO = (
    "token",
    "at the same time",
    "radio",
)  # who is next; by clocks of their own over a radio that loses


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


def one_run(way: str, devices: int, links: int, messages: int, network: int, loss: float) -> dict[str, float]:
    """Messages, those in series, and the objective. For `at the same time` also what the token finds, by the compiled
    learner: tests hold that it is the same link for link."""
    config = settings(devices, links, messages)
    drawn = Network.generate(config, network)
    if way == RADIO:
        fleet, rules = prepared(drawn, config, network, OwnClock)
        radio = lossy_radio(fleet.devices, Weather(loss, DOUBLING, 1.0), stream(network, "weather"))
        radio.introduce()
        radio.run(rules)
        return {
            "sent": radio.messages,
            "series": max(radio.ends.values()),
            "objective": objective(drawn, config, fleet),
        }
    fleet = run_all(drawn, config, network, OwnClock if way == CLOCKS else Device)
    found = {"sent": fleet.messages, "series": fleet.depth, "objective": objective(drawn, config, fleet)}
    if way == CLOCKS:
        in_turns = marginal.find(Task(drawn, config, network, edges=links))
        graph = graph_of(drawn, in_turns.slots, config.reward.over_ask)
        found["token"] = evaluate(drawn, graph, config.reward).objective
    return found


def tasks_of(chosen: argparse.Namespace) -> Iterator[Line]:
    common = {"links": chosen.links, "messages": chosen.messages}
    for network in range(chosen.first, chosen.first + chosen.lossy):
        for loss in chosen.losses.split(","):
            yield {"way": RADIO, "devices": 25, **common, "network": network, "loss": float(loss)}
    for text in (text for text in chosen.sizes.split(",") if text):
        devices, networks = (int(part) for part in text.split("x"))
        for number in range(networks):
            task = {"devices": devices, **common, "network": chosen.first + number, "loss": 0.0}
            yield {"way": CLOCKS, **task}
            if number < chosen.token and devices <= chosen.token_up_to:
                yield {"way": TOKEN, **task}


def show_sizes(lines: list[Line]) -> None:
    print("\n| devices | networks | | messages | in series | at 20 ms | objective | lowest |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for devices in dict.fromkeys(line["devices"] for line in lines):
        for way in (TOKEN, CLOCKS):
            there = [line for line in lines if line["devices"] == devices and line["way"] == way]
            if there:
                share = "1 | 1"
                if way == CLOCKS:
                    ratios = np.array([line["objective"] / line["token"] for line in there])
                    share = f"{mean_and_error(ratios)} | {min(ratios):.3f}"
                sent, series = (float(np.mean([line[key] for line in there])) for key in ("sent", "series"))
                print(
                    f"| {devices:,} | {len(there)} | {way} | {sent:,.0f} | {series:,.0f} | {SECONDS * series:,.0f} s | {share} |"
                )


def show_losses(lines: list[Line]) -> None:
    """Each loss beside none, on the networks that have both."""
    lossless = {line["network"]: line for line in lines if line["loss"] == 0.0}
    print("\n| lost | networks | messages | growth | predicted | time | objective | lowest |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for loss in dict.fromkeys(line["loss"] for line in lines):
        there = [line for line in lines if line["loss"] == loss and line["network"] in lossless]
        beside = [lossless[line["network"]] for line in there]
        if not there:
            continue
        sent, series = (float(np.mean([line[key] for line in there])) for key in ("sent", "series"))
        growth = sent / float(np.mean([line["sent"] for line in beside]))
        ratios = np.array([line["objective"] / other["objective"] for line, other in zip(there, beside, strict=True)])
        predicted = (1 / (1 - loss) ** 2 + 1 / (1 - loss)) / 2
        print(
            f"| {loss:.0%} | {len(there)} | {sent:,.0f} | {growth:.2f} | {predicted:.2f} | {SECONDS * series:,.0f} s | "
            f"{mean_and_error(ratios)} | {min(ratios):.3f} |"
        )


def mean_and_error(ratios: NDArray[np.float64]) -> str:
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
    return f"{np.mean(ratios):.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="25x20,100x8", help="devices x networks")
    parser.add_argument("--links", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--first", type=int, default=6000)
    parser.add_argument("--losses", default="0,0.1,0.2,0.3")
    parser.add_argument("--lossy", type=int, default=10, help="networks of 25 devices for the second table")
    parser.add_argument("--token", type=int, default=1, help="networks on which devices also hand a token round")
    parser.add_argument("--token-up-to", type=int, default=100, help="most devices that also hand a token round")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lines", type=Path, help="file of results; those that it has are not measured again")
    parser.add_argument("--show", action="store_true", help="tables of what --lines has, nothing else")
    chosen = parser.parse_args()
    lines = measure(one_run, list(tasks_of(chosen)), chosen.jobs, chosen.lines, chosen.show)
    print(f"{chosen.links} links, {chosen.messages} messages a device and link, networks from {chosen.first} on")
    show_sizes([line for line in lines if line["way"] != RADIO])
    show_losses([line for line in lines if line["way"] == RADIO])


if __name__ == "__main__":
    main()
