"""Peers that find their graph themselves: the graph that `discover` finds, nothing told that is not granted, nobody waits for ever."""

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from d2dfl import Config, Network, discover, preset
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.protocol.own_clock import FINISH
from d2dfl.peer.negotiation.attempt import Step
from d2dfl.peer.negotiation.line import AHEAD, AHEAD_BYTES, Line
from d2dfl.peer.simulator.devices import signed_policy
from d2dfl.peer.simulator.talking import Talking, full_mesh
from d2dfl.peer.wire import messages as wire
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.frames import read_frame
from d2dfl.peer.wire.messages import WireError
from d2dfl.rng import stream


def setting(devices: int, **more: Any) -> Config:
    changes = {
        "network.devices": devices,
        "network.samples_per_device": 120,
        "discovery.edges": 2,
        "marginal.messages": 120,
    }
    return preset("best").with_(**{**changes, **{name.replace("__", "."): value for name, value in more.items()}})


def both(config: Config, seed: int, **how: Any) -> tuple[Discovery, Talking]:
    network = full_mesh(Network.generate(config, seed))
    return discover(network, config, seed=seed), Talking(network, config, seed, **how)


def amounts_of(found: Discovery) -> dict[tuple[int, int], dict[str, int]]:
    """Whole datapoints over each link, as a graph file gives them to peers."""
    graph = found.to_dict()
    rows = zip(graph["edges"], graph["expected_datapoints"], strict=True)
    whole = {
        (giver, taker): {f"l{label}": int(amount + 0.5) for label, amount in enumerate(row) if amount >= 0.5}
        for (giver, taker), row in rows
    }
    return {link: row for link, row in whole.items() if row}


@pytest.mark.parametrize(
    ("devices", "labels", "links", "cycle"),
    [(5, 3, 2, 500), (5, 1, 3, 30), (25, 3, 2, 60), (25, 1, 1, 500)],
    ids=["5", "5-claims-cycles", "25-cycles", "25-claims"],
)
def test_with_a_token_they_find_the_graph_that_discover_finds(
    devices: int, labels: int, links: int, cycle: int
) -> None:
    config = setting(
        devices,
        network__labels_per_device=labels,
        discovery__edges=links,
        marginal__messages=240 // links,
        marginal__cycle=cycle,
    )
    for seed in range(2):
        found, fleet = both(config, seed)
        fleet.found()
        assert fleet.edges() == {(int(giver), int(taker)) for giver, taker in found.graph.edges}
        assert fleet.amounts() == amounts_of(found)
        assert fleet.said().total() == found.messages  # the masked sums, the list, V, Q and U with it


def test_at_once_they_find_about_as_much_and_both_sides_agree() -> None:
    config = setting(12, discovery__edges=3, marginal__messages=200)
    values = []
    for seed in range(3):
        found, fleet = both(config, seed, at_once=True)
        fleet.found()
        network, devices = fleet.network, [talk.attempt.device for talk in fleet.talks if talk.attempt]
        slots = np.array([[link.slot if link else -1 for link in d.holdings.links] for d in devices], dtype=np.int32)
        mine = evaluate(network, graph_of(network, slots, config.reward.over_ask), config.reward)
        values.append((mine.objective - mine.no_exchange, found.evaluation.objective - mine.no_exchange))
        gets = {
            (fleet.prints.index(sender), taker) for taker, talk in enumerate(fleet.talks) for sender in talk.senders()
        }
        assert gets == fleet.edges()
        others = network.devices - 1
        spent = sum(device.spent for device in devices) + 2 * FINISH * others + network.devices * others
        beside = ("Key", "Summed", "Claims", "Listed", "Available", "Wanted", "Allocated")
        said = fleet.said()
        assert said.total() - sum(said[kind] for kind in beside) == spent
    ours, token = np.mean(values, axis=0)
    assert ours > 0.9 * token  # benchmarks/peers_talk.py: 20 networks with as many messages as by default


def test_lost_frames_change_nothing_but_the_time() -> None:
    config = setting(5)
    draws = stream(0, "test-lost-frames")
    found, fleet = both(config, 3, lose=lambda receiver, frame: draws.random() < 0.2)
    fleet.found()
    assert fleet.amounts() == amounts_of(found)
    idle = [talk for talk in fleet.talks if talk.attempt is not None and not talk.attempt.device.useful]
    assert idle  # it says that it looks for nothing, which is charged, too
    assert fleet.said().total() == found.messages
    assert fleet.messages()["repeats"] > 50


