"""The server: FedAvg by the number of datapoints, and the accuracy on a test set after the last round.

What goes wrong stands in the result, too: the script that waits for it would learn of it from nowhere else.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from peers_app.task import make_model

app = ServerApp()


class FedAvgOfAll(FedAvg):
    """FedAvg leaves out who could not train; here all devices count."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        came = list(replies)
        wrong = [reply.error.reason for reply in came if reply.has_error()]
        if wrong:
            raise RuntimeError(
                f"{len(wrong)} of {len(came)} devices could not train in round {server_round}: {wrong[0]}"
            )
        found: tuple[ArrayRecord | None, MetricRecord | None] = super().aggregate_train(server_round, came)
        return found


@app.main()
def main(grid: Grid, context: Context) -> None:
    result = Path(str(context.run_config["result"]))
    try:
        found = train(grid, context.run_config)
    except Exception as error:
        written(result, {"failed": " ".join(f"{type(error).__name__}: {error}".split())})
        raise
    written(result, found)


def train(grid: Grid, config: ConfigRecord) -> dict[str, float]:
    nodes, seed, rounds = int(config["nodes"]), int(config["seed"]), int(config["rounds"])
    strategy = FedAvgOfAll(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)
    first = ArrayRecord(make_model(seed).state_dict())
    found = strategy.start(grid=grid, initial_arrays=first, num_rounds=rounds)
    model = make_model(seed)
    model.load_state_dict(found.arrays.to_torch_state_dict())
    with np.load(str(config["test"]), allow_pickle=False) as test:
        inputs, targets = torch.from_numpy(test["inputs"]), torch.from_numpy(test["targets"])
    with torch.no_grad():
        right = float((model(inputs).argmax(dim=1) == targets).double().mean())
    return {"accuracy": right, "rounds": rounds}


def written(result: Path, content: dict[str, float] | dict[str, str]) -> None:
    """Whole or not at all: somebody waits for the file."""
    draft = result.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.replace(result)
