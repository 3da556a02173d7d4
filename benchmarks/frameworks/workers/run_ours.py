"""Our engine."""

from importlib.metadata import version

from shared import Clock, options, task_in

from d2dfl.config import FederationConfig
from d2dfl.federation import MODELS, Federated, train


def main() -> None:
    chosen = options()
    task, clock = task_in(chosen.folder), Clock(chosen)
    settings = FederationConfig(
        rounds=chosen.rounds,
        interval=task.steps,
        participation=task.settings["participation"],
        batch=task.settings["batch"],
        learning_rate=task.settings["learning_rate"],
        momentum=task.settings["momentum"],
        momentum_rule="reset",  # as the stateless clients of the others
        evaluate_every=chosen.rounds,
        device="cpu",
    )
    data = Federated(
        task.inputs, task.targets, list(task.members), task.test_inputs, task.test_targets, task.settings["outputs"]
    )
    model = MODELS[task.settings["model"]]
    clock.wait()
    curves = train(model, data, settings, task.settings["seed"], on_round=lambda _: clock.tick())
    clock.say({"accuracy": curves.last_score, "loss": curves.losses[-1], "version": f"d2dfl {version('d2dfl')}"})


if __name__ == "__main__":
    main()
