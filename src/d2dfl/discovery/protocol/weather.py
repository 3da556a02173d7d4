"""A radio that loses, delays and doubles messages, and devices that are away for a while or for good: virtual time, one process."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.lossy import Envelope, Post
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules

FOR_GOOD = float("inf")
EVENTS = 50_000_000  # more than any discovery has


@dataclass(frozen=True)
class Weather:
    """What may happen to a message on its way, which takes one unit of time at least."""

    loss: float = 0.0  # probability
    doubling: float = 0.0  # probability
    delay: float = 0.0  # mean of what it takes longer; 0: all take as long


@dataclass
class Radio:
    """Carries envelopes between posts.

    away[device]: from when until when it neither hears nor sends, counted from when introductions are over; then it goes on.
    """

    posts: list[Post]
    weather: Weather
    generator: np.random.Generator
    away: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    messages: int = 0  # all that was sent, repeats and notices with it
    now: float = 0.0
    heard: list[Envelope] = field(default_factory=list)  # all that arrived, if kept
    keep: bool = False

    def __post_init__(self) -> None:
        self._line: list[tuple[float, int, int, Envelope | None]] = []
        self._sent = 0
        self._began = FOR_GOOD  # when devices begin to revise
        self._back: set[int] = set()  # who has come back

    def introduce(self) -> None:
        for post in self.posts:
            self._carry(post.post(post.device.introductions(), self.now))
            post.await_introductions(self.now)
            self._set_timer(post)
        self._run()

    def run(self, rules: Rules) -> None:
        """Everybody revises by its own clock until all that are not gone know of the end."""
        self._began = self.now
        for name, (_, back) in self.away.items():
            if back != FOR_GOOD:
                self._push(self._began + back, name, None)
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
        left, back = self.away.get(name, (FOR_GOOD, FOR_GOOD))
        return self._began + left <= self.now < self._began + back

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
            elif name in self.away and name not in self._back and self.now >= self._began + self.away[name][1]:
                self._back.add(name)
                self._carry(post.come_back(self.now))
            else:
                at = post.timer()
                if at is None or at > self.now:
                    continue  # set before something made it unnecessary
                self._carry(post.tick(self.now))
            self._set_timer(post)
        raise RuntimeError("a discovery over a lossy radio does not end")


def radio_of(
    devices: Sequence[Device],
    weather: Weather,
    generator: np.random.Generator,
    away: Mapping[int, tuple[float, float]] | None = None,
    keep: bool = False,
) -> Radio:
    """Of devices with clocks of their own."""
    posts = [Post(device) for device in devices if isinstance(device, OwnClock)]
    return Radio(posts, weather, generator, away or {}, keep=keep)
