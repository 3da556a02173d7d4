"""The command line, called in this process."""

import sys

import pytest

from d2dfl.cli import app as cli

SMALL = ["--devices", "6", "--partitions", "5", "--set", "optimum.starts=1", "--set", "optimum.sweeps=20"]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of `d2dfl` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["d2dfl", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    code = caught.value.code
    return 0 if code is None else int(code)