@pytest.mark.parametrize("at_once", [False, True])
def test_who_starts_anew_in_the_middle_makes_all_begin_anew(at_once: bool) -> None:
    found, fleet = both(setting(5), 1, at_once=at_once)
    fleet.run(lambda: fleet.talk(0).attempt is not None and fleet.talk(0).attempt.step == Step.REVISING)
    assert all(talk.links() is None for talk in fleet.talks)
    fleet.peers[2] = fleet.start(2)
    fleet.found()
    assert [talk.tries for talk in fleet.talks] == [2, 2, 1, 2, 2]
    assert all(len(talk.members) == 5 for talk in fleet.talks)
    if not at_once:
        assert fleet.amounts() == amounts_of(found)


def test_who_falls_silent_is_left_out() -> None:
    _, fleet = both(setting(5), 2)
    fleet.run(lambda: fleet.talk(4).attempt is not None and fleet.talk(4).attempt.step == Step.REVISING)
    gone = fleet.prints[0]  # who called
    fleet.lose = lambda receiver, frame: receiver == gone or frame[3:35] == gone
    others = fleet.talks[1:]
    fleet.run(lambda: all(talk.links() is not None for talk in others))
    assert all(talk.members == fleet.prints[1:] for talk in others)
    assert any(talk.links() for talk in others)


def test_a_single_device_ends_at_once_and_two_find_a_link() -> None:
    _, fleet = both(setting(2, discovery__edges=1), 0)
    fleet.found()
    assert fleet.said()["Summed"] == 0  # of two, a sum would tell each what the other holds
    assert fleet.edges()
    assert fleet.stores[0].fact("graph") is not None


@pytest.mark.parametrize("at_once", [False, True])
def test_of_two_devices_one_may_have_a_single_label(at_once: bool) -> None:
    """Neither knows whether the other would claim pairs of labels: none are claimed."""
    counts = np.array([[60.0, 0.0, 0.0], [0.0, 40.0, 20.0]])
    network = Network.from_arrays(
        counts=counts,
        threshold=np.full((2, 3), 20.0),
        trust=np.ones((2, 2, 3), dtype=bool),
        drop=np.array([[0.0, 0.1], [0.1, 0.0]]),
        cluster=np.zeros(2, dtype=np.int32),
    )
    config = preset("best").with_(**{"discovery.edges": 2, "marginal.messages": 100})
    fleet = Talking(network, config, at_once=at_once)
    fleet.found()
    assert fleet.edges() == {(0, 1), (1, 0)}


def test_counts_are_summed_up_only_if_all_take_part() -> None:
    """A caller that chooses who takes part, again and again, would learn by subtraction what each device holds."""
    _, fleet = both(setting(4), 1)
    chooser, fleet.keep = fleet.talk(0), True
    chooser.calling.roster = fleet.roster.without("p3")  # as if the fleet were smaller
    fleet.run(lambda: chooser.tries >= 3, 100.0)
    assert {sender for sender, _, _ in fleet.bodies(say.Summed)} <= {0}
    assert all(peer.refused["discovery: a sum that leaves somebody out"] for peer in fleet.peers[1:3])
    chooser.calling.roster = fleet.roster
    fleet.found()
    assert {sender for sender, _, _ in fleet.bodies(say.Summed)} == {0, 1, 2, 3}


def test_nothing_is_told_that_is_not_granted_nor_more_than_that() -> None:
    granted = 3
    _, fleet = both(setting(5), 0, keep=True, granted=granted)
    fleet.found()
    told = 0
    for kind in (say.Introduction, say.Offer, say.Grant, say.Now, say.Available, say.Allocated):
        for sender, receiver, content in fleet.bodies(kind):
            may = fleet.grants(sender)[fleet.prints[receiver]]
            for vector, most in vectors_of(content):
                told += sum(value > 0 for value in vector)
                assert all(value == 0 or label in may for label, value in zip(fleet.labels, vector, strict=True))
                assert not most or max(vector) <= granted
    assert told > 50
    assert all(number <= granted for row in fleet.amounts().values() for number in row.values())


def vectors_of(content: Any) -> list[tuple[tuple[float, ...], bool]]:
    """(numbers by label, whether they say how many there are)."""
    found = [(getattr(content, name), True) for name in ("spare", "granted", "amounts") if hasattr(content, name)]
    offer = content if isinstance(content, say.Offer) else getattr(content, "offer", None)
    found += [] if offer is None else [(part, False) for part in (offer.demand, offer.giving, offer.taking)]
    return [(vector, most) for vector, most in found if vector]


