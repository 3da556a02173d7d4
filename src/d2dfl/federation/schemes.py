"""Mixing schedules: after minibatch t, whose models are averaged (R32, R33). A new scheme is one function.

Absent devices (stragglers, and those that do not take part in the round) have zero columns and still receive. They
take no local step either: whatever they learned would be lost in the average.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.mixing import Mixing, mixing_of
from d2dfl.registry import entry_named
from d2dfl.rng import stream


@dataclass(frozen=True)
class Moment:
    """What a scheme is asked: minibatch `step` (from 1) is done by everyone; who averages with whom now?"""

    settings: FederationConfig
    seed: int
    step: int
    weights: NDArray[np.float64]  # [device] share in an average; 0: absent, or without data

    @property
    def devices(self) -> int:
        return len(self.weights)


def server_average(moment: Moment) -> Mixing | None:
    """FedAvg: every tau_a minibatches the weighted mean of all models goes to all devices."""
    senders = np.nonzero(moment.weights)[0]
    if moment.step % moment.settings.interval or not len(senders):
        return None
    return _broadcast(moment, senders, moment.weights[senders], senders)


def average_each_step(moment: Moment) -> Mixing | None:
    """FedSGD: at every step the weighted mean of what devices send, their gradients, and the model back to all."""
    senders = np.nonzero(moment.weights)[0]
    return _broadcast(moment, senders, moment.weights[senders], senders) if len(senders) else None


def random_neighbours(moment: Moment) -> Mixing | None:
    """Decentralised: every tau_a minibatches each device averages itself and some freshly drawn others."""
    settings = moment.settings
    if moment.step % settings.interval:
        return None
    draws = stream(moment.seed, "neighbours", moment.step)
    drawn = min(settings.neighbours, moment.devices - 1)
    groups: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    sent: list[NDArray[np.int64]] = []
    receives = np.full(moment.devices, -1)
    for device in range(moment.devices):
        others = draws.choice(moment.devices - 1, drawn, replace=False)
        members = np.append(others + (others >= device), device)
        members = members[moment.weights[members] > 0]
        if len(members):
            receives[device] = len(groups)
            groups.append((members, moment.weights[members]))
            sent.append(_all_to(members, [device]))
    return mixing_of(groups, receives, between=np.concatenate(sent)) if groups else None


def subsets_and_heads(moment: Moment) -> Mixing | None:
    """Semi-decentralised: means inside fixed subsets, and more rarely a server's mean of one device of each."""
    settings = moment.settings
    globally, locally = moment.step % settings.global_every == 0, moment.step % settings.subset_every == 0
    subsets = [members for members in _subsets(moment) if moment.weights[members].sum() > 0]
    if not subsets or not (globally or locally):
        return None
    shares = np.array([moment.weights[members].sum() for members in subsets])
    present = [members[moment.weights[members] > 0] for members in subsets]
    sent = np.concatenate([_all_to(here, members) for here, members in zip(present, subsets, strict=True)])
    if not globally:
        receives = np.full(moment.devices, -1)
        for number, members in enumerate(subsets):
            receives[members] = number
        groups = [(here, moment.weights[here]) for here in present]
        return mixing_of(groups, receives, between=sent)
    draws = stream(moment.seed, "heads", moment.step)
    heads = np.array([draws.choice(here) for here in present])
    if locally and settings.heads == "mixed":
        # Whichever device is drawn holds its subset's mean: the mean of the heads is the mean of all.
        senders = np.concatenate(present)
        return _broadcast(moment, senders, moment.weights[senders], heads, sent)
    return _broadcast(moment, heads, shares, heads)


def _broadcast(
    moment: Moment,
    members: NDArray[np.int64],
    weights: NDArray[np.float64],
    uploading: NDArray[np.int64],
    between: ArrayLike = (),
) -> Mixing:
    """The average of some goes to all."""
    everyone = np.arange(moment.devices)
    return mixing_of([(members, weights)], 0 * everyone, to_server=uploading, from_server=everyone, between=between)


