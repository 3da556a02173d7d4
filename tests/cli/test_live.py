"""--live on the command line: refused at once where it cannot be, a browser where there is one, a display where there is none."""

import importlib.util
import os
import pty
import stat
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from calling import call

from d2dfl.cli.live_display import rendered
from d2dfl.cli.output import console
from d2dfl.live.stand import Stand
from d2dfl.live.views import DiscoveryView


def test_placeholder() -> None:
    assert rendered(DiscoveryView(Stand())) is not None
