"""Partitions: what a device does with its data before it talks to others, and what it must tell them for that."""
