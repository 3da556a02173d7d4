"""The registry of methods. Plain records: a method's own file, and the compiler with it, is imported when it is called."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from d2dfl.discovery.methods import costs
from d2dfl.discovery.methods.costs import Costs
from d2dfl.errors import UserError, install_with
from d2dfl.registry import entry_named

if TYPE_CHECKING:
    from d2dfl.discovery.task import LinkChoice, Task


@dataclass(frozen=True)
class Method:
    """One way to find the graph, and all that is special about it."""

    name: str
    title: str
    place: (
        "Callable[[Task], LinkChoice] | str"  # the function that finds the links, or "file:name" of it in this folder
    )
    joint: bool  # can choose several links per device at once
    summary: str
    learns: bool = True  # chooses by rewards; rules look at links alone
    by_default: bool = True  # among "all" where methods are trained side by side
    drawn: bool = False  # among those that are drawn side by side unless others are named
    package: str = ""  # that it needs and that is not installed with the others
    extra: str = ""  # of d2dfl, which brings that package
    reference: bool = False  # knows everything: what others are measured by
    costs: Costs | None = None  # what it takes in memory and time, where that is known
    least: Mapping[str, int] = field(
        default_factory=dict
    )  # settings under which it does all that it does, but little of it

    @property
    def find(self) -> "Callable[[Task], LinkChoice]":
        """The function itself; its file, and the compiler with it, is imported when somebody asks for it."""
        if not isinstance(self.place, str):
            return self.place
        file, name = self.place.split(":")
        found: Callable[[Task], LinkChoice] = getattr(import_module(f"{__name__}.{file}"), name)
        return found

    @property
    def installation(self) -> str:
        """The command that brings its package."""
        return install_with(self.extra) if self.extra else f"pip install {self.package}"


NO_EXCHANGE = "none"  # the method without links: the zero of every share
ALL = "all"  # not a method: those that are compared by default, or where graphs are drawn, every one
IID = "iid"  # not a method: the same data shuffled over the devices, the one of every share
IID_TITLE = "i.i.d. shuffle"

ENOUGH = 100  # messages with which our learner looks for links in the tiny network that it is warmed up on

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "marginal",
            "Marginal (ours)",
            "marginal:find",
            True,
            "log-linear learning on marginal contributions",
            drawn=True,
            costs=costs.MARGINAL,
            least={"marginal.messages": ENOUGH},
        ),
        Method(
            "qlearning",
            "Q-learning (paper)",
            "qlearning:find",
            False,
            "the paper's learner: softmax over mean rewards",
            drawn=True,
            costs=costs.QLEARNING,
            least={"qlearning.steps": 2},
        ),
        Method(
            "closest",
            "Closest",
            "rules:closest",
            False,
            "the nearest device",
            learns=False,
            drawn=True,
            costs=costs.CLOSEST,
        ),
        Method(
            "most-trusted",
            "Most trusted",
            "rules:most_trusted",
            False,
            "the transmitter that trusts with most partitions",
            learns=False,
            costs=costs.MOST_TRUSTED,
        ),
        Method(
            "uniform",
            "Uniform",
            "rules:uniform",
            False,
            "a random candidate",
            learns=False,
            drawn=True,
            costs=costs.UNIFORM,
        ),
        Method(
            NO_EXCHANGE,
            "No exchange",
            "rules:none",
            False,
            "no link at all",
            learns=False,
            costs=costs.NONE,
        ),
        Method(
            "gcn",
            "GCN",
            "gcn:find",  # imports torch-geometric: seconds
            False,
            "a graph network at a server (needs the extra gcn)",
            learns=False,
            by_default=False,
            package="torch_geometric",
            extra="gcn",
            costs=costs.GCN,
            least={"gcn.epochs": 1, "gcn.systems": 1},
        ),
        Method(
            "bandit",
            "Bandit",
            "bandit:find",
            False,
            "UCB1 or EXP3 per device on the paper's reward",
            by_default=False,
            costs=costs.BANDIT,
            least={"bandit.steps": 2},
        ),
        Method(
            "greedy",
            "Greedy (central)",
            "greedy:find",
            True,
            "a server adds the best link until none gains",
            by_default=False,
            costs=costs.GREEDY,
        ),
        Method(
            "optimum",
            "Optimum (reference)",
            "optimum:find",
            True,
            "branch and bound, or multi-start search, with full knowledge",
            by_default=False,
            reference=True,
            costs=costs.OPTIMUM,
            least={"optimum.starts": 1, "optimum.sweeps": 1, "optimum.messages": ENOUGH},
        ),
    )
}


def method_named(name: str) -> Method:
    """The method of this name, or a UserError that lists the names."""
    return entry_named("method", name, METHODS)


def methods_listed(text: str) -> list[str]:
    """Names from a list separated by commas, each once."""
    names = [name.strip() for name in text.split(",")]
    if ALL in names:
        raise UserError(f"{text!r:.80} names {ALL} beside others: give it alone, or the methods one by one")
    return _each_once(names)


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(method_named(name).name for name in names))


def methods_named(given: str | Iterable[str]) -> list[str]:
    """Names one by one, or from a text: a list separated by commas, or "all", those that are compared by default."""
    if given == ALL:
        return [method.name for method in METHODS.values() if method.by_default]
    return methods_listed(given) if isinstance(given, str) else _each_once(given)


def methods_lacking() -> list[str]:
    """Methods whose package is not installed."""
    return [method.name for method in METHODS.values() if method.package and find_spec(method.package) is None]


def reference_method() -> Method:
    """The method that knows everything."""
    return next(method for method in METHODS.values() if method.reference)
