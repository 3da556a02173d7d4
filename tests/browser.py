"""A headless Chromium, spoken to over two pipes (DevTools protocol, JSON between NULs)."""

import base64
import itertools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 120.0  # seconds: a browser that says nothing for so long hangs
# Chromium reads from descriptor 3 and writes to 4, which may be taken in our own process: a child moves them there.
START = """
import fcntl, os, sys
for place, number in enumerate([fcntl.fcntl(int(text), fcntl.F_DUPFD, 10) for text in sys.argv[1:3]], start=3):
    os.dup2(number, place)
os.execvp(sys.argv[3], sys.argv[3:])
"""
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    # It looks for updates and the like by itself. No name leads anywhere, so that nothing but this machine is reached:
    # files, and the loopback address for pages that are served.
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
NEEDED = "no Chromium: apt-get install chromium"


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Tab:
    """One page. Everything that goes wrong in it, and every address that it asks for, is collected."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.buffer, self.numbers = to, back, b"", itertools.count(1)
        self.session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(
        self, path: Path | str, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False
    ) -> None:
        """A file, or an address of this machine."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])
        size = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.loaded = False
        self.call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        while not self.loaded:
            self._note(self._read())
        self.settle()

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """Until a script gives something that is true, and what that is; no longer than that."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.1)
        return found

    def settle(self) -> None:
        """Wait until what was drawn is on the screen: two frames."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def hover(self, selector: str, number: int = 0) -> None:
        """Move the real pointer to the middle of an element, as far as it can be seen."""
        x, y = self.middle(selector, number)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector: str, number: int = 0) -> None:
        x, y = self.middle(selector, number)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str) -> None:
        known: dict[str, dict[str, Any]] = {
            "Tab": {"windowsVirtualKeyCode": 9},  # without it the focus stays
            "Enter": {"windowsVirtualKeyCode": 13, "text": "\r"},  # and no button is pressed
        }
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **known.get(key, {}))
        self.settle()

    def middle(self, selector: str, number: int = 0) -> tuple[float, float]:
        found = self.run(
            f"(() => {{ const it = document.querySelectorAll({json.dumps(selector)})[{number}];"
            "it.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return float(found[0]), float(found[1])

    def text(self, selector: str) -> str:
        """What one reads there, with single spaces."""
        shown = str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))
        return re.sub(r"[ \t\n]+", " ", shown).strip()

    def picture(self, path: Path, whole: bool = False) -> None:
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], end - time.monotonic())
            part = os.read(self.back, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, content = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(content["exceptionDetails"]))
        elif method == "Log.entryAdded" or (method == "Runtime.consoleAPICalled" and content["type"] == "error"):
            self.errors.append(str(content))


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A browser with an empty profile; it ends with the block."""
    program = chromium()
    assert program is not None
    (theirs, to), (back, mine) = os.pipe(), os.pipe()
    arguments = [sys.executable, "-c", START, str(theirs), str(mine), program, *OPTIONS]
    arguments += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(arguments, pass_fds=(theirs, mine), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(theirs)
    os.close(mine)
    try:
        tab = Tab(to, back)
        yield tab
        tab.session = None
        tab.call("Browser.close")
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)
