"""One federation on a Ray cluster: workers hold portions of the devices with their data, and train them round after round.

A worker takes the round's model from the object store and returns sums. It keeps nothing that a later round needs, so whatever
dies with it is done again by another one, with the same bits.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.config.sections.learning import ENGINES
from d2dfl.errors import UserError
from d2dfl.experiment.grid.engines import connected_ray, one_line
from d2dfl.experiment.grid.worker import Worker, outcome_of, versions
from d2dfl.federation import SCHEMES
from d2dfl.federation.optimisers import Memory
from d2dfl.federation.portions import Cluster, Portions
from d2dfl.federation.schemes import scheme_named
from d2dfl.federation.workplace import MODEL, Order, Outcome
from d2dfl.progress import Share, silent
from d2dfl.registry import entry_named

START_S = 120.0  # that workers have to start in: a machine may load PyTorch from a slow disk
DEATHS = 3  # of workers over the same part of a round, until it is taken for the cause


@dataclass
class Member:
    """A worker, as the driver sees it."""

    actor: Any
    power: float  # share of the work that it gets
    where: str
    alive: bool = True


@dataclass
class RayCluster:
    """Workers on all machines of a cluster, for as long as a comparison lasts."""

    ray: Any
    settings: FederationConfig
    members: list[Member] = field(default_factory=list)
    trainings: int = 0

    def place(self, portions: Portions) -> "RayPlace":
        """Share federations out; data is on its way from now on."""
        self.trainings += 1
        if not self.living:
            self.enlist()
        return RayPlace(self, portions, self.trainings)

    @property
    def living(self) -> list[Member]:
        return [member for member in self.members if member.alive]

    def enlist(self) -> None:
        """Start a worker on each GPU, or where there is none on each machine; those that do not come are left out."""
        self.close()
        actors = self.ray.remote(Worker)
        for node, cpus, gpus in _stations(self.ray, self.settings):
            strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            options = {"num_cpus": cpus, "num_gpus": gpus, "scheduling_strategy": strategy}
            actor = actors.options(**options, max_restarts=0, max_task_retries=0).remote(cpus)
            self.members.append(Member(actor, gpus or cpus, node["NodeManagerAddress"]))
        asked = {member.actor.versions.remote(): member for member in self.members}
        ready, late = self.ray.wait(list(asked), num_returns=len(asked), timeout=START_S)
        for answer in late:
            self.dismiss(asked[answer])
        for answer in ready:
            self._check(asked[answer], answer)
        if not self.living:
            raise UserError(
                f"no worker starts on the Ray cluster within {START_S:g} s: look at `ray status` for free CPUs"
            )

    def _check(self, member: Member, answer: Any) -> None:
        """Leave out a worker that died; refuse one that would compute other bits."""
        try:
            theirs = self.ray.get(answer)
        except self.ray.exceptions.RayTaskError as error:
            raise UserError(f"a worker on {member.where} cannot start: {_words(error)}") from error
        except self.ray.exceptions.RayError:
            self.dismiss(member)
            return
        for name, version in versions().items():
            if theirs[name] != version:
                raise UserError(
                    f"{member.where} has {name} {theirs[name]} and this machine {version}: install the same on all machines"
                )

    def close(self) -> None:
        """Let all workers go."""
        for member in self.living:
            self.dismiss(member)
        self.members = []

    def dismiss(self, member: Member) -> None:
        """Count on a worker no longer."""
        member.alive = False
        with suppress(Exception):  # it is dead, or will be
            self.ray.kill(member.actor)


def _stations(ray: Any, settings: FederationConfig) -> list[tuple[Any, int, int]]:
    """Where workers go: machine, CPUs, GPUs of each worker."""
    nodes = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: str(node["NodeManagerAddress"]))
    cpus = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in nodes}
    gpus = {node["NodeID"]: int(node["Resources"].get("GPU", 0)) for node in nodes}
    if settings.device != "cpu" and any(gpus.values()):
        return [
            (node, max(1, cpus[node["NodeID"]] // gpus[node["NodeID"]]), 1)
            for node in nodes
            for _ in range(gpus[node["NodeID"]])
        ]
    if settings.device == "cuda":
        raise UserError("federation.device cannot be cuda: no machine of the Ray cluster offers a GPU; give cpu")
    found = [(node, cpus[node["NodeID"]], 0) for node in nodes if cpus[node["NodeID"]]]
    if not found:
        raise UserError("the machines of the Ray cluster offer no CPU: start them with `ray start --num-cpus=N`")
    return found


@dataclass(frozen=True)
class ClusterTask:
    """A part of a round for one worker, again and again if need be."""

    number: int  # of the portion
    entries: slice  # of the whole order
    order: Order
    rows: Any  # [entry] in the memory of all devices

    def __len__(self) -> int:
        return len(self.order.entries)


class RayPlace:
    """Federations that are shared out over the workers of a cluster."""

    def __init__(self, cluster: RayCluster, portions: Portions, training: int) -> None:
        self.cluster, self.portions, self.training = cluster, portions, training
        members = cluster.living
        self.bounds = list(portions.cut([member.power for member in members]))
        self.owners = members
        # Kept by this process: a portion outlives the worker and the machine that it was sent to.
        self.kept = [cluster.ray.put(portions.portion(bounds)) for bounds in self.bounds]

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        self.portions.check(order)
        ray, rule = self.cluster.ray, self.portions.job.settings.momentum_rule
        memory = {} if self.portions.scheme.server_step else memory  # the server's own stays here
        common = memory if rule == "mix" else {}
        shared = ray.put({name: held.detach().cpu().numpy() for name, held in {MODEL: models, **common}.items()})
        own = memory if rule == "keep" else {}
        tasks = list(self._tasks(order))
        deaths = [0] * len(self.bounds)
        pending = {self._begin(task, shared, own): task for task in tasks}
        outcomes: dict[int, Outcome] = {}
        done = 0
        while pending:
            (answered, *_), _ = ray.wait(list(pending), num_returns=1)
            task = pending.pop(answered)
            try:
                answer = ray.get(answered)
            except ray.exceptions.RayTaskError as error:
                raise _in_words(error) from error
            except ray.exceptions.RayError as error:
                deaths[task.number] += 1
                self._replace(task, error, deaths[task.number])
                pending[self._begin(task, shared, own)] = task
                continue
            outcomes[task.number] = outcome_of(answer)
            for name, rows in answer.memory.items():
                memory[name][task.rows] = torch.from_numpy(rows.copy()).to(memory[name])
            done += len(task)
            tell(done / len(order.entries))
        nobody = Outcome(np.empty((order.steps, 0), dtype=np.float32), [{} for _ in self.portions.runs])
        return [outcomes[task.number] for task in tasks] or [nobody]

    def _tasks(self, order: Order) -> Iterator[ClusterTask]:
        for number, bounds in enumerate(self.bounds):
            entries, part = order.between(bounds)
            if len(part.entries):
                yield ClusterTask(number, entries, part, torch.from_numpy(order.memory[entries]))

    def _begin(self, task: ClusterTask, shared: Any, memory: Memory) -> Any:
        own = {name: held[task.rows].cpu().numpy() for name, held in memory.items()}
        actor = self.owners[task.number].actor
        return actor.train.remote(self.training, [self.kept[task.number]], shared, own, task.order)

    def _replace(self, task: ClusterTask, error: Exception, deaths: int) -> None:
        """Give a portion to a worker that lives: the one with the least to do for its power."""
        self.cluster.dismiss(self.owners[task.number])
        if deaths >= DEATHS:
            raise UserError(
                f"{deaths} workers died over the same part of a round, the last with: {one_line(error):.300}"
            ) from error
        if not self.cluster.living:
            self.cluster.enlist()

        def busy(member: Member) -> float:
            return sum(owner is member for owner in self.owners) / member.power

        self.owners = list(self.owners)
        self.owners[task.number] = min(self.cluster.living, key=busy)


def _words(error: Any) -> str:
    return one_line(getattr(error, "cause", None) or error)


def _in_words(error: Any) -> Exception:
    """What a worker raised: a sentence for the user stays one."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, UserError) else RuntimeError(f"a worker failed: {_words(error)}")


