"""The server: FedAvg by the number of datapoints, and the accuracy on a test set after the last round."""

import json
from pathlib import Path

import numpy as np
import torch
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from peers_app.task import make_model

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    nodes, seed = int(config["nodes"]), int(config["seed"])
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)
    first = ArrayRecord(make_model(seed).state_dict())
    found = strategy.start(grid=grid, initial_arrays=first, num_rounds=int(config["rounds"]))
    model = make_model(seed)
    model.load_state_dict(found.arrays.to_torch_state_dict())
    with np.load(str(config["test"]), allow_pickle=False) as test:
        inputs, targets = torch.from_numpy(test["inputs"]), torch.from_numpy(test["targets"])
    with torch.no_grad():
        right = float((model(inputs).argmax(dim=1) == targets).double().mean())
    Path(str(config["result"])).write_text(json.dumps({"accuracy": right, "rounds": int(config["rounds"])}))
