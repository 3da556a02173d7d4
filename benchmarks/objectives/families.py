"""The candidates with their few parameters: family -> parameters -> measure."""

from collections.abc import Mapping

from objectives.measures import (
    Array,
    ByDevice,
    Known,
    Measure,
    by_data,
    chi_squared,
    coverage,
    cross_entropy,
    divergence,
    energy,
    gradients,
    imagined,
    kept,
    kernel,
    labels_above,
    mean,
    pairs_anywhere,
    pairs_here,
    rehearsed,
    root,
    saturating,
    shares,
    total_variation,
    wasserstein,
    with_pairs,
    worst,
)

TODAY = "total variation, mean of devices"
OTHERS = "total variation"
WIDTHS = (0.1, 0.2, 0.4, 1.0, float("inf"))  # inf: all pairs count alike
RETURNS = (1.0, 0.5, -0.1, -0.3)

_BY_DEVICE: Mapping[str, Mapping[str, ByDevice]] = {
    OTHERS: {"": total_variation},
    "Jensen-Shannon": {"distance": root(divergence), "divergence": divergence},
    "Wasserstein, labels on a line": {"": wasserstein},
    "chi squared": {"distance": root(chi_squared), "squared": chi_squared},
    "cross-entropy": {f"floor {floor:g}": cross_entropy(floor) for floor in (0.01, 0.03, 0.1, 0.3)},
    "labels above a threshold": {f"{least:g} of i.i.d.": labels_above(least) for least in (0.1, 0.3, 0.5, 0.9)},
    "labels, diminishing": {
        **{f"power {power:g}": coverage(power) for power in (0.25, 0.5, 0.75)},
        **{f"unit {unit:g}": saturating(unit) for unit in (0.1, 0.3, 1.0)},
    },
    "energy distance of features": {
        f"power {power:g}, {what}{', root' * rooted}": root(energy(power, spread)) if rooted else energy(power, spread)
        for power in (0.5, 1.0, 1.5)
        for spread, what in ((False, "means"), (True, "datapoints"))
        for rooted in (False, True)
    },
    "kernel distance of features": {
        f"width {width:g}{', root' * rooted}": root(kernel(width)) if rooted else kernel(width)
        for width in (0.3, 0.6, 1.2)
        for rooted in (False, True)
    },
    "gradient disagreement": {
        f"width {width:g}{', root' * rooted}": root(gradients(width)) if rooted else gradients(width)
        for width in (0.5, 1.0, float("inf"))
        for rooted in (False, True)
    },
    "pairs at a device": {
        f"width {width:g}, returns {power:g}, {distance}": pairs_here(width, power, distance)
        for width in WIDTHS
        for power in RETURNS
        for distance in ("means", "spread")
        if distance == "means" or width < 2
    },
}


_WHOLE: Mapping[str, Mapping[str, Measure]] = {
    "pairs anywhere": {
        f"width {width:g}, returns {power:g}, {distance}": pairs_anywhere(width, power, distance)
        for width in WIDTHS
        for power in (*RETURNS, -0.03, -1.0)
        for distance in ("means", "spread")
        if distance == "means" or width < 2
    },
    "total variation and pairs anywhere": {
        f"{part:g} pairs, width {width:g}": with_pairs(part, width)
        for part in (0.1, 0.3, 1.0)
        for width in (0.2, float("inf"))
    },
    "datapoints kept": {"": kept},
    "imagined least squares": {
        f"pull {pull:g}, {rounds} rounds": imagined(pull, rounds) for pull in (0.3, 1.0, 3.0) for rounds in (1, 10)
    },
    "rehearsed softmax regression": {
        f"rate {rate:g}, {rounds} rounds": rehearsed(rate, rounds) for rate, rounds in ((0.5, 3), (0.5, 10))
    },
}
AGGREGATES = {"mean": mean, "by data": by_data, "worst": worst}


def families() -> dict[str, list[str]]:
    """Parameters of every family; what devices are worth is a mean, a mean by datapoints, or that of the worst quarter."""
    found = {name: [_both(text, how) for text in kinds for how in AGGREGATES] for name, kinds in _BY_DEVICE.items()}
    return {TODAY: ["mean"], **found, **{name: list(kinds) for name, kinds in _WHOLE.items()}}


def values_of(counts: Array, known: Known) -> dict[tuple[str, str], Array]:
    """(family, parameters) -> [graph] every candidate."""
    share, found = shares(counts), {}
    for name, kinds in _BY_DEVICE.items():
        for text, of in kinds.items():
            by_device = of(share, known)
            for how, aggregate in AGGREGATES.items():
                found[name, _both(text, how)] = aggregate(lambda _shares, _known, here=by_device: here)(counts, known)
    for name, whole in _WHOLE.items():
        for text, measure in whole.items():
            found[name, text] = measure(counts, known)
    found[TODAY, "mean"] = found[OTHERS, "mean"]
    return found


def _both(text: str, how: str) -> str:
    return f"{text}{', ' * bool(text)}{how}"


def optimised() -> dict[str, tuple[Measure, float]]:
    """What graphs of the study are optimised for, and with which sign: those that the measure calls bad are needed, too."""
    pairs = {
        "pairs here, alike": mean(pairs_here(0.2, 0.5)),
        "pairs anywhere, alike": pairs_anywhere(0.2, -0.1),
        "pairs anywhere, all": pairs_anywhere(float("inf"), -0.1),
        "energy": mean(energy(1.0, False)),
        "labels, diminishing": mean(coverage(0.5)),
        "cross-entropy": mean(cross_entropy(0.03)),
        "Jensen-Shannon": mean(root(divergence)),
        OTHERS: mean(total_variation),
        "total variation and pairs": with_pairs(0.3, 0.2),
    }
    found = {name: (measure, 1.0) for name, measure in pairs.items()}
    found["least pairs anywhere, alike"] = (pairs["pairs anywhere, alike"], -1.0)
    return found
