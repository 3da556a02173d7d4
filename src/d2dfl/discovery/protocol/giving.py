"""The side of a device that gives: who asks it for what, what each gets, and what it tells them."""

from dataclasses import dataclass, field

from d2dfl.discovery.constants import SAME
from d2dfl.discovery.plain.reference import LEAST
from d2dfl.discovery.protocol.holdings import Holdings, List
from d2dfl.discovery.protocol.messages import Offer


@dataclass
class Requester:
    """Somebody who asks for something."""

    asked: List
    prices: List  # what a datapoint less would cost it


@dataclass
class Giving:
    """Requests to a transmitter."""

    holdings: Holdings
    requesters: dict[int, Requester] = field(default_factory=dict)  # in the order in which they joined
    share: List = field(default_factory=list)  # of what they ask for, that they get

    def __post_init__(self) -> None:
        self.share = [1.0] * len(self.holdings.counts)

    def latest_first(self) -> list[int]:
        return list(reversed(self.requesters))

    def demand(self, without: int | None = None) -> List:
        """What is asked for by label, by all or all but one."""
        found = [0.0] * len(self.share)
        for name in self.latest_first():
            if name != without:
                for label, amount in enumerate(self.requesters[name].asked):
                    found[label] += amount
        return found

    def shares(self, demand: List) -> List:
        return [
            spare / wanted if wanted > spare else 1.0
            for wanted, spare in zip(demand, self.holdings.surplus, strict=True)
        ]

    def set_request(self, name: int, asked: List, prices: List) -> None:
        """Replace what somebody asks for; nothing at all takes it off the list."""
        if any(amount > 0.0 for amount in asked):
            if name in self.requesters:
                self.requesters[name].asked, self.requesters[name].prices = asked, prices
            else:
                self.requesters[name] = Requester(asked, prices)
        else:
            self.requesters.pop(name, None)

    def affected(self, shares: List, besides: int) -> list[int]:
        """Who gets another share of something that it asks for."""
        return [
            name
            for name in self.latest_first()
            if name != besides
            and any(
                asked > 0.0 and abs(new - old) > SAME
                for asked, new, old in zip(self.requesters[name].asked, shares, self.share, strict=True)
            )
        ]

    def settle(self, shares: List) -> float:
        """Let new shares hold. Returns by how much the device's own reward changed, weighed."""
        before = self.holdings.standing()
        self.share = shares
        self.holdings.given = [
            min(wanted, spare) for wanted, spare in zip(self.demand(), self.holdings.surplus, strict=True)
        ]
        return self.holdings.weight * (self.holdings.standing() - before)

    def leave(self, name: int) -> None:
        """Somebody is gone. Others keep their shares until the next request, as nobody pays for telling them."""
        if self.requesters.pop(name, None) is not None:
            self.holdings.given = [wanted * share for wanted, share in zip(self.demand(), self.share, strict=True)]

    def granted(self, name: int) -> List:
        if name not in self.requesters:
            return [0.0] * len(self.share)
        return [asked * share for asked, share in zip(self.requesters[name].asked, self.share, strict=True)]

    def offer(self, name: int, asked: List) -> Offer:
        """What is told to somebody who asks for so much."""
        holdings, others = self.holdings, self.demand(without=name)
        taking = [0.0] * len(others)
        for other in self.latest_first():
            if other != name:
                for label, amount in enumerate(self.requesters[other].asked):
                    taking[label] += amount * self.requesters[other].prices[label]
        taking = [value / wanted if wanted > 0.0 else 0.0 for value, wanted in zip(taking, others, strict=True)]
        after, sent, cost = holdings.state()
        mine = self.requesters[name].asked if name in self.requesters else [0.0] * len(others)
        for label, spare in enumerate(holdings.surplus):  # as it would stand without this one
            back = min(others[label] + mine[label], spare) - min(others[label], spare)
            after[label] += back
            sent[label] += back
        here, giving = holdings.worth(after, sent, cost), [0.0] * len(others)
        for label, spare in enumerate(holdings.surplus):
            more = min(others[label] + asked[label], spare) - min(others[label], spare)
            if more > LEAST:
                fewer, fewer_sent = list(after), list(sent)
                fewer[label] -= more
                fewer_sent[label] -= more
                giving[label] = holdings.weight * (holdings.worth(fewer, fewer_sent, cost) - here) / more
        return Offer(tuple(others), tuple(giving), tuple(taking))

    def introduction(self) -> List:
        """Worth of giving a datapoint while nobody asks; what would be a loss is told as 0."""
        holdings, found = self.holdings, [0.0] * len(self.share)
        here = holdings.worth(holdings.counts, holdings.counts, 0.0)
        for label, spare in enumerate(holdings.surplus):
            amount = min(spare, holdings.threshold[label])
            if amount > LEAST:
                fewer = list(holdings.counts)
                fewer[label] -= amount
                gain = holdings.worth(fewer, fewer, 0.0) - here
                found[label] = max(0.0, holdings.weight * gain / amount)
        return found
