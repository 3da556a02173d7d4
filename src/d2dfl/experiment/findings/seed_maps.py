"""The maps of a comparison: the graphs of every seed, what moved over them, and how devices fared."""

from d2dfl.experiment.comparison import Comparison, title_of
from d2dfl.experiment.findings.device_scores import KEY
from d2dfl.experiment.findings.maps import layer_of, map_of, with_exchange
from d2dfl.report.findings import Map

MOST_LINKS = 6000  # of all maps of a page together: some two megabytes


def seed_maps(comparison: Comparison) -> tuple[Map, ...]:
    """One map a seed, as long as a page can hold them."""
    return tuple(_map(comparison, seed) for seed in drawn_seeds(comparison))


def drawn_seeds(comparison: Comparison) -> list[int]:
    """Seeds whose graphs are shown: the first, and others as long as there are not too many links."""
    room, seeds = MOST_LINKS, list[int]()
    for seed in comparison.results.seeds:
        found = [item.discovery for item in comparison.prepared if item.setting.seed == seed and item.discovery]
        room -= sum(len(one.graph.links[0]) for one in found)
        if seeds and room < 0:
            break
        seeds.append(seed)
    return seeds


def _map(comparison: Comparison, seed: int) -> Map:
    """The graphs of one seed, with what moved over them and how devices fared."""
    layers = []
    for item, values in zip(comparison.prepared, comparison.values, strict=True):
        if item.setting.seed == seed and item.discovery is not None:
            layer, moved = layer_of(title_of(item.method), item.discovery), item.exchanged
            if moved is not None:
                of = item.setting.partitioning.partition_of
                # The map paints high scores as good ones: errors of a regression stand in the table and the chart.
                scores = values.get(KEY) or () if values["higher_is_better"] else ()
                layer = with_exchange(layer, item.discovery.network, moved, of, scores)
            layers.append(layer)
    setting = next(item.setting for item in comparison.prepared if item.setting.seed == seed)
    return map_of(f"Seed {seed}", setting.network, layers)
