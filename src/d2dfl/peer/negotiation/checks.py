"""Whether a message of a member fits where this device stands. What does not is refused before the learner sees it.

Types and bounds were looked at when it was decoded (wire/negotiation.py); here: vectors of the right length, names of clusters that are
there, answers to what was asked, a token where none is, one request at a time.
"""

from collections import Counter

from d2dfl.discovery.protocol import messages as learner
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.peer.wire.messages import WireError

ANSWERS: dict[type, type] = {
    learner.Ask: learner.Offer,
    learner.Request: learner.Grant,
    learner.Now: learner.Reply,
    learner.Token: learner.Taken,
    learner.NextCycle: learner.Ready,
    learner.End: learner.Taken,
    learner.Done: learner.Taken,
    learner.Outside: learner.Total,
}


class Questions:
    """Which answers are due from whom."""

    def __init__(self) -> None:
        self._due: Counter[tuple[int, type]] = Counter()
        self._requests: set[int] = set()  # whose request this device has not answered

    def asked(self, receiver: int, content: learner.Content) -> None:
        """This device says something."""
        if type(content) in ANSWERS:
            self._due[receiver, ANSWERS[type(content)]] += 1
        if isinstance(content, learner.Grant):
            self._requests.discard(receiver)

    def check(self, sender: int, content: learner.Content, device: Device) -> None:
        """Somebody says something; raises a WireError where it does not fit."""
        _check_sizes(content, len(device.holdings.counts), len(device.clusters.budget))
        kind = type(content)
        if kind in ANSWERS.values():
            if not self._due[sender, kind]:
                raise WireError("an answer to nothing")
            self._due[sender, kind] -= 1
        at_once = isinstance(device, OwnClock)
        if isinstance(content, learner.Request):
            if sender in self._requests:
                raise WireError("two requests at once")
            self._requests.add(sender)
        elif isinstance(content, learner.Token):
            clusters, rules = len(device.clusters.budget), device.rules
            sizes = {len(content.use), clusters if content.best is None else len(content.best[1])}
            known = rules is not None and content.cycle == device.cycle < rules.cycles
            if at_once or device.token is not None or sizes != {clusters} or not known:
                raise WireError("a token that does not fit")
        elif isinstance(content, learner.NextCycle):
            if at_once or device.token is not None or device.rules is None or device.cycle + 1 >= device.rules.cycles:
                raise WireError("a cycle that does not fit")
        elif isinstance(content, learner.Done | learner.Outside) and not at_once:
            raise WireError("of another kind of discovery")
        elif isinstance(content, learner.Outside) and device.number not in _heads(device):
            raise WireError("not the first of a cluster")


def _heads(device: Device) -> list[int]:
    """Who keeps the account of a cluster."""
    return [members[0] for members in device.clusters.order if members]


def _check_sizes(content: learner.Content, labels: int, clusters: int) -> None:
    vectors: list[learner.Vector] = []
    if isinstance(content, learner.Introduction):
        vectors = [content.spare, content.giving]
    elif isinstance(content, learner.Ask):
        vectors = [content.asked]
    elif isinstance(content, learner.Request):
        vectors = [content.asked, content.prices]
    elif isinstance(content, learner.Reply):
        vectors = [content.prices]
    elif isinstance(content, learner.Offer):
        vectors = [content.demand, content.giving, content.taking]
    elif isinstance(content, learner.Now) or (isinstance(content, learner.Grant) and not content.refused):
        vectors = [content.granted, content.offer.demand, content.offer.giving, content.offer.taking]
    if any(len(vector) != labels for vector in vectors):
        raise WireError("as many numbers as there are labels, or not")
    named = [content.cluster] if isinstance(content, learner.Introduction | learner.Reply) else []
    named += [cluster for cluster, _ in content.outside] if isinstance(content, learner.Grant) else []
    if any(cluster >= clusters for cluster in named):
        raise WireError("no such cluster")
