"""The server: it listens to this machine alone, says nothing without the token, and ends when it should."""

import http.client
import json
import socket
import subprocess
import sys
import threading

import pytest

pytest.importorskip("uvicorn", reason="no live extra: pip install 'd2dfl[live]'")

from d2dfl.live.page import live_page
from d2dfl.live.server import LiveServer, served
from d2dfl.live.stand import Stand


def answer(server: LiveServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.port}"})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def test_without_the_token_there_is_nothing() -> None:
    stand = Stand()
    stand.offer("trace", lambda: [1])
    stand.put("head", lambda: {"secret": 1})
    with served(stand, live_page("A run")) as server:
        token = server.token
        assert len(token) >= 32
        right = answer(server, f"/{token}/")
        assert right[0] == 200
        assert b"A run" in right[1]
        wrong = [
            "/",
            "/events",
            f"/{token}",
            f"/{token[:-1]}/",
            f"/{token}x/",
            f"/{token[:-1]}{'A' if token[-1] != 'A' else 'B'}/events",
            f"/{'x' * len(token)}/asked/trace",
            f"//{token}/",
            f"/x/../{token}/",
            f"/{token}/asked/other",
            f"/{token}/nothing",
        ]
        for path in wrong:
            assert answer(server, path) == (404, b""), path
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert answer(server, f"/{token}/", method) == (404, b""), method
        assert answer(server, f"/{token}/", host="elsewhere.example") == (404, b"")
        assert json.loads(answer(server, f"/{token}/asked/trace")[1])["data"] == [1]


def test_every_run_has_a_token_of_its_own() -> None:
    with served(Stand(), "") as one, served(Stand(), "") as two:
        assert one.token != two.token
        assert answer(two, f"/{one.token}/") == (404, b"")


def test_it_listens_on_loopback_alone() -> None:
    with served(Stand(), "page") as server:
        assert server._socket.getsockname()[0] == "127.0.0.1"


def test_readers_hear_all_and_then_the_end() -> None:
    stand, heard = Stand(), dict[int, bytes]()
    stand.put("head", lambda: {"share": 0.25})
    with served(stand, "page") as server:

        def read(number: int) -> None:
            heard[number] = answer(server, f"/{server.token}/events")[1]

        threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        stand.put("curve", lambda: [1, 2, 3])
        server.end("It has ended.", coming=True)
        for thread in threads:
            thread.join(20)
    assert len(heard) == 3
    for text in heard.values():
        parts = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]
        assert {"share": 0.25} in [part.get("data") for part in parts]
        assert [1, 2, 3] in [part.get("data") for part in parts]
        assert parts[-1] == {"words": "It has ended."}


def test_after_the_block_nobody_listens() -> None:
    with served(Stand(), "page") as server:
        assert answer(server, f"/{server.token}/")[0] == 200
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=5):
        pass


def test_a_reader_that_hangs_does_not_keep_the_server() -> None:
    stand = Stand()
    stand.put("head", dict)
    with served(stand, "page") as server:
        silent = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        silent.sendall(f"GET /{server.token}/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        silent.recv(10)
    silent.close()
    assert not server._thread.is_alive()


def test_what_draws_is_loaded_when_somebody_looks() -> None:
    """Matplotlib and SciPy's trees take longer to load than a small discovery takes."""
    heavy = "('matplotlib', 'scipy.spatial', 'scipy.sparse', 'torch')"
    code = f"import sys; import d2dfl.cli.live.session; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
