"""Speed of the paper's learner: compiled against vectorised NumPy and a plain Python loop, in one run, on one core.

At full mesh with 2,500 devices also against compiled code that recomputes every softmax row.

    python benchmarks/speed.py
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from d2dfl import Network, preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.game.tables import reweigh, rules_of, tables_of
from d2dfl.discovery.methods import qlearning
from d2dfl.rng import device_keys
from plain import numpy_loop, python_loop

TEMPERATURE = 0.1
REPEATS = 5


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median time over some repeats."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


@njit(cache=True)
def whole_rows(
    board: Any, terms: Any, rules: Any, tables: Any, work: Any, keys: Any, steps: Any, temperature: Any
) -> None:
    """The same learner, but each device-step sums its whole softmax row."""
    devices, slots = board.candidates.shape
    actions = tables.weight.shape[1]
    total, visits = tables.total, tables.visits
    row = np.empty(actions)
    chosen = np.empty(devices, np.int64)
    for step in range(steps):
        for device in range(devices):
            mass = 0.0
            for action in range(actions):
                row[action] = np.exp(total[device, action] / max(visits[device, action], 1) / temperature)
                mass += row[action]
            left = uniform(keys[device], step) * mass
            pick = actions - 1
            for action in range(actions):
                left -= row[action]
                if left < 0.0:
                    pick = action
                    break
            chosen[device] = pick
            work.slot[device] = pick if pick < slots else -1
            work.drop[device] = board.drop[device, pick] if pick < slots else 0.0
        play_round(board, terms, work, board.gauss)
        for device in range(devices):
            total[device, chosen[device]] += work.reward[device]
            visits[device, chosen[device]] += 1


def small(devices: int = 25, steps: int = 5000) -> None:
    config = preset("best").with_(**{"network.devices": devices, "qlearning.steps": steps})
    network = Network.generate(config, 0)
    terms, keys = Terms.of(config.reward), device_keys(0, "speed", devices=devices)
    board, rules = board_of(network, terms), rules_of(config.qlearning)

    def compiled(last: int = steps) -> Any:
        tables, work = tables_of(board, config.qlearning, keys, True), round_of(board, terms)
        reweigh(board, rules, tables, TEMPERATURE)
        qlearning.train(board, terms, rules, tables, work, keys, 0, last, TEMPERATURE)
        return work.slot.tolist()

    compiled()
    for loop in (numpy_loop, python_loop):
        last = loop(network, config, keys, 600, TEMPERATURE)[-1]
        same = compiled(600) == [action if action < network.slots else -1 for action in last]
        print(f"  {loop.__name__}: same actions as the compiled learner after 600 steps: {same}")
    ours = seconds(compiled)
    theirs = {"NumPy": seconds(lambda: numpy_loop(network, config, keys, steps, TEMPERATURE), 3)}
    theirs["Python loop"] = seconds(lambda: python_loop(network, config, keys, steps, TEMPERATURE), 1)
    print(f"  compiled {1e3 * ours:.1f} ms")
    for name, value in theirs.items():
        print(f"  {name} {1e3 * value:.0f} ms = {value / ours:.1f} x")


def mesh(devices: int = 2500, steps: int = 5000, sample: int = 20) -> None:
    config = preset("best").with_(
        **{
            "network.devices": devices,
            "channel.slots": devices - 1,
            "qlearning.steps": steps,
            "qlearning.untried": "zero",
        }
    )
    network = Network.generate(config, 0)
    terms, keys = Terms.of(config.reward), device_keys(0, "speed", devices=devices)
    board, rules = board_of(network, terms), rules_of(config.qlearning)
    tables, work = tables_of(board, config.qlearning, keys, True), round_of(board, terms)
    reweigh(board, rules, tables, TEMPERATURE)
    qlearning.train(board, terms, rules, tables, work, keys, 0, 1, TEMPERATURE)
    ours = seconds(lambda: qlearning.train(board, terms, rules, tables, work, keys, 1, steps, TEMPERATURE), 1)
    tables = tables_of(board, config.qlearning, keys, True)
    whole_rows(board, terms, rules, tables, work, keys, 1, TEMPERATURE)
    rows = seconds(lambda: whole_rows(board, terms, rules, tables, work, keys, sample, TEMPERATURE), 1) * steps / sample
    print(
        f"  block sums {ours:.1f} s; whole rows {rows:.0f} s ({sample} steps measured, scaled to {steps}) = {rows / ours:.0f} x"
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("25 devices, 10 partitions, full mesh, 5,000 steps, compiled code warm (targets: 5 x NumPy, 20 x Python)")
    small()
    print("2,500 devices, full mesh, 5,000 steps (target: 10 x)")
    mesh()


if __name__ == "__main__":
    main()
