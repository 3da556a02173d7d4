"""Devices that crash and come back, or do not, under a radio that loses: random schedules, each checked when all has come to rest.

A schedule draws a network (5 to 14 devices), the rules of the reward, the weather, and who is away from when until when: shortly, for
longer than others wait, for good, twice; nobody, some, many. Then devices look for their links (discovery/protocol). Checked:

- the run ends: everybody that is there has come to the end, and nobody waits for anything;
- no link that only one side believes in, and both sides agree on the amounts; nobody has a link with somebody who was dead before it
  came to the end; who was given up has none;
- nobody gives what it needs itself, or a label that it does not trust the receiver with;
- who keeps a cluster's account is there, and knows of every member that has revised since;
- nobody has spent more than its account, and every message is counted where it was sent.

A schedule that fails prints the line that runs it again.

    python benchmarks/crashes.py [--schedules 400] [--first 0]
    python benchmarks/crashes.py --seed 57
"""

import argparse
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from at_once import prepared
from d2dfl import Config, Network, preset
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.own_clock import FINISH, OwnClock
from d2dfl.discovery.protocol.weather import FOR_GOOD, Away, LossyRadio, Weather, lossy_radio
from d2dfl.rng import stream

RULES: tuple[dict[str, object], ...] = (
    {},
    {"network.threshold": "0.05"},
    {"reward.budget_rule": "ratio"},
    {"reward.budget_weight": 0.0},  # then nobody keeps accounts of clusters
)
CLOSE = 1e-9


class Wrong(Exception):
    """What must not be."""


@dataclass(frozen=True)
class Schedule:
    """One draw."""

    seed: int
    config: Config
    weather: Weather
    away: Away

    def with_(self, weather: Weather, away: Away) -> "Schedule":
        """The same network with something else happening to it."""
        return replace(self, weather=weather, away=away)

    @property
    def line(self) -> str:
        return f"again: python benchmarks/crashes.py --seed {self.seed}"


def draw(seed: int) -> Schedule:
    """All of a schedule follows from its number."""
    generator = stream(seed, "crashes")
    rules = RULES[generator.integers(len(RULES))]
    devices = int(generator.integers(5, 15))
    changes = {
        "network.devices": devices,
        "network.partitions": int(generator.integers(5, 9)),
        "network.labels_per_device": int(generator.integers(1, 4)),
        "discovery.edges": int(generator.integers(1, 4)),
        "marginal.messages": int(generator.integers(70, 160)),
        "discovery.no_link": bool(generator.random() < 0.8),
    }
    weather = Weather(
        loss=float(generator.choice([0.0, 0.1, 0.3, 0.4])),
        doubling=float(generator.choice([0.0, 0.1, 0.3])),
        delay=float(generator.choice([0.0, 1.0, 4.0])),
    )
    share = generator.choice([0.0, 0.15, 0.4, 0.8])
    away = {name: _spells(generator) for name in range(devices) if generator.random() < share}
    return Schedule(seed, preset("best").with_(**rules, **changes), weather, away)


def _spells(generator: np.random.Generator) -> list[tuple[float, float]]:
    """When a device is away: once or twice, for a while or for good, at the beginning, in the middle or around the end."""
    left = float(generator.choice([60.0, 600.0, 4000.0]) * generator.random())
    if generator.random() < 0.3:
        return [(left, FOR_GOOD)]
    back = left + float(generator.choice([30.0, 400.0, 1500.0, 8000.0]) * generator.random())
    if generator.random() < 0.7:
        return [(left, back)]
    again = back + float(generator.choice([50.0, 1000.0]) * generator.random())
    return [(left, back), (again, again + float(generator.choice([400.0, 4000.0]) * generator.random()))]


def run(schedule: Schedule) -> tuple[list[OwnClock], LossyRadio]:
    network = Network.generate(schedule.config, schedule.seed)
    fleet, rules = prepared(network, schedule.config, schedule.seed, OwnClock)
    radio = lossy_radio(fleet.devices, schedule.weather, stream(schedule.seed, "weather"), schedule.away)
    radio.introduce()
    radio.run(rules)
    return [device for device in fleet.devices if isinstance(device, OwnClock)], radio


