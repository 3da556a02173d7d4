"""A map on which links come and go: places and bends are found once, so that nothing jumps from moment to moment."""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from d2dfl.experiment.findings.maps import map_of
from d2dfl.live.stand import Kind
from d2dfl.network import Network
from d2dfl.report.drawing.labels import level_texts, link_cuts
from d2dfl.report.drawing.map_stage import layer_links, map_stage
from d2dfl.report.drawing.scene import Arrows, Stage
from d2dfl.report.findings import Layer, Map
from d2dfl.report.look import Colours
from d2dfl.report.page.map_data import WIDTH, layer_data, map_data

PLACES_S = 0.001  # that the first drawing takes for each device: places, names and bends are found
AGAIN = 0.4  # of that, when places are found


def first_map(devices: int, share: float | None = None, placed: bool = False) -> Kind:
    """How a map is drawn that nobody has seen yet; `placed`: one where devices stand as on another that was drawn before."""
    return Kind(share, devices * PLACES_S * (AGAIN if placed else 1.0), 1.0 if placed else AGAIN, _load)


def _load() -> None:
    import_module("scipy.spatial")  # who is near whom; a tenth of a second


class LivingMap:
    """Devices where they stand, for graphs that change."""

    def __init__(self, record: Callable[[], Map]) -> None:
        self._record = record
        self._bows: dict[tuple[int, int], float] = {}
        self._base: dict[str, Any] | None = None

    @classmethod
    def of(cls, title: str, network: Network) -> "LivingMap":
        return cls(lambda: map_of(title, network, ()))

    @cached_property
    def item(self) -> Map:
        """The record of the map, without a graph."""
        return self._record()

    @cached_property
    def stage(self) -> Stage:
        """Places of devices and of their names: found when somebody first looks."""
        return map_stage(self.item, WIDTH)

    @property
    def base(self) -> dict[str, Any]:
        """The map without a graph, and what its legend says."""
        if self._base is None:
            data, said = map_data(self.item, {}, self.stage)
            number = len(self.item.partitions)
            self._base = {**data, "keys": {"levels": level_texts(link_cuts(number), number), "said": said}}
        return self._base

    def layer(self, layer: Layer, colours: Colours) -> dict[str, Any]:
        """One graph on the map."""
        return layer_data(layer, self.item, self.stage, self._arrows(layer), colours)

    def _arrows(self, layer: Layer) -> Arrows:
        """The links of a layer, each bent as when it was first seen."""
        strangers = [link for link in layer.links if (link.transmitter, link.receiver) not in self._bows]
        if strangers:
            new = Layer("", "", (), (), tuple(strangers))
            bent = layer_links(new, len(self.item.partitions), self.stage, 1.0)
            for link, bow in zip(strangers, bent.bow, strict=True):
                self._bows[link.transmitter, link.receiver] = float(bow)
        ends = [(link.transmitter, link.receiver) for link in layer.links]
        pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        amounts = np.array([link.amounts for link in layer.links]).reshape(len(ends), len(self.item.partitions))
        return Arrows(
            sender=pairs[:, 0],
            receiver=pairs[:, 1],
            trusted=np.array([link.trusted for link in layer.links], dtype=np.int64),
            amount=amounts,
            drop=np.array([link.loss for link in layer.links], dtype=np.float64),
            width=np.ones(len(ends)),  # the script finds widths by what is shown beside
            bow=np.array([self._bows[end] for end in ends], dtype=np.float64),
        )
