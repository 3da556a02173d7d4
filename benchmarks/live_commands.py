"""What a live page takes of whole commands, each in a fresh process, with a browser from the first moment.

The run is all that a command does until it has its results, its own start included. Beside it stand, in seconds of the processor, what
the page's server takes while the run goes on, what the page needs before (modules, the server), what draws maps and is loaded when the
first is due, and what is done for who looks when the run has ended. Every time is printed, not only the best.

    python benchmarks/live_commands.py [--times 5]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

READER = "import sys, urllib.request; print(sum(map(len, urllib.request.urlopen(sys.argv[1] + 'events', timeout=60))))"
COMMANDS = (
    ("discover", "--devices", "25"),
    ("discover", "--devices", "60"),
    ("discover", "--devices", "60", "--set", "marginal.messages=4000"),
    ("compare", "--methods", "marginal,closest", "--set", "data.samples=20", "--rounds", "10"),
    ("compare", "--methods", "marginal,qlearning,closest", "--set", "data.samples=50", "--rounds", "30"),
)


def one_command(arguments: Sequence[str]) -> None:
    """Run a command with a live page that is read, in this process; print what the page took."""
    import d2dfl.cli.graphs  # noqa: F401  # what a run needs anyway

    began = time.process_time()
    import d2dfl.cli.live.session as session
    from d2dfl.live.server import served

    loaded_s, found = time.process_time() - began, {}

    @contextmanager
    def timed(stand, page):
        before = time.process_time()
        with served(stand, page) as server:
            start_s = loaded_s + time.process_time() - before
            number, tell = time.pthread_getcpuclockid(server._thread.ident), server.tell
            first = time.clock_gettime(number)
            reader = subprocess.Popen([sys.executable, "-c", READER, server.address], stdout=subprocess.PIPE, text=True)
            while not server.ever and reader.poll() is None:
                time.sleep(0.01)

            def told(words: str) -> None:
                page_s = time.clock_gettime(number) - first - stand.loaded_s
                run_s = time.process_time() - start_s - stand.loaded_s - page_s
                found.update(run=run_s, page=page_s, start=start_s, modules=stand.loaded_s, until=time.process_time())
                tell(words)

            server.tell = told
            yield server
            reader.communicate(timeout=60)

    session.served = timed
    sys.argv = ["d2dfl", *arguments, "--live", "--no-browser"]
    from d2dfl.cli.app import main as command_line

    with suppress(SystemExit):
        command_line()
    found["after"] = time.process_time() - found.pop("until")
    print(f"\n{json.dumps(found)}")


def commands(times: int) -> None:
    """What the page takes of whole commands, every time and not only the best."""
    for number in range(times + 1):
        for arguments in COMMANDS:
            with tempfile.TemporaryDirectory() as folder:
                here = [sys.executable, str(Path(__file__).resolve()), "--one", json.dumps(arguments)]
                done = subprocess.run(here, cwd=folder, check=False, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
            if number:  # the first of each compiles
                found = json.loads(done.stdout.splitlines()[-1])
                print(
                    f"{' '.join(arguments)}: {found['run']:.2f} s; the page {100 * found['page'] / found['run']:.2f} % of that while it ran, "
                    f"{found['start']:.2f} s to start, {found['modules']:.2f} s to load what draws maps, {found['after']:.2f} s when it had ended",
                    flush=True,
                )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        one_command(given.one)
    else:
        commands(given.times)


if __name__ == "__main__":
    main()
