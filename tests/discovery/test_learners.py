"""The compiled learners against plain Python, step by step, and what they find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import config_of
from d2dfl import Config, Network, discover, preset
from d2dfl.discovery import changing_channel
from d2dfl.discovery.discover import METHODS, Discovery
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.learning import NO_DEVICE
from d2dfl.discovery.game.revisions import take_turns
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.game.search import best_response
from d2dfl.discovery.game.tables import reweigh, rules_of, sample, tables_of
from d2dfl.discovery.methods import marginal, qlearning
from d2dfl.discovery.plain.reference import PlainQlearning, plain_round, plain_uniform
from d2dfl.discovery.task import Task
from d2dfl.network import channel
from d2dfl.rng import device_keys, stream
from networks import clustered


def test_random_numbers_are_the_same_in_plain_python() -> None:
    key = int(device_keys(3, "x", devices=1)[0])
    assert [uniform(np.uint64(key), n) for n in range(50)] == [plain_uniform(key, n) for n in range(50)]


def test_streams_are_named() -> None:
    draws = [stream(0, name).random() for name in ("a", "b", 1)] + [
        stream(0, "a", 1).random(),
        stream(1, "a").random(),
    ]
    assert len(set(draws)) == 5
    assert stream(0, "a").random() == draws[0]


def test_a_round_equals_the_loops(config: Config) -> None:
    network = Network.generate(config, 4)
    board, terms = board_of(network, Terms.of(config.reward)), Terms.of(config.reward)
    work = round_of(board, terms)
    generator = np.random.default_rng(2)
    for _ in range(30):
        choice = generator.integers(-1, 8, size=9)
        work.slot[:] = choice
        work.drop[:] = np.where(choice >= 0, network.drop[np.arange(9), choice], 0.0)
        play_round(board, terms, work, board.gauss)
        assert np.allclose(work.reward, plain_round(network, config, choice.tolist()), atol=1e-10)


@pytest.mark.parametrize("no_link", [True, False])
def test_qlearning_equals_plain_python_step_by_step(no_link: bool) -> None:
    config = config_of("paper", **{"discovery.no_link": no_link, "qlearning.steps": 400, "qlearning.buffer": 16})
    config = config.with_(**{"qlearning.temperature": 0.1, "qlearning.temperature_end": 0.1})
    network = Network.generate(config, 0)
    terms, keys = Terms.of(config.reward), device_keys(0, "qlearning", 0, devices=9)
    board = board_of(network, terms)
    rules = rules_of(config.qlearning)
    tables, work = tables_of(board, config.qlearning, keys, no_link), round_of(board, terms)
    plain = PlainQlearning(network, config, keys)
    for step in range(400):
        qlearning.train(board, terms, rules, tables, work, keys, step, step + 1, 0.1)
        actions = plain.step(step, 0.1)
        assert work.slot.tolist() == [a if a < 8 else -1 for a in actions]
    for device in range(9):
        for action, rewards in plain.rewards[device].items():
            assert tables.visits[device, action] == len(rewards) <= 16
            assert np.isclose(tables.total[device, action], sum(rewards))


def test_qlearning_literal_update_mixes_all_actions() -> None:
    """R2: to the letter, the chosen entry gets the mean of the whole buffer."""
    config = config_of("paper", **{"qlearning.update": "literal", "qlearning.steps": 30, "qlearning.untried": "zero"})
    network = Network.generate(config, 0)
    terms, keys = Terms.of(config.reward), device_keys(0, "qlearning", 0, devices=9)
    board, rules = board_of(network, terms), rules_of(config.qlearning)
    tables, work = tables_of(board, config.qlearning, keys, True), round_of(board, terms)
    reweigh(board, rules, tables, 1.0)
    for step in range(30):
        qlearning.train(board, terms, rules, tables, work, keys, step, step + 1, 1.0)
        for device in range(9):
            action = work.slot[device] if work.slot[device] >= 0 else 8
            assert np.isclose(tables.total[device, action] / (step + 1), tables.buffer[: step + 1, device].mean())


def test_rewards_of_hundreds_do_not_overflow() -> None:
    config = config_of(
        "strict literal", **{"qlearning.steps": 200, "qlearning.temperature": 0.1, "qlearning.temperature_end": 0.1}
    )
    network = Network.generate(config, 0)
    result = discover(network, config, method="qlearning")
    assert np.isfinite(result.evaluation.objective)


def test_block_sampling_is_the_softmax() -> None:
    network = Network.generate(config_of("best", **{"network.devices": 40}), 0)
    config = config_of("best")
    board = board_of(network, Terms.of(config.reward))
    keys = device_keys(0, "t", devices=40)
    tables = tables_of(board, config.qlearning, keys, True)
    tables.visits[:] = 1
    tables.total[:] = np.random.default_rng(0).normal(size=tables.total.shape)
    reweigh(board, rules_of(config.qlearning), tables, 0.5)
    odds = np.exp(tables.total[0] / 0.5)
    picks = [sample(tables.weight, tables.block, 6, 0, uniform(keys[1], n)) for n in range(20_000)]
    seen = np.bincount(picks, minlength=40) / 20_000
    assert np.abs(seen - odds / odds.sum()).max() < 0.01


def test_introductions_tell_what_the_transmitter_expects_to_gain() -> None:
    network = Network.from_arrays(
        counts=[[80, 0], [0, 80]], threshold=np.full((2, 2), 20.0), trust=np.ones((2, 2, 2)), drop=np.full((2, 2), 0.1)
    )
    config = preset("best")
    terms = Terms.of(config.reward)
    learner = marginal.introduce(board_of(network, terms), terms, 100)
    # Giving 20 of 80 of the only label changes no distribution; holding a second label, it would.
    assert not learner.introduced.any()
    mixed = Network.from_arrays(
        counts=[[80, 20], [20, 80]],
        threshold=np.full((2, 2), 20.0),
        trust=np.ones((2, 2, 2)),
        drop=np.full((2, 2), 0.1),
    )
    learner = marginal.introduce(board_of(mixed, terms), terms, 100)
    # (80, 20) -> (60, 20): 0.8 -> 0.75 against 0.5, by 20 datapoints
    assert np.allclose(learner.introduced, 1.5 * (0.3 - 0.25) / 20 * np.eye(2))
    # One introduction a link; a key each, and two masked sums of four messages; the end and its answer.
    assert learner.messages[0] == 2 + 2 + 2 * 4 + 2


def test_marginal_comes_to_rest_where_nobody_can_improve_alone() -> None:
    config = config_of("best", **{"network.devices": 12, "marginal.messages": 3000})
    network = Network.generate(config, 1)
    found = marginal.find(Task(network, config, 1))
    terms = Terms.of(config.reward)
    board = board_of(network, terms)
    play = game.load(board, terms, found.slots)
    gains = [best_response(board, terms, play, device, 0, np.ones(12, dtype=bool)) for device in range(12)]
    assert max(gains) < 0.02 * game.total(board, terms, play)


@settings(max_examples=50, deadline=None)
@given(
    messages=st.integers(1, 600),
    patience=st.sampled_from([1, 40, 300]),
    devices=st.integers(1, 14),
    labels=st.integers(1, 3),
    edges=st.integers(1, 3),
    mode=st.sampled_from(["joint", "sequence"]),
    rules=st.sampled_from(["best", "paper", "clusters"]),
    no_link=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_marginal_never_spends_more_than_its_budget(
    messages: int, patience: int, devices: int, labels: int, edges: int, mode: str, rules: str, no_link: bool, seed: int
) -> None:
    """Everything counted, V, Q and U over the final links too: at most `marginal.messages` a device and link."""
    config = config_of(
        "best" if rules == "clusters" else rules,
        **{
            "network.devices": devices,
            "network.labels_per_device": labels,
            "discovery.edges": edges,
            "discovery.edge_mode": mode,
            "discovery.no_link": no_link,
            "marginal.messages": messages,
            "marginal.patience": patience,
        },
    )
    network = clustered(devices, seed=seed) if rules == "clusters" else Network.generate(config, seed)
    found = discover(network, config, seed=seed, method="marginal")
    assert found.messages <= messages * edges * devices
    if found.messages == 0:
        assert found.graph.edges == []
        assert found.message_bits == 0


@pytest.mark.parametrize(("messages", "used"), [(500, 0.98), (40, 0.8)])
def test_marginal_uses_its_budget(messages: int, used: float) -> None:
    """A device stops at the first move that does not fit, not long before."""
    config = preset("best").with_(**{"marginal.messages": messages, "marginal.patience": 100_000})
    found = discover(Network.generate(config, 0), config, method="marginal")
    assert used * messages < found.messages / (25 * 5) <= messages


@pytest.mark.parametrize("edges", [1, 3])
def test_a_network_that_has_spent_little_is_as_its_links_say(edges: int) -> None:
    """Moves that were refused or taken back leave nothing behind, whatever the accounts were."""
    config = config_of("best", **{"discovery.edges": edges})
    network, terms = Network.generate(config, 0), Terms.of(config.reward)
    board, keys, free = board_of(network, terms), device_keys(0, "m", devices=9), np.ones(9, dtype=bool)
    stopped = 0
    for budget in range(60, 140, 7):
        play, learner = game.start(board, terms, edges), marginal.introduce(board, terms, budget, edges=edges)
        cooling = marginal.cooling_of(board, terms, play, learner, config.marginal)
        assert (
            take_turns(board, board.gauss, terms, play, learner, cooling, keys, free, np.int64(0), 10_000) == NO_DEVICE
        )
        assert (learner.spent <= learner.account).all()
        again = game.load(board, terms, play.slots)
        assert game.total(board, terms, again) == pytest.approx(game.total(board, terms, play))
        assert np.allclose(again.share, play.share)
        stopped += int((~learner.taking_turns).sum())
    assert stopped


@pytest.mark.parametrize("method", ["marginal", "qlearning", "bandit"])
def test_same_seed_same_bits(method: str) -> None:
    config = config_of("best", **{"qlearning.steps": 300, "bandit.steps": 300})
    network = Network.generate(config, 0)
    one, two = (discover(network, config, seed=5, method=method) for _ in range(2))
    assert (one.graph.slots == two.graph.slots).all()
    assert one.evaluation.objective == two.evaluation.objective
    assert one.messages == two.messages


def test_marginal_is_near_the_optimum_and_ahead_of_the_rules() -> None:
    shares, ahead = [], []
    for seed in range(4):
        config = config_of("best", **{"network.devices": 10})
        network = Network.generate(config, seed)
        values = {
            m: discover(network, config, seed=seed, method=m).evaluation.objective
            for m in ("marginal", "optimum", "closest", "most-trusted", "uniform")
        }
        shares.append(values["marginal"] / values["optimum"])
        ahead.append(values["marginal"] > max(values["closest"], values["most-trusted"], values["uniform"]))
    assert np.mean(shares) > 0.97
    assert all(ahead)


@pytest.mark.parametrize("kind", ["ucb", "exp3"])
def test_bandits_beat_chance(kind: str) -> None:
    config = config_of("best", **{"bandit.kind": kind, "bandit.steps": 3000})
    network = Network.generate(config, 0)
    learned = discover(network, config, method="bandit").evaluation.objective
    chance = np.mean([discover(network, config, seed=s, method="uniform").evaluation.objective for s in range(10)])
    assert learned > chance + 0.02


@pytest.mark.parametrize("state", ["link", "vector"])
def test_dynamic_channel(state: str) -> None:
    config = config_of("paper", **{"channel.dynamic": True, "qlearning.state": state, "qlearning.steps": 600})
    network = Network.generate(config, 0)
    one, two = (discover(network, config, seed=1, method="qlearning") for _ in range(2))
    assert (one.graph.slots == two.graph.slots).all()
    assert (one.network.drop != network.drop).any()  # the channel at the exchange is another one
    closest = discover(network, config, seed=1, method="closest")
    assert (closest.network.drop == one.network.drop).all()  # the same for every method


def test_dynamic_links_are_told_apart_by_level() -> None:
    """One receiver, two transmitters with the same data: the policy should take the link that is good right now."""
    trust = np.ones((3, 3, 2))
    network = Network.from_arrays(
        counts=[[100, 0], [0, 100], [0, 100]],
        threshold=np.full((3, 2), 20.0),
        trust=trust,
        rss=np.full((3, 3), 0.3),
    )
    config = preset("best").with_(
        **{
            "channel.dynamic": True,
            "channel.levels": 4,
            "qlearning.steps": 3000,
            "reward.reliability_weight": 3.0,
        }
    )
    better = 0
    for seed in range(24):
        found = discover(network, config, seed=seed, method="qlearning")
        power = found.network.rss[0]
        if abs(power[0] - power[1]) > 0.13:
            better += 1 if found.graph.slots[0, 0] == power.argmax() else -1
    assert better >= 6


def two_exchanges(config: Config, method: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Discovery, Discovery]:
    """The same discovery before an exchange that meets one channel, and before one that meets another."""
    network, at_exchange = Network.generate(config, 0), changing_channel.at_exchange
    one = discover(network, config, seed=1, method=method)
    monkeypatch.setattr(
        changing_channel, "at_exchange", lambda here, settings, seed: at_exchange(here, settings, seed + 99)
    )
    return one, discover(network, config, seed=1, method=method)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.reference])
@pytest.mark.parametrize("edges", [1, 2])
def test_nobody_plans_with_the_channel_of_the_exchange(
    method: str, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R45: with one level nothing is known of it, so whatever it is, the same links are chosen and as much is asked."""
    changes = {
        "channel.dynamic": True,
        "channel.levels": 1,
        "discovery.edges": edges,
        "gcn.epochs": 1,
        "gcn.systems": 1,
    }
    one, two = two_exchanges(config_of("best", **changes, **{"qlearning.steps": 200}), method, monkeypatch)
    assert (one.network.drop != two.network.drop).any()
    assert (one.graph.slots == two.graph.slots).all()
    assert (one.graph.allocated == two.graph.allocated).all()
    if method != "none":  # what was planned meets the channel as it is
        assert (one.graph.drop != two.graph.drop).any()
        assert one.evaluation.success_probability != two.evaluation.success_probability


