"""What the promises cost: a hand-over between two processes beside a bare zenoh put over the same TLS, and a peer's memory.

    python benchmarks/peers_live.py --megabytes 64

Ratios of one run on one machine. The hand-over signs, closes, stores every piece durably (a synced SQLite transaction each),
checks and commits; the bare put does nothing but move bytes.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from queue import Queue

import numpy as np

from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.peer.transports.zenoh import ZenohTransport, free_ports

LABELS = ("a",)
SIDE = 16_384  # float32 numbers of a datapoint: 64 KiB
PIECE = 512 * 1024
LONGEST_S = 300.0


def make_pair(folder: Path, points: int) -> list[Home]:
    """A sender with data, and a receiver that may have all of it."""
    fleet = FleetFolder(folder / "fleet")
    fleet.create()
    names = ["sender", "receiver"]
    for name, port in zip(names, free_ports(2), strict=True):
        (folder / name / "data").mkdir(parents=True)
        if name == "sender":
            inputs = np.random.default_rng(0).random((points, SIDE), dtype=np.float32)
            np.savez(folder / name / "data" / "one.npz", inputs=inputs, targets=np.zeros(points, dtype=np.int64))
        request = make_home(folder / name, name, "data", LABELS, f"127.0.0.1:{port}", graph="../graph.json")
        settings = folder / name / "peer.toml"
        text = settings.read_text().replace("bytes_a_second = 100000000", "bytes_a_second = 1000000000000")
        settings.write_text(text.replace("bytes_a_day = 10000000000", "bytes_a_day = 100000000000000"))
        fleet.approve(read_request(request))
    homes = [Home(folder / name) for name in names]
    for home in homes:
        fleet.approve(read_request(home.folder / f"{home.settings.name}.request"))
        home.join(folder / "fleet" / f"{home.settings.name}.admission")
    grant = '[[grant]]\nto = "{}"\nlabels = ["a"]\nnumber = 1000000\nuntil = 2099-01-01\n'
    (homes[0].folder / "policy.toml").write_text(grant.format(homes[1].key().fingerprint.hex()))
    homes[0].sign_policy(time.time())
    (folder / "graph.json").write_text(json.dumps({"edges": [[0, 1]], "expected_datapoints": [[points]]}))
    store = homes[0].store()
    take_in(store, "data", homes[0].folder, LABELS, time.time())
    store.close()
    return homes


RUN = r"""
import re, sys
sys.argv = ["d2dfl", *sys.argv[1:]]
from d2dfl.cli.app import main
try:
    main()
finally:
    print("peak", int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def hand_over(folder: Path, points: int) -> dict[str, float]:
    """Two processes; MB/s from the grant to the last acknowledgement, and the peak memory of each."""
    homes = make_pair(folder, points)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, "peer", "run", "--for", str(LONGEST_S), "--home", str(home.folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for home in homes
    ]  # fmt: skip
    peaks = []
    for process in running:
        said, error = process.communicate(timeout=LONGEST_S + 60)
        if process.returncode:
            raise SystemExit(error)
        peaks.append(float(said.rpartition("peak ")[2]))
    store = homes[0].store(read_only=True)
    lines = [json.loads(content) for _, content, _ in store.audit()]
    store.close()
    began = min(line["time"] for line in lines if line["kind"] == "granted")
    ended = max(line["time"] for line in lines if line["kind"] == "sent")
    megabytes = points * SIDE * 4 / 1e6
    return {
        "handover_mb_s": megabytes / (ended - began),
        "handover_s": ended - began,
        "sender_peak_mb": peaks[0],
        "receiver_peak_mb": peaks[1],
    }


def _hear(own: bytes, listen: str, files: dict[str, Path], number: int, said: "multiprocessing.Queue[float]") -> None:
    inbox: Queue[bytes] = Queue(100_000)
    transport = ZenohTransport(own, listen, [], files, inbox)
    said.put(0.0)
    for _ in range(number):
        inbox.get(timeout=60)
    said.put(time.time())
    transport.close()


def bare_put(homes: list[Home], number: int) -> float:
    """MB/s of pieces that are put with congestion control that blocks, and only counted at the other end."""
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    own = homes[1].key().fingerprint
    ear = context.Process(target=_hear, args=(own, homes[1].settings.listen, homes[1].files, number, said))
    ear.start()
    said.get(timeout=60)
    sender = homes[0].key().fingerprint
    listen, other = homes[0].settings.listen, homes[1].settings.listen
    transport = ZenohTransport(sender, listen, [other], homes[0].files, Queue(10))
    time.sleep(2.0)  # until they are connected
    began = time.time()
    for _ in range(number):
        transport.send(own, bytes(PIECE))
    ended = said.get(timeout=120)
    ear.join()
    transport.close()
    return number * PIECE / 1e6 / (ended - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="d2dfl-live-") as name:
        found = hand_over(Path(name), int(options.megabytes * 1e6 / (SIDE * 4)))
        homes = [Home(Path(name) / one) for one in ("sender", "receiver")]
        found["bare_put_mb_s"] = bare_put(homes, int(options.megabytes * 1e6 / PIECE))
    found["ratio"] = found["handover_mb_s"] / found["bare_put_mb_s"]
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
