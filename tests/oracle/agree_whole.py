"""The exchange in whole datapoints: amounts, conservation and thresholds, package against `whole.py` (R19 to R22)."""

from collections import Counter
from fractions import Fraction

import numpy as np

from d2dfl.discovery.evaluation import graph_of
from d2dfl.transfer import KEEPING, ExchangeResult, exchange
from oracle.agree_labelled import draw_case, draw_links, network_of, slots_of
from oracle.labelled import Labelled, step
from oracle.whole import whole_datapoints


def check(seed: int) -> None:
    draws = np.random.default_rng([7, seed])
    case, hears = draw_case(draws)
    Y = draw_links(draws, hears)
    network = network_of(case, hears)
    graph = graph_of(network, slots_of(network, Y), case.threshold_rule == "over-ask")
    label_of, holdings = _deal(draws, case)
    keep = KEEPING[int(draws.integers(len(KEEPING)))]
    lossy, attempts = bool(draws.random() < 0.8), int(draws.integers(1, 4))
    threshold = np.array(case.b, dtype=float)
    found = exchange(graph, holdings, label_of, threshold, seed=seed, keep=keep, lossy=lossy, attempts=attempts)
    _check_amounts(case, Y, found, label_of)
    _check_ownership(case, found, holdings, keep, lossy, attempts)


def _deal(draws: np.random.Generator, case: Labelled) -> tuple[np.ndarray, list[np.ndarray]]:
    """Numbered datapoints for everybody's counts, in random order."""
    labels, owners = [], []
    for i in case.devices:
        for label in case.labels:
            labels += [label] * int(case.D[i][label])
            owners += [i] * int(case.D[i][label])
    order = draws.permutation(len(labels))
    label_of, owner = np.array(labels)[order], np.array(owners)[order]
    return label_of, [np.nonzero(owner == i)[0] for i in case.devices]


def _check_amounts(case: Labelled, Y: list[int | None], found: ExchangeResult, label_of: np.ndarray) -> None:
    """Every link sends what floor plus largest remainder gives it."""
    U = step(case, Y).U
    sent = {one.receiver: Counter(label_of[one.sent].tolist()) for one in found.transfers}
    for j in case.devices:
        asking = [i for i in case.devices if Y[i] == j]
        for label in case.labels:
            surplus = max(Fraction(0), case.D[j][label] - case.b[j][label])
            # The package's shares are floats: two remainders that are this near are equal.
            shares = [U[i][label].limit_denominator(10**9) for i in asking]
            bounds = whole_datapoints(shares, surplus)
            got = [sent[i][label] if i in sent else 0 for i in asking]
            for i, amount, (fewest, most) in zip([*asking, "all"], [*got, sum(got)], bounds, strict=True):
                assert fewest <= amount <= most, (
                    f"{j} sends {i} {amount} of label {label}, the oracle {fewest} to {most}"
                )
            assert sum(got) <= surplus, f"{j} sends {sum(got)} of label {label} and can spare {float(surplus):.3f}"


def _check_ownership(
    case: Labelled,
    found: ExchangeResult,
    holdings: list[np.ndarray],
    keep: str,
    lossy: bool,
    attempts: int,
) -> None:
    """Nothing appears and nothing vanishes: R20 and R21, one datapoint after the other."""
    gone: Counter[int] = Counter()
    held = [Counter(points.tolist()) for points in holdings]
    for one in found.transfers:
        sent, arrived = Counter(one.sent.tolist()), Counter(one.arrived.tolist())
        assert not arrived - sent, "something arrived that was never sent"
        assert not sent - Counter(holdings[one.transmitter].tolist()), "somebody sent what it did not hold"
        assert len(one.sent) <= one.transmissions <= attempts * len(one.sent), "transmissions do not fit what was sent"
        lost = sent - arrived
        if not lossy:
            assert not lost, "a perfect link lost something"
            assert one.transmissions == len(one.sent), "a perfect link sent something twice"
        held[one.receiver] += arrived
        if keep == "delete":
            held[one.transmitter] -= sent
            gone += lost
        elif keep == "acknowledged":
            held[one.transmitter] -= arrived
    assert Counter(found.lost.tolist()) == gone, "the lost are not those that nobody holds"
    for i in case.devices:
        assert Counter(found.holdings[i].tolist()) == held[i], f"device {i} holds something else than it should"
    if keep != "copy":
        before = sum((Counter(points.tolist()) for points in holdings), Counter())
        after = sum((Counter(points.tolist()) for points in found.holdings), Counter(found.lost.tolist()))
        assert before == after, "held and lost together are not what was there before"