@pytest.mark.parametrize("plan", ["levels", "exact"])
def test_what_is_known_of_the_exchange_is_used(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"channel.dynamic": True, "channel.plan": plan, "channel.levels": 8, "reward.reliability_weight": 3.0}
    one, two = two_exchanges(config_of("best", **changes), "marginal", monkeypatch)
    assert (one.graph.slots != two.graph.slots).any()


def test_the_reference_alone_sees_a_changing_channel() -> None:
    config = config_of("best", **{"channel.dynamic": True})
    drawn = changing_channel.at_exchange(Network.generate(config, 0), config.channel, 0)
    for method in METHODS.values():
        assert (changing_channel.known_to(method, drawn, config.channel) is drawn) == method.reference
        assert changing_channel.known_to(method, drawn, config_of("best").channel) is drawn  # it rests


def test_levels_say_what_is_lost_in_the_mean() -> None:
    config = config_of("best", **{"channel.kind": "gaussian", "channel.dynamic": True, "network.devices": 60})
    drawn = changing_channel.at_exchange(Network.generate(config, 0), config.channel, 0)
    heard = drawn.candidates >= 0
    expected = changing_channel.as_known(drawn, config.channel)
    assert len(np.unique(expected.drop[heard])) == 1
    assert expected.drop[heard][0] == pytest.approx(drawn.drop[heard].mean(), rel=0.02)
    by_level = changing_channel.as_known(drawn, config.with_(channel__plan="levels").channel)
    level = channel.quantise(drawn.rss, config.channel)
    assert (channel.quantise(by_level.rss, config.channel) == level).all()
    for number in range(4):
        links = heard & (level == number)
        assert by_level.drop[links].std() == pytest.approx(0.0, abs=1e-12)
        assert by_level.drop[links].mean() == pytest.approx(drawn.drop[links].mean(), rel=0.05)


