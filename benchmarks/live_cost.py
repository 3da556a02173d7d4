"""What a live view costs the run that it shows, as ratios in one run.

The same comparison, in this process, again and again in turn: without a view; with one that nobody opens; with one that a browser
reads, which is another process that takes everything as it comes. And the same discovery with and without its trace. Seconds are
those of the processor, of all threads of this process, so that others on the machine count little; wall seconds stand beside. The
share of the server's thread is read from its own clock: that is what a browser adds, and is exact where ratios are noisy. It may draw
by what the run itself has used, as if it had not had to start. What the run's own thread spends on telling the view is read from the
clock of that thread, and so is what it would spend on telling nobody.

    python benchmarks/live_cost.py [--times 7] [--rounds 40] [--devices 25]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path

from d2dfl import Network, preset
from d2dfl.discovery.discover import discover, warm_up
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.observer import NOBODY, Observer
from d2dfl.live.page import live_page
from d2dfl.live.records import RunView
from d2dfl.live.server import served
from d2dfl.live.stand import Stand, since_now
from live_commands import READER

METHODS = ["marginal", "qlearning", "closest"]
Seconds = tuple[float, float]  # of the processor, and of the wall


def seconds_of(work: Callable[[], object]) -> Seconds:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def run(config: object, observer: Observer, folder: Path) -> None:
    with run_folder(folder, plan_of(config, METHODS, [0])) as record:
        compare(config, METHODS, [0], record, progress=observer.step, observer=observer)


class Told:
    """An observer whose calls are timed, by the clock of the thread that makes them."""

    def __init__(self, observer: Observer) -> None:
        self._observer, self.spent_s = observer, 0.0

    def __getattr__(self, name: str) -> object:
        found = getattr(self._observer, name)
        if not callable(found):
            return found

        def timed(*given: object, **named: object) -> object:
            began = time.thread_time()
            try:
                return found(*given, **named)
            finally:
                self.spent_s += time.thread_time() - began

        return timed


class Shares:
    """Seconds of the processor that servers' threads took while runs went on, and the runs' own threads for telling them."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self.telling: list[float] = []
        self.nobody: list[float] = []  # the same for an observer that hears nothing: calls, and reading the clock
        self.clock: Callable[[], float] | None = None
        self.told: Told | None = None

    def of(self, work: Callable[[], object]) -> Seconds:
        before = self.clock() if self.clock else 0.0
        took = seconds_of(work)
        if self.clock and self.told:
            self.found.append((self.clock() - before) / took[0])
            self.telling.append(self.told.spent_s / took[0])
        return took


@contextmanager
def watched(reader: bool, shares: Shares):
    """A view with a server, and a reader of it where there is to be one."""
    stand = Stand(since_now(time.process_time))
    with served(stand, live_page("benchmark")) as server:
        process = None
        if reader:
            process = subprocess.Popen(
                [sys.executable, "-c", READER, server.address], stdout=subprocess.PIPE, text=True
            )
            while not server.ever and process.poll() is None:
                time.sleep(0.01)
        number = time.pthread_getcpuclockid(server._thread.ident)
        shares.clock = lambda: time.clock_gettime(number)
        shares.told = Told(RunView(stand))
        yield shares.told
        shares.clock = None
        server.end("over")
        if process is not None:
            print(f"    the reader got {int(process.communicate(timeout=60)[0]) / 1e6:.1f} MB", file=sys.stderr)


def compared(config: object, times: int, shares: dict[str, Shares]) -> dict[str, list[Seconds]]:
    found: dict[str, list[Seconds]] = {"without": [], "nobody looks": [], "one browser": []}
    for number in range(times + 1):
        for kind, results in found.items():
            mine = shares.setdefault(kind, Shares())
            deaf = Told(NOBODY)
            view = nullcontext(deaf) if kind == "without" else watched(kind == "one browser", mine)
            with tempfile.TemporaryDirectory() as folder, view as observer:
                took = mine.of(lambda: run(config, observer, Path(folder) / "run"))
            if kind == "without":
                mine.nobody.append(deaf.spent_s / took[0])
            if number:  # the first of each compiles and loads
                results.append(took)
    return found


def traced(config: object, times: int) -> dict[str, list[Seconds]]:
    network = Network.generate(config, 0)
    warm_up("marginal", config)
    found: dict[str, list[Seconds]] = {"without a trace": [], "with": []}
    for _ in range(4 * times):
        found["without a trace"].append(seconds_of(lambda: discover(network, config)))
        found["with"].append(seconds_of(lambda: discover(network, config, trace=Trace())))
    return found


def long_discoveries(times: int, shares: dict[str, Shares]) -> None:
    """A discovery of some seconds, which a browser watches: how much of it the server takes while links form."""
    config = preset("best").with_(**{"network.devices": 60, "marginal.messages": 4000})
    network, mine = Network.generate(config, 0), shares.setdefault("long discovery", Shares())
    for _ in range(times + 1):
        with watched(True, mine) as view:
            view.begin(config, ())
            trace = Trace(lambda view=view: view.negotiate(trace))  # noqa: B023  # called in this turn alone
            mine.of(lambda trace=trace: discover(network, config, trace=trace))


def show(title: str, found: dict[str, list[Seconds]]) -> None:
    """Ratios to the first of the kinds, pair by pair: the median, and between which half of them lie."""
    print(title)
    base = next(iter(found.values()))
    for kind, results in found.items():
        cpu, wall = (statistics.median(one[place] for one in results) for place in (0, 1))
        line = f"  {kind:16} {cpu:7.2f} s of the processor, {wall:7.2f} s"
        if results is not base:
            ratios = [[a[place] / b[place] for a, b in zip(results, base, strict=True)] for place in (0, 1)]
            words = []
            for name, each in zip(("processor", "wall"), ratios, strict=True):
                low, middle, high = statistics.quantiles(each, n=4)
                words.append(f"{name} x {middle:.4f} [{low:.4f}, {high:.4f}]")
            line += f"; {', '.join(words)}"
        print(line)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=7)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--devices", type=int, default=25)
    given = options.parse_args()
    config = preset("best").with_(
        **{"network.devices": given.devices, "data.samples": 50, "federation.rounds": given.rounds}
    )
    show(f"marginal, {given.devices} devices, {4 * given.times} pairs", traced(config, given.times))
    title = f"compare {','.join(METHODS)}, one seed, {given.devices} devices, {given.rounds} rounds, {given.times} times each"
    shares: dict[str, Shares] = {}
    show(title, compared(config, given.times, shares))
    long_discoveries(given.times, shares)
    deaf = statistics.median(shares["without"].nobody[1:])
    print(f"  telling nobody, by the same clock: {100 * deaf:.3f} %")
    for kind, each in shares.items():
        if each.found:
            took, told = (sorted(100 * share for share in one[1:]) for one in (each.found, each.telling))
            print(
                f"  {kind}: the server's thread took {statistics.median(took):.2f} % [{took[0]:.2f}, {took[-1]:.2f}], telling it "
                f"{statistics.median(told):.3f} % [{told[0]:.3f}, {told[-1]:.3f}]"
            )


if __name__ == "__main__":
    main()
