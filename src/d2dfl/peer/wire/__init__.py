"""What crosses the network: typed messages, in frames that their sender signed."""
