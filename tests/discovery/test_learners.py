"""The compiled learners against plain Python, step by step, and what they find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import config_of
from d2dfl import Config, Network, discover, preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import Board, board_of, free_choice, useful_links
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.learning import NO_DEVICE, Devices
from d2dfl.discovery.game.revisions import take_turns
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.game.search import best_response
from d2dfl.discovery.game.tables import Tables, greedy_actions, reweigh, rules_of, sample, tables_of
from d2dfl.discovery.methods import marginal, qlearning
from d2dfl.discovery.plain.reference import PlainQlearning, plain_round, plain_uniform
from d2dfl.discovery.task import Task
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


@pytest.mark.parametrize("slots", [3, 8])
def test_who_may_stay_alone_and_who_looks_best_equal_the_loops(slots: int) -> None:
    """Arrays at once against a device at a time: links of use, R12, R3."""
    config = config_of("paper", **{"channel.slots": slots})
    for seed in range(20):
        network = Network.generate(config, seed)
        board, draws = board_of(network, Terms.of(config.reward)), np.random.default_rng(seed)
        # Little is trusted, needed and to spare, and some hear nobody.
        for held in (board.trust, board.need, board.surplus):
            held[draws.random(held.shape) < 0.7] = 0
        board.candidates[draws.random(board.candidates.shape) < 0.2] = -1
        board.candidates[0] = -1
        useful = [[useful_link(board, device, slot) for slot in range(slots)] for device in range(9)]
        assert useful_links(board).tolist() == useful
        assert free_choice(board, no_link=True).all()
        alone = [useless_or_nobody(board.candidates[device].tolist(), useful[device]) for device in range(9)]
        assert free_choice(board, no_link=False).tolist() == alone
        for no_link in (True, False):
            tables = tables_of(board, config.qlearning, device_keys(seed, "x", devices=9), no_link)
            tables.visits[:] = draws.integers(0, 3, tables.visits.shape) * (np.arange(9) > 1)[:, None]
            tables.total[:] = draws.integers(-2, 3, tables.total.shape)  # equals, too
            assert greedy_actions(board, tables).tolist() == [best_of(tables, slots, device) for device in range(9)]


def useful_link(board: Board, device: int, slot: int) -> bool:
    sender = int(board.candidates[device, slot])
    labels = range(board.counts.shape[1])
    return sender >= 0 and any(
        board.trust[device, slot, one] and board.need[device, one] > 0 and board.surplus[sender, one] > 0
        for one in labels
    )


def useless_or_nobody(heard: list[int], useful: list[bool]) -> bool:
    return all(one < 0 for one in heard) or any(
        one >= 0 and not of_use for one, of_use in zip(heard, useful, strict=True)
    )


def best_of(tables: Tables, slots: int, device: int) -> int:
    means = {
        action: tables.total[device, action] / visits for action, visits in enumerate(tables.visits[device]) if visits
    }
    best = max(means, key=lambda action: (means[action], -action), default=-1)
    return best if best < slots else -1


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
    # One introduction a link; a key each, and two masked sums of four messages; the end and its answer; and the second device
    # looks for nothing, which it says when the token comes.
    assert learner.messages[0] == 2 + 2 + 2 * 4 + 2 + 2


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
    board, devices = board_of(network, terms), Devices(device_keys(0, "m", devices=9), np.ones(9, dtype=bool))
    stopped = 0
    for budget in range(60, 140, 7):
        play, learner = game.start(board, terms, edges), marginal.introduce(board, terms, budget, edges=edges)
        cooling = marginal.cooling_of(learner, config.marginal)
        last = take_turns(board, board.gauss, terms, play, learner, cooling, devices, np.int64(0), 10_000)
        assert last == NO_DEVICE
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