def check_engine(name: str, settings: FederationConfig) -> str:
    """Refuse an engine that is not there, or cannot train by these settings; a sentence where it can, but at a price."""
    entry_named("engine", name, dict.fromkeys(ENGINES))
    scheme = scheme_named(settings.scheme)
    if name == "local":
        return ""
    if not (scheme.groups or scheme.server_step):
        able = ", ".join(other.name for other in SCHEMES.values() if other.groups or other.server_step)
        raise UserError(
            f"the scheme {scheme.name} cannot train on a cluster, where devices are added up by a server on the way: give one "
            f"of {able}, or --engine local"
        )
    if settings.momentum_rule == "keep" and not scheme.server_step:
        return (
            "every device keeps its momentum from round to round, which crosses the network twice in each: "
            "federation.momentum_rule=reset or mix sends one model to a machine and a few sums back"
        )
    return ""


@contextmanager
def cluster_for(name: str, settings: FederationConfig) -> Iterator[Cluster | None]:
    """The cluster on which federations train; None: in this process."""
    check_engine(name, settings)
    if name == "local":
        yield None
        return
    with connected_ray() as ray:
        for module in [one for title, one in sys.modules.items() if title.startswith("d2dfl_file_")]:
            ray.cloudpickle.register_pickle_by_value(module)  # a user's file is on this machine alone
        cluster = RayCluster(ray, settings)
        try:
            yield cluster
        finally:
            cluster.close()
