"""Our federation engine beside other frameworks: `python benchmarks/frameworks/run.py`."""
