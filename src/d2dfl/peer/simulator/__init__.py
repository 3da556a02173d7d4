"""Whole fleets in one process, with a clock that is a number and everything that can go wrong drawn from one seed."""