def test_more_levels_save_datapoints_where_power_varies_much() -> None:
    """R45: with 0.1 as the variance; with 0.1 as the deviation there is hardly anything to be saved."""
    saved = {}
    for rule in ("deviation", "variance"):
        ends = []
        for levels in (1, 4):
            changes = {"channel.kind": "gaussian", "channel.dynamic": True, "channel.deviation_rule": rule}
            config = preset("paper").with_(**changes, **{"channel.levels": levels})
            found = [
                discover(Network.generate(config, seed), config, seed=seed, method="qlearning") for seed in range(4)
            ]
            ends.append(np.mean([one.evaluation.success_probability for one in found]))
        saved[rule] = ends[1] - ends[0]
    assert saved["variance"] > 0.03 > saved["deviation"]


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7])
def test_equal_rewards_are_not_below_their_mean(weight: float) -> None:
    """R4, R14: nothing may be sent, so all rewards are gamma times the budget term, and none of them is reduced."""
    config = config_of("paper", **{"network.trust": "none", "qlearning.steps": 300, "qlearning.buffer": 7})
    config = config.with_(**{"reward.reliability_weight": 0.0, "reward.budget_weight": weight})
    network = Network.generate(config, 0)
    terms, keys = Terms.of(config.reward), device_keys(0, "qlearning", 0, devices=9)
    board, rules = board_of(network, terms), rules_of(config.qlearning)
    tables, work = tables_of(board, config.qlearning, keys, True), round_of(board, terms)
    reweigh(board, rules, tables, 1.0)
    qlearning.train(board, terms, rules, tables, work, keys, 0, 300, 1.0)
    assert tables.buffer == pytest.approx(np.broadcast_to(work.reward, tables.buffer.shape))
