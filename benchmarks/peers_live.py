"""What the promises cost: a hand-over between two processes beside a bare zenoh put over the same TLS and beside rsync; what it takes
5, 25 and 50 processes to find their graph; and a peer's memory.

    python benchmarks/peers_live.py --megabytes 64
    python benchmarks/peers_live.py --megabytes 0 --discovery 5,25,50

Ratios of one run on one machine. The hand-over signs, closes, stores every piece durably (a synced SQLite transaction each),
checks and commits; the bare put does nothing but move bytes; rsync copies one file from a daemon on loopback, without TLS.
"""

import argparse
import json
import multiprocessing
import re
import shutil
import socket
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
    homes[0].sign_policy()
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


def rsync(folder: Path, megabytes: int) -> float | None:
    """MB/s of one file from an rsync daemon over loopback TCP; None where there is no rsync."""
    program = shutil.which("rsync")
    if program is None:
        return None
    (port,) = free_ports(1)
    for name in ("from", "to"):
        (folder / name).mkdir()
    (folder / "from" / "file").write_bytes(np.random.default_rng(0).bytes(megabytes * 10**6))
    settings = (
        f"use chroot = no\naddress = 127.0.0.1\nport = {port}\npid file = {folder}/pid\n[all]\npath = {folder}/from\n"
    )
    (folder / "rsyncd.conf").write_text(settings)
    daemon = subprocess.Popen([program, "--daemon", "--no-detach", f"--config={folder}/rsyncd.conf"])
    try:
        for _ in range(100):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        began = time.perf_counter()
        subprocess.run([program, f"rsync://127.0.0.1:{port}/all/file", f"{folder}/to/file"], check=True, timeout=120)
        return megabytes / (time.perf_counter() - began)
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def find_graph(folder: Path, devices: int) -> dict[str, float]:
    """As many processes look for their graph, at once and with few messages: seconds and messages of the slowest, memory of the largest."""
    fleet, draws = FleetFolder(folder / "fleet"), np.random.default_rng(devices)
    fleet.create()
    homes = []
    for number, port in enumerate(free_ports(devices)):
        home = folder / f"d{number}"
        (home / "data").mkdir(parents=True)
        labels = draws.choice(10, 3, replace=False)
        np.savez(home / "data" / "one.npz", inputs=np.zeros((60, 2), dtype=np.float32), targets=np.repeat(labels, 20))
        request = make_home(home, f"d{number}", "data", tuple(map(str, range(10))), f"127.0.0.1:{port}")
        with (home / "peer.toml").open("a") as settings:
            settings.write("[discovery]\nlinks = 3\nmessages = 100\nmessage_s = 0.02\ngather_s = 60\n")
        fleet.approve(read_request(request))
        homes.append(Home(home))
    prints = [home.key().fingerprint.hex() for home in homes]
    for own, home in zip(prints, homes, strict=True):
        fleet.approve(read_request(home.folder / f"{home.settings.name}.request"))
        home.join(folder / "fleet" / f"{home.settings.name}.admission")
        grant = '[[grant]]\nto = "{}"\nlabels = ["*"]\nnumber = 1000\nuntil = 2099-01-01\n'
        (home.folder / "policy.toml").write_text("\n".join(grant.format(one) for one in prints if one != own))
        home.sign_policy()
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, "peer", "run", "--for", str(LONGEST_S), "--home", str(home.folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for home in homes
    ]  # fmt: skip
    seconds, messages, peaks = [], [], []
    for process in running:
        said, error = process.communicate(timeout=LONGEST_S + 60)
        found = re.search(r"in ([0-9.]+) s, ([0-9,]+) messages", error)
        if process.returncode or found is None:
            raise SystemExit(error)
        seconds.append(float(found[1]))
        messages.append(int(found[2].replace(",", "")))
        peaks.append(float(said.rpartition("peak ")[2]))
    return {
        f"discovery_{devices}_s": max(seconds),
        f"discovery_{devices}_messages": sum(messages),
        f"discovery_{devices}_all_s": time.perf_counter() - began,
        f"discovery_{devices}_peak_mb": max(peaks),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--discovery", default="", help="numbers of processes, such as 5,25,50")
    options = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="d2dfl-live-") as name:
        if options.megabytes:
            found = hand_over(Path(name), int(options.megabytes * 1e6 / (SIDE * 4)))
            homes = [Home(Path(name) / one) for one in ("sender", "receiver")]
            found["bare_put_mb_s"] = bare_put(homes, int(options.megabytes * 1e6 / PIECE))
            found["ratio"] = found["handover_mb_s"] / found["bare_put_mb_s"]
            copied = rsync(Path(name), options.megabytes)
            if copied is None:
                print("there is no rsync here: not compared with it")
            else:
                found |= {"rsync_mb_s": copied, "ratio_to_rsync": found["handover_mb_s"] / copied}
        for devices in (int(text) for text in options.discovery.split(",") if text):
            (Path(name) / f"fleet-{devices}").mkdir()
            found |= find_graph(Path(name) / f"fleet-{devices}", devices)
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
