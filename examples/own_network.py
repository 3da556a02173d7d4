"""A network of one's own: three phones, two of which trust each other with everything."""

import numpy as np

from d2dfl import Network, discover, preset

counts = np.array([[90, 10, 0], [0, 20, 80], [10, 60, 30]])
trust = np.ones((3, 3, 3))  # [receiver, transmitter, partition]
trust[0, 2] = [0, 1, 1]  # device 2 keeps partition 0 from device 0
trust[2, 0] = 0  # device 0 does not trust device 2 at all
drop = np.array([[0.0, 0.05, 0.10], [0.05, 0.0, 0.20], [0.10, 0.20, 0.0]])  # [receiver, transmitter]

network = Network.from_arrays(counts=counts, threshold=np.full((3, 3), 30), trust=trust, drop=drop)
result = discover(network, preset("best"), seed=0)
for (transmitter, receiver), amount in zip(
    result.graph.edges, result.graph.to_dict()["expected_datapoints"], strict=True
):
    print(f"{transmitter} sends {np.round(amount, 1)} to {receiver}")
print("before", counts.tolist())
print("after ", np.round(result.evaluation.counts_after, 1).tolist())
