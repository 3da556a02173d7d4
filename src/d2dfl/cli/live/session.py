"""What --live and `replay` do: a server while something runs, a browser where there is one, else a display in the terminal."""

import os
import shlex
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.live.display import terminal_display
from d2dfl.cli.output import console, say
from d2dfl.live.page import live_page
from d2dfl.live.server import LiveServer, served
from d2dfl.live.stand import ELSEWHERE, Stand, since_now
from d2dfl.live.views import HEAD, DiscoveryView, put_findings
from d2dfl.words import counted

if TYPE_CHECKING:
    from d2dfl.cli.commands.watching import Watching

ENDED = "The run has ended."
WAIT_S = 0.2


class LiveSession:
    """A run that is watched: whom it tells, and what is said at the end."""

    def __init__(self, stand: Stand, view: DiscoveryView, in_terminal: bool) -> None:
        self.stand, self.view, self.in_terminal = stand, view, in_terminal
        self.words = ENDED

    def finish(self, folder: Path | None = None) -> None:
        """All is measured; `folder` is where it can be seen again."""
        self.view.end()
        again = f" To see it again: {shlex.join(['d2dfl', 'replay', str(folder)])}" if folder else ""
        self.words = f"{ENDED}{again}"


@contextmanager
def live_session(
    watching: "Watching",
    title: str,
    view: Callable[[Stand], DiscoveryView] = DiscoveryView,
    steps: bool = False,
    elsewhere: bool = False,
) -> Iterator[LiveSession | None]:
    """A live view for as long as a run lasts; None where nobody watches. `steps`: a discovery, which is opened to be stepped through when it is there.

    `elsewhere`: other processes do the work, and this one has little to do beside.
    """
    if not watching.live:
        yield None
        return
    stand = Stand(since_now(time.monotonic), share=ELSEWHERE) if elsewhere else Stand()
    with served(stand, live_page(title, replay=steps)) as server:
        opened = _open(server, watching.no_browser)
        alone = not opened and not watching.no_browser
        session = LiveSession(stand, view(stand), alone and console.is_terminal)
        try:
            with terminal_display(console, session.view) if session.in_terminal else nullcontext():
                yield session
        except BaseException:
            server.end("The run was stopped.")
            raise
        with suppress(KeyboardInterrupt):  # all is measured and kept: Ctrl-C ends the page
            server.end(session.words, coming=opened)
            if watching.stay:
                _until_stopped(f"the page stays: {server.address}; Ctrl-C ends it")


def _open(server: LiveServer, no_browser: bool) -> bool:
    """Open a browser, or say where the page is. Returns whether one was opened."""
    if no_browser:
        say(f"live: {server.address}")
        return False
    if _browser_there() and webbrowser.open(server.address):
        say(f"live, in the browser: {server.address}")
        return True
    shown = "; it is shown here instead" if console.is_terminal else ""
    say(f"there is no browser here{shown}; from this machine the page is {server.address}")
    return False


def _browser_there() -> bool:
    """Whether a window could open: one of the terminal's own (lynx, w3m) would take the terminal, and shows nothing."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform not in ("darwin", "win32") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _until_stopped(words: str) -> None:
    """Wait for Ctrl-C, which is the end that was meant."""
    with suppress(KeyboardInterrupt):
        say(words)
        while True:
            time.sleep(WAIT_S)


def replay_folder(folder: Path, no_browser: bool) -> None:
    """Serve what a run folder holds, until Ctrl-C."""
    from d2dfl.errors import UserError
    from d2dfl.experiment.folder.traces import load_traces
    from d2dfl.report.findings import FILE, Findings

    traces = load_traces(folder)
    stand = Stand()
    title = folder.resolve().name
    if (folder / FILE).exists():
        found = Findings.load(folder)
        put_findings(stand, found, [kept.trace.method for kept in traces])
        title = found.title
    view = DiscoveryView(stand)
    for kept in traces:
        if not kept.trace.moments:
            raise UserError(f"{folder} holds a discovery without a moment, {kept.name}: it was changed by hand")
        view.begin(kept.config, ())
        view.negotiate(kept.trace)
        view.found(kept.trace)
    stand.put(HEAD, lambda: {"what": "", "share": 1.0, "left": ""})
    with served(stand, live_page(f"Replay: {title}", replay=True)) as server:
        server.tell(f"{counted(len(traces), 'discovery')} of {folder}, to be stepped through.")
        _open(server, no_browser)
        _until_stopped("Ctrl-C ends it")
