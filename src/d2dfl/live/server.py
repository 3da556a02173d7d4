"""The server of a live page: loopback only, read-only, and silent to whoever does not know the token."""

import asyncio
import gc
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from d2dfl.errors import UserError
from d2dfl.live.stand import Stand

HOST = "127.0.0.1"
TICK_S = 0.25  # between two looks for something newer
QUIET_S = 10.0  # after which a stream says that it is still there
MOST_BROWSERS = 32
START_S = 60.0  # that the server has to start: a moment, unless the machine is busy
LAST_WORDS_S = 10.0  # that browsers have at the end, to hear of it
COMING_S = 15.0  # that a browser which was opened has, to come at all
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the token stands in the address
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Nothing is said, not even that there is a server of ours, to another address, method or token."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.start = app, f"/{token}/".encode()
        self.hosts = [f"{name}:{port}".encode() for name in (HOST, "localhost")]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        path = scope["raw_path"][: len(self.start)].ljust(len(self.start))
        known = secrets.compare_digest(path, self.start)
        # A page from elsewhere may have its own name lead to this machine: then the host is that name.
        named = dict(scope["headers"]).get(b"host", b"") in self.hosts
        if known and named and scope["method"] == "GET":
            await self.app({**scope, "path": scope["path"][len(self.start) - 1 :]}, receive, send)
        else:
            await Response(status_code=404)(scope, receive, send)


class QuietServer(uvicorn.Server):
    """uvicorn wakes ten times a second to see whether it should stop. This one sleeps until somebody asks it something."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self.should_exit:  # it may have been stopped before there was a loop to tell
            await self._stopping.wait()

    def stop(self) -> None:
        """Called by another thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)


class EventStream(Response):
    """Texts one after the other until there are no more, or nobody listens. Starlette's own loads anyio's loops for that, 12 ms of a run."""

    media_type = "text/event-stream"

    def __init__(self, texts: Callable[[Callable[[], bool]], AsyncIterator[str]]) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self.texts = texts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def leaving() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        left = asyncio.ensure_future(leaving())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for text in self.texts(left.done):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            left.cancel()


class LiveServer:
    """A page and the stream behind it, served by a thread of its own."""

    def __init__(self, stand: Stand, page: str) -> None:
        self.stand, self.page = stand, page
        self.token = secrets.token_urlsafe(24)
        self.readers = 0  # browsers that listen now
        self.ever = 0  # that ever did
        self._last: dict[str, Any] = {}
        self._over = threading.Event()  # the end was told: streams close
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.bind((HOST, 0))
        except OSError as error:
            raise UserError(f"--live cannot listen on {HOST}: {error.strerror}") from None
        self.port = int(self._socket.getsockname()[1])
        self._server = QuietServer(
            uvicorn.Config(
                Guard(self._app(), self.token, self.port),
                log_level="critical",
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                limit_concurrency=MOST_BROWSERS,
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="d2dfl-live", daemon=True)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def start(self) -> None:
        """Returns when the page can be opened."""
        self._thread.start()
        wait_for(lambda: self._server.started or not self._thread.is_alive(), START_S)
        if not self._server.started:
            raise UserError("the server of the live page did not start")

    def tell(self, words: str) -> None:
        """Nothing more will come: whoever listens hears these words last."""
        self._last = {"words": words}
        self.stand.ended.set()

    def end(self, words: str, coming: bool = False) -> None:
        """Tell all browsers how it ended, once they have all the records; `coming`: one was opened, and may be on its way."""
        self.tell(words)
        if coming and not self.ever:
            wait_for(lambda: self.ever > 0, COMING_S)
        wait_for(lambda: self.readers == 0, LAST_WORDS_S)

    def stop(self) -> None:
        """Serve nobody any more."""
        self._over.set()
        self._server.stop()
        self._thread.join(LAST_WORDS_S)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _app(self) -> Starlette:
        routes = [
            Route("/", self._page),
            Route("/events", self._events),
            Route("/asked/{name}", self._asked),
        ]
        app = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
        app.router.redirect_slashes = False
        return app

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(self.page, headers=HEADERS)

    async def _asked(self, request: Request) -> Response:
        text = self.stand.asked(request.path_params["name"])
        if text is None:
            return Response(status_code=404)
        return Response(text, media_type="application/json", headers=HEADERS)

    async def _events(self, _: Request) -> Response:
        return EventStream(self._stream)

    async def _stream(self, gone: Callable[[], bool]) -> AsyncIterator[str]:
        """What this browser has not seen, as often as there is something; at the end, how it ended."""
        seen: dict[str, int] = {}
        self.readers += 1
        self.ever += 1
        last = time.monotonic()
        try:
            while not self._over.is_set() and not gone():
                for text in self.stand.one_by_one(seen):
                    yield f"event: part\ndata: {text}\n\n"
                    last = time.monotonic()
                if self.stand.ended.is_set() and self.stand.complete(seen):
                    yield f"event: end\ndata: {json.dumps(self._last)}\n\n"
                    return
                if time.monotonic() - last > QUIET_S:
                    yield ": still here\n\n"
                    last = time.monotonic()
                await asyncio.sleep(TICK_S)
        finally:
            self.readers -= 1


async def _nothing(_: Request, __: Exception) -> Response:
    return Response(status_code=404)


def wait_for(there: Callable[[], bool], seconds: float) -> None:
    """Until something is so, but no longer than that."""
    end = time.monotonic() + seconds
    while not there() and time.monotonic() < end:
        time.sleep(0.02)


@contextmanager
def served(stand: Stand, page: str) -> Iterator[LiveServer]:
    """A server for as long as the block lasts.

    What is loaded by now is kept out of Python's collection of garbage: with PyTorch these are hundreds of thousands of objects, and to walk through
    them once takes 0.2 s, which was a fiftieth of a short run where it fell to a drawing.
    """
    server = LiveServer(stand, page)
    server.start()
    gc.freeze()
    try:
        yield server
    finally:
        gc.unfreeze()
        server.stop()
