"""Slow, plain computations of the paper, written from its text and our readings before the package's code was looked at.

None of the modules named after a part of the paper imports d2dfl, and none is fast: they are to be read beside the paper.
`agree_*.py` draw random cases and hold the package against them; `python benchmarks/oracle.py` does so at length.

Text and readings leave some things open. These were settled afterwards as the package does them, so agreement proves nothing
there: a chosen link over which nothing moves costs its loss in a step but not in a finished graph; the traces of R10 are of
regularised covariances; a sum of shares is rounded to the nearest whole datapoint; an average inside a subset is an
aggregation to the momentum; the mean D2D distance is over links that exist; an untried action is worth 1 if optimistic.
"""
