"""A Flower app whose clients train on what a peer's store holds."""
