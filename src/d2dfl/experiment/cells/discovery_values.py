"""What is known of a graph before anything moves, as plain values of a cell. All of it is expected."""

from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import share_of
from d2dfl.experiment.cells.cell import Values
from d2dfl.network import Network


def discovery_values(item: Discovery) -> Values:
    """What the cells of every kind of run say of the graph that was found."""
    worth = item.evaluation
    return {
        "met": worth.labels_satisfied.tolist(),  # R43: by the threshold and the rule that it was found with
        "lacked": _lacked(item.network),
        "arrived": worth.datapoints_moved - worth.datapoints_lost,
        "success": worth.success_probability,
        "inter": worth.inter_cluster_share,
        "messages": item.messages / item.network.devices,
    }


def _lacked(network: Network) -> float:
    """Datapoints that devices would ask for if everybody could give them (R44)."""
    return float(network.need.sum() if network.request is None else network.request.sum())


def graph_values(item: Discovery, best: float | None) -> Values:
    """The cell of a graph that nobody trains with, without the seconds, which a rerun may change."""
    worth = item.evaluation
    return {
        **discovery_values(item),
        "objective": worth.objective,
        "objective_no_exchange": worth.no_exchange,
        "share": None if best is None else share_of(worth.objective, best, worth.no_exchange),
        "expected_before": dict(worth.distance_before),
        "expected_after": dict(worth.distance_after),
        "expected_moved": worth.datapoints_moved,
        "expected_lost": worth.datapoints_lost,
    }
