"""The attack on the package that anyone can run: `python benchmarks/attack/run.py`."""
