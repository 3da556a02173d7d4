"""One SQLite file a peer: datapoints, transfers, quotas, audit. What is not in it has not happened."""