@pytest.mark.parametrize("grants_one", [True, False])
def test_the_list_of_claims_shows_a_label_that_is_granted_to_somebody_to_the_next_on_the_list(
    monkeypatch: pytest.MonkeyPatch, grants_one: bool
) -> None:
    """What docs/threats.md says does not hold: who is granted a label is not asked there. Granted to nobody, it is not listed."""
    policy = Talking.grants

    def grants(fleet: Talking, number: int) -> dict[bytes, dict[str, int]]:
        """Device 0 lets device 2 have all, or nobody anything; the others share as before."""
        every = dict.fromkeys(fleet.labels, 20)
        return policy(fleet, number) if number else {fleet.prints[2]: every} if grants_one else {}

    monkeypatch.setattr(Talking, "grants", grants)
    for seed in range(2):
        _, fleet = both(setting(6, network__labels_per_device=1), seed, keep=True)
        fleet.found()
        label = int(fleet.network.counts[0].argmax())
        (spare,) = {said.spare for sender, to, said in fleet.bodies(say.Introduction) if (sender, to) == (0, 1)}
        assert not any(spare)  # nothing is granted to device 1
        lists = [said.pairs for sender, to, said in fleet.bodies(say.Claims) if (sender, to) == (0, 1)]
        first = lists[0]  # of device 0 alone
        assert [label in pair[:2] for pair in first] == [True] * grants_one


def test_a_revocation_in_the_middle_holds_for_all_that_is_said_after_it() -> None:
    _, fleet = both(setting(5), 0, keep=True)
    fleet.run(lambda: fleet.talk(1).attempt is not None and fleet.talk(1).attempt.step == Step.REVISING)
    fleet.seen.clear()
    fleet.peers[1].set_policy(signed_policy(fleet.owner, 2, {}), fleet.now)
    fleet.found()
    said = [
        content
        for kind in (say.Introduction, say.Offer, say.Grant, say.Now, say.Available, say.Allocated)
        for sender, _, content in fleet.bodies(kind)
        if sender == 1
    ]
    assert said
    assert all(not any(vector) for content in said for vector, _ in vectors_of(content))
    assert fleet.talk(1).links() == {}


def test_what_is_said_again_after_a_revocation_tells_nothing_either() -> None:
    """Its introductions are lost, its owner revokes, and they are said again."""
    _, fleet = both(setting(5), 0, keep=True)

    def introduces(receiver: bytes, frame: bytes) -> bool:
        body = wire.decode_body(read_frame(frame).body)
        talk = say.decode_talk(body.content) if isinstance(body, wire.Discovery) else None
        return isinstance(talk, say.Packet) and isinstance(talk.content, say.Introduction)

    fleet.lose = introduces
    fleet.run(lambda: any(sender == 1 for sender, _, _ in fleet.bodies(say.Introduction)))
    before = [content for sender, _, content in fleet.bodies(say.Introduction) if sender == 1]
    assert any(any(vector) for content in before for vector, _ in vectors_of(content))
    fleet.seen.clear()
    fleet.peers[1].set_policy(signed_policy(fleet.owner, 2, {}), fleet.now)
    fleet.lose = lambda receiver, frame: False
    fleet.found()
    again = [content for sender, _, content in fleet.bodies(say.Introduction) if sender == 1]
    assert len(again) >= len(before)
    assert not any(any(vector) for content in again for vector, _ in vectors_of(content))


def test_what_was_found_is_handed_over_and_kept() -> None:
    found, fleet = both(setting(5), 0)
    before = sum(sum(store.counts().values()) for store in fleet.stores)
    fleet.found()
    fleet.run(lambda: all(peer.giving.idle for peer in fleet.peers))
    assert sum(sum(store.counts().values()) for store in fleet.stores) == before
    for (giver, taker), row in amounts_of(found).items():
        rows = fleet.stores[taker].db.execute(
            "SELECT label, count(*) FROM points WHERE origin = ? GROUP BY label", (fleet.prints[giver],)
        )
        assert dict(rows.fetchall()) == row
    kept = json.loads(fleet.stores[0].fact("graph"))
    assert set(kept["links"]) == {fleet.prints[taker].hex() for giver, taker in fleet.edges() if giver == 0}
    lines = [json.loads(content) for _, content, _ in fleet.stores[0].audit()]
    asked = {line["peer"]: line["text"] for line in lines if line["kind"] == "asked"}
    assert asked == {
        fleet.prints[taker].hex(): ", ".join(f"{number} of {label}" for label, number in row.items())
        for (giver, taker), row in fleet.amounts().items()
        if giver == 0
    }
    assert asked


