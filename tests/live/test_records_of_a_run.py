"""What a run that trains shows of its discoveries, however short they were."""

import json
from pathlib import Path
from typing import Any

from d2dfl import Network, preset
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.folder.store import run_folder
from d2dfl.federation import Curves
from d2dfl.live.maps import LivingMap
from d2dfl.live.records import Measured, RunView
from d2dfl.live.stand import Stand
from d2dfl.live.views import table_data

CONFIG = preset("best").with_(
    **{
        "network.devices": 6,
        "data.samples": 20,
        "federation.rounds": 2,
        "discovery.edges": 1,
        "data.allocation": "labels:1",
    }
)


class Reader(RunView):
    """A view that somebody reads after every word, of a run that has used much; nothing that was drawn is due again by itself."""

    def __init__(self) -> None:
        super().__init__(Stand(lambda: 1e6, lambda: float(len(self.shown)), lambda: float(len(self.shown))))
        self.shown: list[dict[str, object]] = []
        self.seen: dict[str, int] = {}
        self.training: set[str] = set()

    def read(self) -> None:
        self.shown += [json.loads(text) for text in self.stand.newer(self.seen)]

    def negotiate(self, trace: Any) -> None:
        super().negotiate(trace)
        self.read()

    def prepare(self, number: Any, item: Any) -> None:
        super().prepare(number, item)
        self.read()

    def train(self, states: Any) -> None:
        super().train(states)
        self.read()


def test_while_it_trains_all_graphs_are_there(tmp_path: Path) -> None:
    view = Reader()
    methods = ["marginal", "closest"]
    with run_folder(tmp_path / "run", plan_of(CONFIG, methods, [0])) as record:
        compare(CONFIG, methods, [0], record, progress=view.step, observer=view)
    newest = {part["name"]: part["data"] for part in view.shown}
    first = next(part["data"] for part in view.shown if part["name"] == "negotiation")
    assert first["layer"]["links"]  # never a map without any link
    assert newest["negotiation"]["title"] == "Closest, seed 0"
    assert [layer["title"] for layer in newest["graphs"]["layers"]] == ["Marginal (ours)", "Closest", "No exchange"]
    colours = {line["title"]: line["colour"] for line in newest["curves"][0]["lines"]}
    assert {
        bar["title"]: bar["colour"] for bar in newest["sums"]["energy"][0]["bars"]
    } == colours  # of the shuffle, too
    joules = {row[0]: row[-1] for row in newest["sums"]["table"]["rows"]}
    bars = newest["sums"]["energy"][0]
    totals = [sum(part) for part in zip(*bars["values"], strict=True)]  # of the same round as the table's
    assert [f"{total:.2f}" for total in totals] == [value.replace(",", "") for value in joules.values()]


def test_who_looked_before_is_told_of_all_that_came_since(tmp_path: Path) -> None:
    """Each record is put once; after that the run only says that there is something newer."""
    view, methods = Reader(), ["closest", "marginal"]
    with run_folder(tmp_path / "run", plan_of(CONFIG, methods, [0])) as record:
        compare(CONFIG, methods, [0], record, progress=view.step, observer=view)

    def newest() -> dict[str, Any]:
        view.read()
        return {part["name"]: part["data"] for part in view.shown}

    view.stand.ended.set()
    found = newest()
    assert found["head"]["what"] == "measure"
    last = view.traces["marginal-seed-0"]
    assert found["negotiation"] == json.loads(json.dumps(last.now()))
    assert [line["x"][-1] for line in found["curves"][0]["lines"]] == [2.0] * 4
    assert found["sums"]["energy"][0]["title"] == "Joules by purpose, so far"
    view.end()
    assert newest()["sums"]["energy"][0]["title"] == "Joules by purpose"


def test_a_round_counts_when_it_is_over() -> None:
    """Lists grow while they are shown: what the second round has sent so far is of a round that is not there yet."""
    curves = Curves("accuracy")
    curves.begin_round(3)
    curves.training_losses.append(0.5)
    curves.rounds.append(1)
    curves.scores.append(0.9)
    curves.begin_round(3)
    curves.rounds.append(2)
    assert Measured.of(curves, 7) == Measured(curves, evaluations=1, rounds=1, parameters=7)


def test_a_table_says_what_a_report_says(tmp_path: Path) -> None:
    """At the end a score is the same number as in the table of the report, and columns are explained."""
    view, methods, config = Reader(), ["closest"], CONFIG.with_(**{"federation.rounds": 20})
    with run_folder(tmp_path / "run", plan_of(config, methods, [0])) as record:
        found = compare(config, methods, [0], record, progress=view.step, observer=view)
    view.end()
    table = table_data(view.table())
    scores = {row[0]: row[table["columns"].index("score")] for row in table["rows"]}
    assert scores == {row.method: f"{row.score:.3f}" for row in found.rows}
    said = dict(table["explained"])
    assert set(said) == {"objective", "sent", "lost", "score", "joules"}
    assert said["sent"] == "datapoints sent in the exchange as it went, not as it was expected"


def test_a_map_of_more_devices_than_stand_apart_can_be_told() -> None:
    network = Network.generate(CONFIG.with_(**{"network.devices": 60}), 0)
    assert len(json.loads(json.dumps(LivingMap.of("Seed 0", network).base))["devices"]) == 60
