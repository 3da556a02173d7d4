"""A comparison that takes a second."""

COMPARE = [
    "compare",
    *("--methods", "closest", "--seeds", "1", "--devices", "4", "--rounds", "1"),
    *("--set", "data.samples=20", "--set", "federation.interval=1"),
]