BAD = {
    "an answer to nothing": say.Offer((0.0,) * 10, (0.0,) * 10, (0.0,) * 10),
    "as many numbers": say.Ask((1.0,)),
    "a token that does not fit": say.Token((0.0,) * 7, 0, frozenset(), 0, 0.0, None),
    "of another kind of discovery": say.Done(),
    "introduced twice": say.Introduction((0.0,) * 10, (0.0,) * 10, 0),
    "no such cluster": say.Reply(0.0, 1999, 0.0, (0.0,) * 10),
    "a list out of turn": say.Claims([]),
    "a step of a sum": say.Summed(1, 1, bytes(80)),
    "a key of no neighbour": say.Key(bytes(32)),
}


@pytest.mark.parametrize("reason", BAD)
def test_what_does_not_fit_is_refused_and_in_the_audit(reason: str) -> None:
    _, fleet = both(setting(5), 0)
    fleet.run(lambda: fleet.talk(0).attempt is not None and fleet.talk(0).attempt.step == Step.REVISING)
    talk, peer = fleet.talk(0), fleet.peers[0]
    assert talk.attempt is not None
    talk.attempt._questions._due.clear()
    packet = say.Packet(talk.id, talk.lines[3].seen, 0, BAD[reason])
    with pytest.raises(WireError, match=reason):
        talk.receive(fleet.prints[3], say.encode_talk(packet), fleet.now)
    assert talk.attempt is None  # and another attempt is called, without who said it
    others = [talk for number, talk in enumerate(fleet.talks) if number != 3]
    fleet.run(lambda: all(one.links() is not None for one in others))
    assert fleet.prints[3] not in talk.members
    assert peer.store.audit_fault() is None


def test_changed_messages_of_a_member_neither_crash_nor_hang_a_peer() -> None:
    """What one member may say, changed in all ways, into a peer in the middle of a discovery."""
    config = setting(3, network__partitions=4, network__labels_per_device=2, network__samples_per_device=20)
    network = full_mesh(Network.generate(config, 0))
    whole = Talking(network, config, keep=True)
    whole.found()
    said, draws = [content for _, _, content in whole.bodies(say.Said)], stream(1, "test-changed-talk")
    refused, fleet = 0, Talking(network, config)
    for number in range(600):
        if fleet.talk(0).attempt is None:  # it was given up because of what was said
            fleet = Talking(network, config)
        talk = fleet.talk(0)
        fleet.run(lambda: talk.attempt is not None and talk.attempt.step >= Step.REVISING)  # noqa: B023  # called in this turn alone
        sender = 1 + number % 2
        packet = say.Packet(talk.id, talk.lines[sender].seen, 0, said[int(draws.integers(len(said)))])
        data = bytearray(say.encode_talk(packet))
        for _ in range(int(draws.integers(0, 3))):
            data[int(draws.integers(36, len(data)))] = int(draws.integers(256))
        try:
            talk.receive(fleet.prints[sender], bytes(data), fleet.now)
        except WireError:
            refused += 1
    assert refused > 200


def test_a_number_far_above_all_others_is_refused() -> None:
    """It would leave no number that anybody could invite with, and honest devices would blame each other."""
    _, talking = both(setting(4), 0, at_once=True)
    settings = talking.talk(0).plan.digest(talking.labels)
    for other in range(3):
        with pytest.raises(WireError, match="far above"):
            talking.talk(other).receive(
                talking.prints[3], say.encode_talk(say.Invite(bytes(32), 1 << 62, settings)), talking.now
            )
    talking.run(lambda: all(talking.talk(other).links() is not None for other in range(4)), 600.0)
    assert not any(talking.talk(other).calling.strange for other in range(4))


def test_what_comes_too_early_is_kept_up_to_a_bound_in_bytes() -> None:
    _, talking = both(setting(4), 0, at_once=False)
    talking.run(lambda: talking.talk(1).attempt is not None, 60.0)
    attempt = talking.talk(1).attempt
    assert attempt is not None
    claims = say.Claims([(0, 1, 1 << 40)] * 14_000)
    attempt.receive(3, claims, talking.now)
    with pytest.raises(WireError, match="too early"):
        attempt.receive(3, say.Claims([(0, 1, 1 << 40)] * 18_000), talking.now)
    line = Line()
    for number in range(1, AHEAD):
        line.hear(number, 0, claims, 0.0)
    assert sum(map(say.size_of, line.ahead.values())) <= AHEAD_BYTES
