"""What the record of a map keeps of a graph."""

import pytest

from d2dfl import Network, discover, preset
from d2dfl.experiment.findings.maps import layer_of


def test_amounts_of_links_add_up_to_what_is_said_to_move() -> None:
    """In tenths they did not: where devices hold little, the page said 1.4 % less than the picture beside it."""
    config = preset("best").with_(**{"network.devices": 25, "network.samples_per_device": 5})
    network = Network.generate(config, seed=0)
    found = discover(network, config, seed=0)
    recorded = sum(sum(link.amounts) for link in layer_of("", found).links)
    assert recorded == pytest.approx(found.evaluation.datapoints_moved, abs=0.05)
