"""Devices that revise at the same time: nobody waits for ever, nobody spends more than it has, and both sides of a link agree."""

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Config, Network
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.protocol.fleet import Fleet
from d2dfl.discovery.protocol.messages import Message, Now, Offer, Reply
from d2dfl.discovery.protocol.own_clock import FINISH, OwnClock
from d2dfl.discovery.protocol.revision import NO_LINK, Move, Revision, Rules
from d2dfl.discovery.protocol.tree import above, below
from fleets import clocks_of, compiled, fleet_of, sides_agree


def at_once(network: Network, config: Config, seed: int) -> tuple[Fleet, Rules]:
    _, learner, rules = compiled(network, config, seed)
    fleet = clocks_of(network, config, seed, learner)
    fleet.introduce()
    fleet.run_at_once(rules)
    return fleet, rules


@pytest.mark.parametrize(("edges", "messages"), [(1, 150), (3, 60), (2, 40)])
def test_all_come_to_the_end_and_agree_on_their_links(config: Config, edges: int, messages: int) -> None:
    config = config.with_(**{"discovery.edges": edges, "marginal.messages": messages})
    for seed in range(3):
        network = Network.generate(config, seed)
        fleet, _ = at_once(network, config, seed)
        assert all(device.ended for device in fleet.devices)
        assert all(0 <= device.spent <= device.account for device in fleet.devices)
        sides_agree(fleet.devices)
        charged = sum(device.spent for device in fleet.devices) + 2 * FINISH * (network.devices - 1)
        assert fleet.messages == (network.candidates >= 0).sum() + charged


def test_what_devices_hold_is_what_the_exchange_brings(config: Config) -> None:
    """Shares that travelled in messages are those of Algorithm 1 over the final links. A cluster's account has a number
    for each member: what it took when its last revision began (others may have changed that since)."""
    config = config.with_(**{"discovery.edges": 2, "marginal.messages": 150})
    network = Network.generate(config, 5)
    fleet, _ = at_once(network, config, 5)
    terms = Terms.of(config.reward)
    play = game.load(board_of(network, terms), terms, fleet.slots())
    standing = [device.holdings.standing() for device in fleet.devices]
    assert np.allclose(standing, play.local)
    clocks = [device for device in fleet.devices if isinstance(device, OwnClock)]
    if clocks[0].clusters.matter(clocks[0].holdings):
        for cluster, order in enumerate(clocks[0].clusters.order):
            revised = {device.number for device in clocks if device.cluster == cluster and device.turns}
            taken = clocks[order[0]].taken
            assert revised <= set(taken) <= set(order)
            assert all(amount >= 0.0 for amount in taken.values())


def test_the_same_seed_finds_the_same() -> None:
    config = config_of("best", **{"discovery.edges": 2, "marginal.messages": 60})
    network = Network.generate(config, 0)
    one, two, other = (at_once(network, config, seed)[0] for seed in (1, 1, 2))
    assert one.slots().tolist() == two.slots().tolist()
    assert (one.messages, one.depth) == (two.messages, two.depth)
    assert (one.messages, one.depth) != (other.messages, other.depth)


def test_devices_wait_for_each_other_only_where_they_meet() -> None:
    """Fewer messages in series than one after another, for nearly the same objective; few messages, so fewer revisions."""
    config = config_of("best", **{"network.devices": 25, "discovery.edges": 5, "marginal.messages": 60})
    values, depths = [], []
    for seed in range(2):
        network = Network.generate(config, seed)
        play, learner, rules = compiled(network, config, seed)
        fleet, _ = at_once(network, config, seed)
        graphs = [graph_of(network, slots, True) for slots in (play.slots, fleet.slots())]
        values.append([evaluate(network, graph, config.reward).objective for graph in graphs])
        token = fleet_of(network, config, seed, learner)
        token.introduce()
        token.run(rules)
        depths.append((token.depth, fleet.depth))
    in_turns, at_the_same_time = np.mean(values, axis=0)
    assert at_the_same_time > 0.98 * in_turns
    assert all(token > 4 * own for token, own in depths)


def test_everybody_has_one_above_it_whoever_is_gone() -> None:
    for gone in (set(), {0}, {1, 2}, {0, 1, 5}, {0, 1, 2, 3}):
        there = [name for name in range(12) if name not in gone]
        tops = [name for name in there if above(name, gone) is None]
        assert tops == there[:1]
        for name in there[1:]:
            assert name in below(above(name, gone), 12, gone)


def test_a_share_that_changes_while_its_link_is_given_back_is_heard() -> None:
    """Giving back may be refused, and the link is its own again: with the share that holds by then, as its transmitter has it."""
    config = config_of("best", **{"discovery.edges": 2, "marginal.messages": 60})
    fleet, _ = at_once(Network.generate(config, 0), config, 0)
    device = next(item for item in fleet.devices if item.holdings.links[0])
    link, holdings = device.holdings.links[0], device.holdings
    assert link is not None
    name = holdings.heard[link.slot].device
    holdings.links[0] = None
    move = Move(0, NO_LINK, link, None, [name], 0, undoing=False)
    device._revision = Revision(0, 0.0, 0.0, {}, move=move)
    before, share = holdings.standing(), tuple(amount / 2 for amount in link.granted)
    nothing = (0.0,) * len(share)
    (reply,) = device.receive(Message(name, device.number, Now(share, Offer(nothing, nothing, nothing))))
    assert link.granted == list(share)
    assert holdings.standing() == before
    assert isinstance(reply.content, Reply)
    assert reply.content.change == 0.0
