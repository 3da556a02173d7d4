"""What was measured of a cell, as plain values."""

import numpy as np

from d2dfl.discovery.equations.diversity import BUILT_IN, distances_to
from d2dfl.energy.bill import BeforeTraining, ModelTraffic, bill
from d2dfl.energy.ledger import Ledger, Meter
from d2dfl.energy.radios import RADIOS
from d2dfl.experiment.cells.cell import Values
from d2dfl.experiment.cells.discovery_values import discovery_values
from d2dfl.experiment.pipeline import PreparedCell, TrainedCell
from d2dfl.federation import Curves
from d2dfl.transfer import held_counts


def exchange_values(item: PreparedCell) -> Values:
    """What is known before training starts."""
    truth = item.setting.truth
    before, after = (held_counts(held, truth, int(truth.max()) + 1) for held in (item.setting.holdings, item.holdings))
    population = before.sum(axis=0)
    enough = 0.05 * before.sum(axis=1, keepdims=True)  # R29, for everyone alike whatever threshold it asks by
    values: Values = {
        "labels": (after >= np.maximum(enough, 1)).sum(axis=1).tolist(),
        "before": {metric: float(distances_to(before, population, metric).mean()) for metric in BUILT_IN},
        "after": {metric: float(distances_to(after, population, metric).mean()) for metric in BUILT_IN},
        "moved": item.exchanged.moved if item.exchanged else 0,
        "lost": item.exchanged.dropped if item.exchanged else 0,
        "measures": dict(item.setting.partitioning.measures),
    }
    return values if item.discovery is None else values | discovery_values(item.discovery)


def training_values(done: TrainedCell) -> Values:
    """All of it: the exchange, the curve, and joules with every radio."""
    curves = done.curves
    joules: dict[str, list[float]] = {}
    purposes: dict[str, dict[str, float]] = {}
    for radio in RADIOS:  # one ledger at a time: each has every device in every round
        book = energy(done.item, curves, done.parameters, radio)
        joules[radio], purposes[radio] = [float(book.until(after)) for after in curves.rounds], book.by_purpose()
    return {
        **exchange_values(done.item),
        "score_name": curves.score_name,
        "higher_is_better": curves.higher_is_better,
        "rounds": list(curves.rounds),
        "scores": [float(score) for score in curves.scores],
        "spreads": [float(spread) for spread in curves.spreads],
        "losses": [float(loss) for loss in curves.losses],
        "joules": joules,
        "purposes": purposes,
    }


def energy(item: PreparedCell, curves: Curves, parameters: int, radio: str | None = None) -> Ledger:
    """Joules that the devices spent until the end of the training (R28); None: the configuration's radio."""
    setting = item.setting
    settings = setting.config.energy
    up, down = setting.partitioning.bits(setting.network.devices, setting.config.discovery.real_bits)
    # The yardstick's shuffle is no transmission.
    transfers = item.exchanged.transfers if item.exchanged else ()
    bits = float(setting.values * settings.value_bits)
    before = BeforeTraining(
        partition_up=up,
        partition_down=down,
        discovery=item.discovery.message_bits if item.discovery else 0.0,
        links=np.array([(one.transmitter, one.receiver) for one in transfers], dtype=np.int64),
        datapoints=np.array([bits * one.transmissions for one in transfers], dtype=np.float64),
    )
    size = float(settings.parameter_bits * parameters)
    models = ModelTraffic(size, curves.uploads, curves.downloads, curves.links)
    return bill(Meter.of(setting.network, settings, radio), before, models)
