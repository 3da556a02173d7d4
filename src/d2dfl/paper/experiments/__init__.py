"""The paper's figures and tables, a script each, and its numbers in expected.toml.

A script is called as its row is on the command line (`curve-semi` is `curve_semi.py`), so that a row is found by its name; a folder
of curves would need a second list of names.
"""