def check(schedule: Schedule, devices: list[OwnClock], radio: LossyRadio) -> None:
    """Everything that must hold."""
    dead = {name: spells[-1][0] + radio.began for name, spells in schedule.away.items() if spells[-1][1] == FOR_GOOD}
    for device, post in zip(devices, radio.posts, strict=True):
        if device.number not in dead:
            _hold(device.ended, f"device {device.number} has not come to the end")
            _hold(post.timer() is None, f"device {device.number} still waits for something")
        _hold(device.spent <= max(device.account, 0), f"device {device.number} has spent more than its account")
    _check_links(devices, dead, radio.ends)
    _check_accounts([device for device in devices if device.number not in dead and not device.left])
    counted = sum(post.sent + post.repeated + post.noticed for post in radio.posts)
    _hold(counted == radio.messages, f"{counted} messages were counted, {radio.messages} sent")
    if not schedule.away:
        charged = sum(device.spent for device in devices) + 2 * FINISH * (len(devices) - 1)
        introductions = sum(len(device.trusts) for device in devices)
        _hold(sum(post.sent for post in radio.posts) == introductions + charged, "accounts are not what was sent")
        _hold(not any(device.gone for device in devices), "somebody was given up who was always there")


def _check_links(devices: list[OwnClock], dead: dict[int, float], ends: dict[int, float]) -> None:
    for receiver in devices:
        for link in receiver.holdings.links:
            if link is not None and receiver.number not in dead:
                name = receiver.holdings.heard[link.slot].device
                _check_link(receiver, devices[name], link.asked, link.granted)
                _check_death(receiver.number, name, dead, ends)
        for name in receiver.giving.requesters:  # receiver gives here
            if receiver.number not in dead:
                there = {
                    devices[name].holdings.heard[link.slot].device for link in devices[name].holdings.links if link
                }
                _hold(receiver.number in there, f"{receiver.number} believes in a link to {name}, which does not")
                _check_death(receiver.number, name, dead, ends)
        holdings, giving = receiver.holdings, receiver.giving
        got = np.sum([giving.granted(name) for name in giving.requesters], axis=0)
        _hold(bool(np.allclose(got, holdings.given)), f"{receiver.number} gives other than it says")
        _hold(
            bool((np.array(holdings.given) <= np.array(holdings.surplus) + CLOSE).all()), "more is given than is spare"
        )


def _check_link(receiver: Device, transmitter: Device, asked: list[float], granted: list[float]) -> None:
    names = f"{transmitter.number} to {receiver.number}"
    moves = np.allclose(transmitter.giving.granted(receiver.number), granted, rtol=CLOSE)
    _hold(bool(moves), f"the sides of the link {names} differ on what moves")
    known = transmitter.giving.requesters.get(receiver.number)
    _hold(known.asked == asked if known else not any(asked), f"the sides of the link {names} differ on what is asked")
    trusted = transmitter.trusts[receiver.number]
    _hold(not any(a > 0.0 and not t for a, t in zip(granted, trusted, strict=True)), f"{names}: a label without trust")


def _check_death(name: int, other: int, dead: dict[int, float], ends: dict[int, float]) -> None:
    """Who was dead before somebody came to the end has no link with it."""
    _hold(other not in dead or dead[other] >= ends[name], f"{name} has a link with {other}, which was dead")


def _check_accounts(members: list[OwnClock]) -> None:
    for cluster, order in enumerate(members[0].clusters.order if members else []):
        here = [device for device in members if device.number in order and not device.gone & set(order)]
        if len(here) == len(order) and here[0].clusters.matter(here[0].holdings):  # nobody has left it
            told = here[0].taken.keys() | {here[0].number}
            revised = {device.number for device in here if device.turns}
            _hold(revised <= told, f"who keeps the account of cluster {cluster} does not know of {revised - told}")


def _hold(ok: bool, otherwise: str) -> None:
    if not ok:
        raise Wrong(otherwise)


def figures(devices: list[OwnClock], radio: LossyRadio) -> Counter[str]:
    return Counter(
        schedules=1,
        messages=radio.messages,
        repeats=sum(post.repeated for post in radio.posts),
        notices=sum(post.noticed for post in radio.posts),
        spells=sum(len(spells) for spells in radio.away.values()),
        links=sum(link is not None for device in devices for link in device.holdings.links),
        left=sum(device.left for device in devices),
        given_up=len(set().union(*(device.gone for device in devices))),
    )


def run_many(first: int, number: int) -> tuple[Counter[str], list[str]]:
    """Figures of all, and a line for each that failed."""
    sums: Counter[str] = Counter()
    wrong = []
    for seed in range(first, first + number):
        schedule = draw(seed)
        try:
            devices, radio = run(schedule)
            check(schedule, devices, radio)
            sums += figures(devices, radio)
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}; {schedule.line}")
    return sums, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="this one alone")
    chosen = parser.parse_args()
    if chosen.seed is not None:
        schedule = draw(chosen.seed)
        print(schedule)
        devices, radio = run(schedule)
        check(schedule, devices, radio)
        print(dict(figures(devices, radio)))
        return
    sums, wrong = run_many(chosen.first, chosen.schedules)
    print(f"seeds {chosen.first} to {chosen.first + chosen.schedules - 1}:", dict(sums))
    print("\n".join(wrong) or "nothing wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
