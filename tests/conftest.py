"""What many tests share; and what was not tested is said at the end, or fails where all must be."""

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from browser import Tab, browser
from d2dfl import Config, Network, preset

# Ray reads these when it is first imported, whichever test does that: it talks to this machine only, and tells nobody of itself.
os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
# No timed assertions: what is slow to draw on a busy machine is no failure either. Where all tests must run, Hypothesis draws the
# same cases every time, so that a change fails for what it changed; elsewhere cases are new, and one that fails is tried again.
settings.register_profile(
    "d2dfl",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("D2DFL_ALL_TESTS") == "1",
)
settings.load_profile("d2dfl")

RULES = {
    "best": {},
    "best 5%": {"network.threshold": "0.05"},
    "paper": {"discovery.no_link": True},
    "paper over-ask": {"reward.threshold_rule": "over-ask"},
    "paper tolerance": {"reward.threshold_rule": "tolerance", "reward.metric": "jensen-shannon"},
    "strict literal": {"reward.threshold_rule": "strict", "reward.budget_rule": "literal", "reward.gate": 4},
}


def config_of(name: str, **changes: object) -> Config:
    """A small configuration for one set of reward rules."""
    base = preset("paper" if name.startswith(("paper", "strict")) else "best")
    return base.with_(**{"network.devices": 9, "network.partitions": 6, **RULES[name], **changes})


@pytest.fixture(params=list(RULES))
def config(request: pytest.FixtureRequest) -> Config:
    return config_of(request.param)


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(window: Tab) -> Iterator[Tab]:
    """The window; at the end of a test nothing has gone wrong, and nothing but the page was asked for."""
    window.errors.clear()
    window.requests.clear()
    yield window
    assert window.errors == []
    assert [address for address in window.requests if not address.startswith(("file:", "data:", "blob:"))] == []
    window.run("localStorage.clear()")


def random_slots(network: Network, edges: int, seed: int) -> np.ndarray:
    """Random valid links without repetition, some missing."""
    generator = np.random.default_rng(seed)
    slots = np.full((network.devices, edges), -1, dtype=np.int32)
    for device in range(network.devices):
        real = np.nonzero(network.candidates[device] >= 0)[0]
        picks = generator.permutation(real)[:edges]
        slots[device, : len(picks)] = np.where(generator.random(len(picks)) < 0.8, picks, -1)
    return slots


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of a card are left out where there is none: no machine that tests every change has one."""
    marked = [item for item in items if item.get_closest_marker("card")]
    if marked and not has_card():
        items[:] = [item for item in items if item not in marked]
        config.hook.pytest_deselected(items=marked)


def has_card() -> bool:
    """Whether this machine has the card that some code is written for."""
    import torch

    from d2dfl.federation.executors.design import CAPABILITY

    return torch.cuda.is_available() and torch.cuda.get_device_capability() == CAPABILITY


def skipped(config: pytest.Config) -> Counter[str]:
    """Why tests were skipped, and how many for each reason."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("D2DFL_ALL_TESTS") == "1" and skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons = skipped(config)
    if not reasons:
        return
    words = [f"{number} test{'' if number == 1 else 's'} ({reason})" for reason, number in reasons.items()]
    must = os.environ.get("D2DFL_ALL_TESTS") == "1"
    start = "FAILED, since all tests must run; not tested: " if must else "not tested here: "
    terminalreporter.write_line(start + ", ".join(words), red=must, yellow=not must)
