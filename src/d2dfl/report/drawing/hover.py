"""What devices and links of a map say to the pointer."""

from html import escape

import numpy as np

from d2dfl.report.drawing.scene import Scene

LINES = 20  # partitions and peers that a hover box names


def for_plotly(text: str) -> str:
    """Text as plotly shows it unchanged: it knows some markup, but no word for a quotation mark."""
    return escape(text, quote=False)


def device_words(scene: Scene) -> list[str]:
    network, links, result = scene.network, scene.links, scene.evaluation
    names = _device_names(scene)
    peers: list[list[str]] = [[] for _ in range(network.devices)]
    moved = links.amount.sum(axis=1)
    for sender, receiver, amount, drop in zip(links.sender, links.receiver, moved, links.drop, strict=True):
        arrive = _number(amount * (1 - drop))
        peers[receiver].append(f"device {names[sender]} sends it {_number(amount)} ({arrive} expected to arrive)")
        peers[sender].append(f"it sends {_number(amount)} to device {names[receiver]}")
    texts = []
    for device, counts in enumerate(
        np.stack([network.counts, result.counts_after, network.threshold], axis=2).tolist()
    ):
        head = [
            f"<b>Device {names[device]}</b>, cluster C{network.cluster[device]}",
            f"{result.labels_satisfied[device]} of {network.partitions} labels satisfied",
        ]
        held = [
            f"{for_plotly(network.partition_name(index))}: {_number(before)} → {_number(after)} (wants {_number(wanted)})"
            for index, (before, after, wanted) in enumerate(counts)
            if before > 0 or after > 0
        ]
        texts.append("<br>".join([*head, *_some(sorted(peers[device])), *_some(held)]))
    return texts


def _device_names(scene: Scene) -> list[str]:
    return [for_plotly(scene.network.device_name(device)) for device in range(scene.network.devices)]


def link_words(scene: Scene) -> list[str]:
    links, partitions, names = scene.links, scene.network.partitions, _device_names(scene)
    texts = []
    for sender, receiver, trusted, amounts, drop in zip(
        links.sender, links.receiver, links.trusted, links.amount.tolist(), links.drop, strict=True
    ):
        head = [
            f"<b>Device {names[sender]} → device {names[receiver]}</b>",
            f"loss probability {drop:.1%}, {trusted} of {partitions} partitions trusted",
            f"{_number(sum(amounts))} datapoints",
        ]
        parts = [
            f"{for_plotly(scene.network.partition_name(index))}: {_number(amount)}"
            for index, amount in enumerate(amounts)
            if amount > 0
        ]
        texts.append("<br>".join([*head, *_some(parts)]))
    return texts


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], f"… and {len(lines) - LINES + 1} more"]
