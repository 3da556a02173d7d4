"""Flower's simulation: a ServerApp with FedAvg, and clients in Ray actors."""

import logging
import warnings
from argparse import Namespace
from importlib.metadata import version

import flower_client
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from shared import Clock, options, task_in, tested


def server(chosen: Namespace, clock: Clock) -> ServerApp:
    task, app = task_in(chosen.folder), ServerApp()

    def after_round(number: int, arrays: ArrayRecord) -> MetricRecord | None:
        if number:
            clock.tick()
        else:
            clock.wait()
        if number == chosen.rounds:
            model = task.new_model()
            model.load_state_dict(arrays.to_torch_state_dict())
            clock.say({**tested(model, task), "version": f"flwr {version('flwr')}, ray {version('ray')}"})
        return None

    @app.main()
    def main(grid: Grid, _context: Context) -> None:
        nodes, share = task.devices, task.settings["participation"]
        strategy = FedAvg(
            fraction_train=share, fraction_evaluate=0.0, min_train_nodes=task.present, min_available_nodes=nodes
        )
        config = ConfigRecord({"folder": str(chosen.folder), "threads": chosen.threads})
        first = ArrayRecord(task.new_model().state_dict())
        strategy.start(grid, first, chosen.rounds, train_config=config, evaluate_fn=after_round)

    return app


def main() -> None:
    chosen = options()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    resources = {"num_cpus": chosen.threads, "num_gpus": 0}
    cores = {"num_cpus": chosen.threads * chosen.processes, "num_gpus": 0, "log_to_driver": False}
    run_simulation(
        server_app=server(chosen, Clock(chosen)),
        client_app=flower_client.app,
        num_supernodes=task_in(chosen.folder).devices,
        backend_config={"client_resources": resources, "init_args": cores},
    )


if __name__ == "__main__":
    main()
