"""Nothing in a discovery grows with the square of the devices: what has a row for each device is made a fixed number of times."""

import os
import subprocess
import sys

COUNT = """
from collections import Counter
import numpy as np
from d2dfl import Network, discover, preset

sizes = Counter()

def counted(make):
    def made(*shape, **options):
        array = make(*shape, **options)
        sizes[array.size] += 1
        return array
    return made

for name in ("zeros", "empty", "full", "ones"):
    setattr(np, name, counted(getattr(np, name)))
for devices in (40, 120):
    few = {"network.devices": devices, "channel.slots": 8, "discovery.edges": 2, "marginal.messages": 60}
    network = Network.generate(preset("best").with_(**few), seed=0)
    sizes.clear()
    assert discover(network, preset("best").with_(**few), seed=0).graph.edges
    print(sum(times for size, times in sizes.items() if size >= network.counts.size))
"""


def test_what_has_a_row_for_each_device_is_made_as_often_for_many_devices_as_for_few() -> None:
    """Without the compiler, whose code asks nobody for memory. A table made anew for each device took 100,000 devices four minutes."""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COUNT], env=plain, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    few, many = (int(line) for line in done.stdout.split())
    assert 0 < many <= few
