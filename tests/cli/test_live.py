"""--live on the command line: refused at once where it cannot be, a browser where there is one, a display where there is none."""

import importlib.util
import os
import select
import signal
import stat
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from rich.console import Console

from calling import call
from d2dfl import Network, discover, preset
from d2dfl.discovery.trace import Trace

PATIENCE = 300.0  # seconds, for a command that compiles first
COMMANDS = (
    ["compare", "--live"],
    ["run", "--live"],
    ["discover", "--live"],
    ["reproduce", "edges", "--live"],
    ["fleet", "demo", "--live"],
)


@pytest.mark.parametrize("arguments", [*COMMANDS, ["replay", "nowhere"]])
def test_without_the_extra_it_is_one_sentence_before_anything_is_done(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def lacking(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "uvicorn" else found(name, package)

    monkeypatch.setattr("d2dfl.cli.commands.watching.find_spec", lacking)
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said == "d2dfl: a live page needs the package uvicorn: install it with pip install 'd2dfl[live]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--stay", "--no-browser"])
@pytest.mark.parametrize("arguments", COMMANDS)
def test_how_it_is_shown_needs_that_it_is(
    arguments: list[str],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments[:-1], option) == 2
    assert capsys.readouterr().err == f"d2dfl: {option} says how --live is shown: give --live, too\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_replayed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")
    assert call(monkeypatch, "replay", str(tmp_path)) == 2
    assert "is not a run folder" in capsys.readouterr().err


def environment(**more: str) -> dict[str, str]:
    without = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    clean = {name: value for name, value in os.environ.items() if name not in without}
    return {**clean, "OMP_NUM_THREADS": "1", **more}


DISCOVER = [sys.executable, "-m", "d2dfl", "discover", "--devices", "6", "--live"]


def test_a_browser_is_opened_where_there_is_one(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")
    program = tmp_path / "looks.sh"  # looks at the page as soon as it is told of it, and takes the stream to its end
    program.write_text(
        f'#!/bin/sh\n{sys.executable} -c "import sys, urllib.request as r;'
        " open('seen', 'wb').write(r.urlopen(sys.argv[1] + 'events', timeout=300).read())\" \"$1\" &\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        DISCOVER,
        cwd=tmp_path,
        env=environment(BROWSER=f"{program} %s"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "live, in the browser: http://127.0.0.1:" in done.stderr
    file, end = tmp_path / "seen", time.monotonic() + PATIENCE
    while not (file.exists() and b"event: end" in file.read_bytes()) and time.monotonic() < end:
        time.sleep(0.1)
    seen = file.read_text()
    assert seen.count("event: end") == 1
    for name in ("head", "negotiation", "discoveries", "traces", "table"):
        assert f'"name":"{name}"' in seen, name
    assert '"name":"graphs"' not in seen  # the only one is the last moment of its discovery


def test_without_a_browser_it_says_so_and_a_terminal_shows_it(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")
    main, terminal = os.openpty()
    process = subprocess.Popen(
        [*DISCOVER, "--set", "marginal.messages=20000"],
        cwd=tmp_path,
        env=environment(TERM="xterm-256color", COLUMNS="120"),
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    said, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ready, _, _ = select.select([main], [], [], 1.0)
        try:
            part = os.read(main, 65536) if ready else b""
        except OSError:  # the other end is closed: it has ended
            break
        said += part
        if not part and process.poll() is not None:
            break
    os.close(main)
    assert process.wait(PATIENCE) == 0
    text = said.decode(errors="replace")
    assert "there is no browser here; it is shown here instead" in text
    assert "discover: Marginal (ours)" in text
    assert "messages a device" in text


def test_the_display_shows_objective_links_and_temperature() -> None:
    from d2dfl.cli.live.display import rendered
    from d2dfl.live.stand import Stand
    from d2dfl.live.views import DiscoveryView

    view = DiscoveryView(Stand())
    config = preset("best").with_(**{"network.devices": 6})
    view.begin(config, ())
    trace = Trace(lambda: view.negotiate(trace))
    found = discover(Network.generate(config, 0), config, trace=trace)
    view.step("discover: marginal", 0.5)
    screen = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115  # closed with the test
    screen.print(rendered(view))
    screen.file.close()
    text = screen.export_text()
    assert "discover: marginal" in text
    assert "50 %" in text
    assert f"objective {found.evaluation.objective:.4f}" in text
    assert f"temperature {trace.moments[-1].temperature:.4f}" in text


def test_ctrl_c_after_a_run_ends_the_page_and_says_nothing_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While browsers are given the last records, all is measured and kept."""
    pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("d2dfl.live.server.LiveServer.end", interrupted)
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "discover", "--devices", "6", "--live", "--no-browser", "--out", "run") == 0
    assert "stopped" not in capsys.readouterr().err
    assert (tmp_path / "run" / "run.json").exists()


def test_a_replay_ends_with_ctrl_c(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")
    plain = [sys.executable, "-m", "d2dfl"]
    made = [*plain, "discover", "--devices", "6", "--out", "run"]
    subprocess.run(made, cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=PATIENCE)
    process = subprocess.Popen(
        [*plain, "replay", "run", "--no-browser"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.readline() + process.stderr.readline()
    assert "live: http://127.0.0.1:" in said
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    process.stderr.close()
