"""A radio that loses, delays and doubles messages, and devices that are away for a while or for good: virtual time, one process."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.envelopes import Envelope
from d2dfl.discovery.protocol.lossy import Post
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules

FOR_GOOD = float("inf")
EVENTS = 50_000_000  # more than any discovery has

Away = Mapping[int, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Weather:
    """What may happen to a message on its way, which takes one unit of time at least."""

    loss: float = 0.0  # probability
    doubling: float = 0.0  # probability
    delay: float = 0.0  # mean of what it takes longer; 0: all take as long


@dataclass
class LossyRadio:
    """Carries envelopes between posts.

    away[device]: from when until when it neither hears nor sends, once or several times, counted from when introductions are over; in
    between it goes on. FOR_GOOD: it never comes back.
    """

    posts: list[Post]
    weather: Weather
    generator: np.random.Generator
    away: Away = field(default_factory=dict)
    messages: int = 0  # all that was sent, repeats and notices with it
    now: float = 0.0
    heard: list[Envelope] = field(default_factory=list)  # all that arrived, if kept
    keep: bool = False
    ends: dict[int, float] = field(default_factory=dict)  # when each device came to the end

    def __post_init__(self) -> None:
        self._line: list[tuple[float, int, int, Envelope | None]] = []
        self._sent = 0
        self.began = FOR_GOOD  # when devices begin to revise
        self._returns: dict[int, list[float]] = {}  # when who will come back, the next time last

    def introduce(self) -> None:
        for post in self.posts:
            self._carry(post.post(post.device.introductions(), self.now))
            post.await_introductions(self.now)
            self._set_timer(post)
        self._run()

    def run(self, rules: Rules) -> None:
        """Everybody revises by its own clock until all that are not gone know of the end."""
        self.began = self.now
        for name, spells in self.away.items():
            times = sorted((self.began + back for _, back in spells if back != FOR_GOOD), reverse=True)
            self._returns[name] = times
            for time in times:
                self._push(time, name, None)
        for post in self.posts:
            post.device.rules = rules._replace(cycles=1)  # as in Fleet.run_at_once
            post.post(post.device.first_wake(), self.now)
            self._set_timer(post)
        self._run()

    def _push(self, time: float, name: int, envelope: Envelope | None) -> None:
        heapq.heappush(self._line, (time, self._sent, name, envelope))
        self._sent += 1

    def _set_timer(self, post: Post) -> None:
        at = post.timer()
        if at is not None:
            self._push(at, post.device.number, None)

    def _carry(self, envelopes: list[Envelope]) -> None:
        weather = self.weather
        for envelope in envelopes:
            self.messages += 1
            for _ in range(1 + (self.generator.random() < weather.doubling)):
                if self.generator.random() >= weather.loss:
                    takes = 1.0 + (weather.delay * self.generator.exponential() if weather.delay else 0.0)
                    self._push(self.now + takes, envelope.receiver, envelope)

    def _is_away(self, name: int) -> bool:
        return any(self.began + left <= self.now < self.began + back for left, back in self.away.get(name, ()))

    def _comes_back(self, name: int) -> bool:
        """Whether it was away until now."""
        returns = self._returns.get(name)
        if not returns or returns[-1] > self.now:
            return False
        returns.pop()
        return True

    def _run(self) -> None:
        for _ in range(EVENTS):
            if not self._line:
                return
            self.now, _, name, envelope = heapq.heappop(self._line)
            if self._is_away(name):
                continue
            post = self.posts[name]
            if envelope is not None:
                if self.keep:
                    self.heard.append(envelope)
                self._carry(post.arrive(envelope, self.now))
            elif self._comes_back(name):
                self._carry(post.come_back(self.now))
            else:
                at = post.timer()
                if at is None or at > self.now:
                    continue  # set before something made it unnecessary
                self._carry(post.tick(self.now))
            self._set_timer(post)
            if post.device.ended:
                self.ends.setdefault(name, self.now)
        raise RuntimeError("a discovery over a lossy radio does not end")


def lossy_radio(
    devices: Sequence[Device],
    weather: Weather,
    generator: np.random.Generator,
    away: Away | None = None,
    keep: bool = False,
) -> LossyRadio:
    """A radio for devices with clocks of their own."""
    posts = [Post(device) for device in devices if isinstance(device, OwnClock)]
    return LossyRadio(posts, weather, generator, away or {}, keep=keep)
