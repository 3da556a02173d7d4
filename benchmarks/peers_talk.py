"""Peers that look for their graph: what they find beside `discover`, with how many messages, in which time at 20 ms a message.

    python benchmarks/peers_talk.py --networks 20 --devices 25 --links 5 --messages 200
    python benchmarks/peers_talk.py --sizes 5,10,25,50 --networks 2

Whole peers on a virtual clock (d2dfl.peer.simulator.talking): real frames, typed and numbered; keys and boxes are stand-ins, as
this is not about their speed. First table: networks one by one, at once and with a token. The token's graph must be the one of `discover`,
link for link, and its messages those that `discover` charges. Second table: time by the number of devices.
"""

import argparse
import math
import sys

import numpy as np

from d2dfl import Config, Network, discover, preset
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.peer.simulator.talking import Talking, full_mesh

TAKES_S = 0.02


def settings(devices: int, links: int, messages: int) -> Config:
    changes = {"network.devices": devices, "discovery.edges": links, "marginal.messages": messages}
    return preset("best").with_(**changes)


def objective(fleet: Talking) -> float:
    devices = [talk.attempt.device for talk in fleet.talks if talk.attempt is not None]
    slots = np.array([[link.slot if link else -1 for link in one.holdings.links] for one in devices], dtype=np.int32)
    graph = graph_of(fleet.network, slots, fleet.config.reward.over_ask)
    return evaluate(fleet.network, graph, fleet.config.reward).objective


def talked(network: Network, config: Config, seed: int, at_once: bool) -> tuple[Talking, float]:
    """A fleet that has found its graph, and how long that took from the beginning of the attempt."""
    fleet = Talking(network, config, seed, at_once, TAKES_S)
    fleet.found()
    return fleet, max(talk.ended_s for talk in fleet.talks) - min(talk.began_s for talk in fleet.talks)


def one_network(config: Config, seed: int, token: bool) -> dict[str, float]:
    network = full_mesh(Network.generate(config, seed))
    found: Discovery = discover(network, config, seed=seed)
    fleet, seconds = talked(network, config, seed, True)
    row = {
        "share": objective(fleet) / found.evaluation.objective,
        "messages": fleet.said().total(),
        "beside": fleet.messages()["acknowledgements"] + fleet.messages()["repeats"],
        "seconds": seconds,
        "same": math.nan,
        "charged": found.messages,
        "token_seconds": math.nan,
    }
    if token:
        other, row["token_seconds"] = talked(network, config, seed, False)
        same = other.edges() == {(int(giver), int(taker)) for giver, taker in found.graph.edges}
        row["same"] = float(same and other.said().total() == found.messages)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--first", type=int, default=9000, help="seed of the first network")
    parser.add_argument("--devices", type=int, default=25)
    parser.add_argument("--sizes", default="", help="a table by number of devices instead, such as 5,10,25,50")
    parser.add_argument("--links", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--no-token", action="store_true")
    options = parser.parse_args()
    print(
        "| devices | objective, share of discover's | messages | acknowledgements, repeats | at once | token | token: same graph, same messages |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for devices in [int(text) for text in options.sizes.split(",") if text] or [options.devices]:
        config = settings(devices, options.links, options.messages)
        seeds = range(options.first, options.first + options.networks)
        rows = []
        for seed in seeds:
            rows.append(one_network(config, seed, not options.no_token))
            print(
                f"network {seed}: share {rows[-1]['share']:.4f}, {rows[-1]['seconds']:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        worst = min(row["share"] for row in rows)
        print(
            f"| {devices} | {mean['share']:.4f} (least {worst:.4f}) | {mean['messages']:,.0f} | {mean['beside']:,.0f} | "
            f"{mean['seconds']:.0f} s | {mean['token_seconds']:.0f} s | {sum(row['same'] for row in rows):.0f} of {len(rows)} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
