"""A process between two peers: it forwards to a port and, after some bytes, loses what it has read and cuts the connection.

    python bad_line.py PORT BYTES

That is what loss on the way comes to for TCP: a stream with a gap goes no further. Prints the port that it listens at, then a line for each cut.
It ends when its standard input does.
"""

import socket
import sys
import threading
from contextlib import suppress


def forward(one: socket.socket, other: socket.socket, left: list[int]) -> None:
    """One direction of a connection; both share the bytes that are left."""
    with suppress(OSError):
        while data := one.recv(16_384):
            left[0] -= len(data)
            if left[0] <= 0:
                print("cut", flush=True)  # and what was read is lost
                break
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def listen(listener: socket.socket, port: int, after: int) -> None:
    """Every connection gets as many bytes."""
    with suppress(OSError):
        while True:
            one, _ = listener.accept()
            try:
                other = socket.create_connection(("127.0.0.1", port), timeout=5)
                other.settimeout(None)
            except OSError:
                one.close()
                continue
            left = [after]
            for pair in ((one, other), (other, one)):
                threading.Thread(target=forward, args=(*pair, left), daemon=True).start()


def main() -> None:
    port, after = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=listen, args=(listener, port, after), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
