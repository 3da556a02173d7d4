"""Slow, plain computations of the paper, written from its text and our readings before the package's code was looked at.

None of the modules named after a part of the paper imports d2dfl, and none is fast: they are to be read beside the paper.
`agree_*.py` draw random cases and hold the package against them; `python benchmarks/oracle.py` does so at length.
"""
