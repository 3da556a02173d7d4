"""The energy bill of a run, package against `ledger.py`: the same transmissions, charged one by one."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from d2dfl.config import Config, FederationConfig
from d2dfl.config.presets import preset
from d2dfl.discovery.methods.qlearning import cost
from d2dfl.discovery.task import Task
from d2dfl.energy.purposes import PURPOSES
from d2dfl.experiment.cells.values import energy
from d2dfl.federation import Curves
from d2dfl.federation.schemes import SCHEMES, Moment
from d2dfl.network import Network
from oracle import ledger
from oracle.close import same


def check(seed: int) -> None:
    draws = np.random.default_rng([5, seed])
    devices, labels, values, parameters = (
        int(draws.integers(low, high)) for low, high in ((2, 8), (1, 6), (1, 20), (1, 99))
    )
    hears = (draws.random((devices, devices)) < 0.7) & ~np.eye(devices, dtype=bool)
    hears[np.arange(devices), (np.arange(devices) + 1) % devices] = True
    heard = [np.nonzero(row)[0].tolist() for row in hears]
    places = draws.random((devices, 2)) * 500
    P = np.where(draws.random((devices, devices)) < 0.1, 0.999, draws.random((devices, devices)) * 0.6)
    network = Network.from_arrays(
        counts=np.ones((devices, labels)),
        threshold=np.ones((devices, labels)),
        trust=np.ones((devices, devices, labels)),
        drop=np.where(hears, P, 1.0),
        positions=places,
    )
    config = preset("paper").with_(**{"qlearning.steps": int(draws.integers(1, 50))})
    bill = ledger.Bill([(float(x), float(y)) for x, y in places])
    far = ledger.server_distance(bill.x, heard)
    bits = _message_bits(network, config)
    same("bits of all messages", bits, ledger.step_bits(devices, labels, config.qlearning.steps))
    ledger.discovery(bill, heard, P.tolist(), bits)
    up, down = draws.integers(0, 1000, devices).astype(float), draws.integers(0, 1000, devices).astype(float)
    ledger.partition(bill, far, up.tolist(), down.tolist())
    attempts = [(i, int(draws.choice(row)), int(draws.integers(0, 30))) for i, row in enumerate(heard)]
    ledger.datapoints(bill, attempts, values)
    curves = _train(draws, bill, far, parameters, seed)

    transfers = [SimpleNamespace(transmitter=j, receiver=i, transmissions=times) for i, j, times in attempts]
    item: Any = SimpleNamespace(
        setting=SimpleNamespace(
            config=config,
            network=network,
            values=values + 1,
            partitioning=SimpleNamespace(bits=lambda devices, real_bits: (up, down)),
        ),
        exchanged=SimpleNamespace(transfers=transfers),
        discovery=SimpleNamespace(message_bits=bits),
    )
    found = energy(item, curves, parameters)
    for number, purpose in enumerate(PURPOSES):
        true = bill.joules.get(purpose, [0.0] * devices)
        same(f"microjoules for {purpose}", 1e6 * found.spent_j()[:, number], [1e6 * value for value in true])
    same("millijoules of all", 1e3 * found.until(), 1e3 * sum(map(sum, bill.joules.values())))


def _message_bits(network: Network, config: Config) -> float:
    return cost(Task(network, config, 0), config.qlearning.steps)[1]


def _train(draws: np.random.Generator, bill: ledger.Bill, far: float, parameters: int, seed: int) -> Curves:
    """Some rounds of a random scheme without any learning: the package books what it sends, the oracle charges it."""
    devices = len(bill.x)
    name = str(draws.choice(["fedavg", "fedsgd", "decentralised", "semi-decentralised"]))
    settings = FederationConfig(
        scheme=name, interval=int(draws.integers(1, 4)), neighbours=int(draws.choice([2, 7])), subset=3
    )
    weights = draws.integers(1, 50, devices).astype(float)
    late = draws.random(devices) < 0.2 if name in ("fedavg", "fedsgd") else np.zeros(devices, dtype=bool)
    weights[late & (np.arange(devices) > 0)] = 0.0
    curves, scheme = Curves(), SCHEMES[name]
    length = scheme.round_steps(settings)
    everybody = list(range(devices))
    for number in range(int(draws.integers(1, 4))):
        curves.begin_round(devices)
        for step in range(number * length + 1, (number + 1) * length + 1):
            mixing = scheme.mix(Moment(settings, seed, step, weights))
            if mixing is None:
                continue
            curves.book(mixing)
            groups = [np.nonzero(row)[0].tolist() for row in mixing.matrix()]
            if name == "decentralised":
                ledger.among_devices(bill, parameters, groups)
            elif name != "semi-decentralised":
                ledger.through_server(bill, far, parameters, [i for i in everybody if weights[i]])
            else:
                inside = _subsets(settings, seed, weights)
                if step % settings.subset_every == 0:
                    ledger.among_devices(bill, parameters, inside)
                if step % settings.global_every == 0:
                    heads = np.nonzero(mixing.uploads)[0].tolist()
                    assert len(heads) == len({tuple(group) for group in inside}), "not one head for each subset"
                    ledger.through_server(bill, far, parameters, heads)
    return curves


def _subsets(settings: FederationConfig, seed: int, weights: Any) -> list[list[int]]:
    """[device] its subset, read off the mean inside of it."""
    mixing = SCHEMES[settings.scheme].mix(Moment(settings, seed, settings.subset_every, weights))
    assert mixing is not None
    return [np.nonzero(row)[0].tolist() for row in mixing.matrix()]