def _all_to(senders: ArrayLike, receivers: ArrayLike) -> NDArray[np.int64]:
    """[model, 2] sender and receiver: every sender's model goes to every receiver but itself."""
    pairs = np.stack(np.meshgrid(senders, receivers), axis=-1).reshape(-1, 2)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.int64)


def _subsets(moment: Moment) -> list[NDArray[np.int64]]:
    order = stream(moment.seed, "subsets").permutation(moment.devices)
    return [
        np.sort(part) for part in np.split(order, range(moment.settings.subset, moment.devices, moment.settings.subset))
    ]


def alone(moment: Moment) -> NDArray[np.int64]:
    """Every device is a group of its own."""
    return np.arange(moment.devices)


def by_subset(moment: Moment) -> NDArray[np.int64]:
    """[device] number of its subset."""
    numbers = np.empty(moment.devices, dtype=np.int64)
    for number, members in enumerate(_subsets(moment)):
        numbers[members] = number
    return numbers


@dataclass(frozen=True)
class Scheme:
    """One way to train together."""

    name: str
    title: str
    mix: Callable[[Moment], Mixing | None]
    round_steps: Callable[[FederationConfig], int]  # minibatches in a round
    shared: bool = True  # all devices hold the same model after a round
    proximal: bool = False  # local steps are pulled to the last global model
    full_gradient: bool = False  # a step sees all local data
    # R41: devices send gradients; the step along their mean, the optimiser and its memory are the server's.
    server_step: bool = False
    # [device] number of its group: before a round's last average, one of all for all, models stay inside their group.
    # So groups train one after the other and are added up on the way. None: anybody may hear anybody at any time.
    groups: Callable[[Moment], NDArray[np.int64]] | None = None

    def rows(self, devices: int) -> int:
        """Models that are kept from round to round: one, or one a device where they differ."""
        return 1 if self.server_step or self.groups is not None else devices

    def remembering(self, settings: FederationConfig, devices: int) -> int:
        """Rows of an optimiser's memory that are kept between rounds: one a device, one in all, or none."""
        if self.server_step:
            return 1
        if settings.momentum_rule == "mix":
            return self.rows(devices)
        return 0 if settings.momentum_rule == "reset" else devices


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("fedavg", "FedAvg", server_average, lambda settings: settings.interval, groups=alone),
        Scheme("fedprox", "FedProx", server_average, lambda settings: settings.interval, proximal=True, groups=alone),
        Scheme("fedsgd", "FedSGD", average_each_step, lambda _: 1, full_gradient=True, server_step=True),
        Scheme("decentralised", "Decentralised", random_neighbours, lambda settings: settings.interval, shared=False),
        Scheme(
            "semi-decentralised",
            "Semi-decentralised",
            subsets_and_heads,
            lambda settings: settings.global_every,
            groups=by_subset,
        ),
    )
}


def scheme_named(name: str) -> Scheme:
    """The scheme of this name, or a UserError that lists the names."""
    return entry_named("scheme", name, SCHEMES)


def most_present(settings: FederationConfig, devices: int) -> int:
    """Devices that train in a round at most."""
    return min(devices, max(1, round(settings.participation * devices)))


def present(settings: FederationConfig, seed: int, round_number: int, devices: int) -> NDArray[np.bool_]:
    """[device] who trains and sends in this round: not a straggler, and drawn to take part."""
    if settings.stragglers >= devices and settings.stragglers:
        raise UserError(
            f"federation.stragglers cannot be {settings.stragglers}: give less than the number of devices, {devices}"
        )
    here = np.ones(devices, dtype=bool)
    names = ("stragglers",) if settings.straggler_rule == "fixed" else ("stragglers", round_number)
    here[stream(seed, *names).choice(devices, settings.stragglers, replace=False)] = False
    taking = most_present(settings, devices)
    if taking < devices:
        drawn = np.zeros(devices, dtype=bool)
        drawn[stream(seed, "participants", round_number).choice(devices, taking, replace=False)] = True
        here &= drawn
    return here
