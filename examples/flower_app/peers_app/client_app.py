"""A client: trains on what its device's store holds now. `--node-config 'home="…"'` says where the device lives."""

from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from d2dfl.peer import Home, dataset
from peers_app.task import make_model, train

app = ClientApp()


@app.train()
def train_here(message: Message, context: Context) -> Message:
    config = dict(context.run_config)
    home = Home(Path(str(context.node_config["home"])))
    store = home.store()
    try:
        held = dataset(store, use="the Flower app")  # noted, so that forgetting can say what had used a datapoint
    finally:
        store.close()
    model = make_model(int(config["seed"]))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    round_ = int(message.content["config"]["server-round"])
    number = int(store.own.hex()[:8], 16)
    draws = torch.Generator().manual_seed(1000 * number + round_)
    inputs, targets = held.tensors
    loss = train(model, inputs.float(), targets, draws, config)
    content = RecordDict(
        {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"train_loss": loss, "num-examples": len(inputs)}),
        }
    )
    return Message(content=content, reply_to=message)
