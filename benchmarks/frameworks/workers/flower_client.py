"""What a Flower client does. A module of its own, so that Ray sends its name to the actors and not its code."""

from functools import cache
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from shared import new_optimiser, task_in
from torch import nn

app = ClientApp()


@cache
def model_in(folder: Path, threads: int) -> nn.Module:
    """One model per actor, made once."""
    torch.set_num_threads(threads)
    return task_in(folder).new_model()


@app.train()
def train(message: Message, context: Context) -> Message:
    """The local steps of one device in one round."""
    config = message.content["config"]
    folder, number = Path(str(config["folder"])), int(config["server-round"]) - 1
    device = int(context.node_config["partition-id"])
    task, model = task_in(folder), model_in(folder, int(config["threads"]))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    model.train()
    optimiser = new_optimiser(model, task.settings)
    for step in range(task.steps):
        inputs, targets = task.batch(number, device, step)
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimiser.step()
    sizes = MetricRecord({"num-examples": task.members.shape[1]})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": sizes}), reply_to=message)
