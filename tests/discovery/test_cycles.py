"""Several coolings one after the other: the best graph stays, and going back leaves nothing of what was tried since."""

import numpy as np
import pytest

from d2dfl import Config, Network, discover, preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import cycles, state
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.cycles import BestCycle
from d2dfl.discovery.game.learning import LearnerState
from fleets import compiled


@pytest.mark.parametrize("edges", [1, 3])
def test_the_best_cycle_stays(edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = {"marginal.messages": 400, "marginal.cycle": 50, "marginal.spread": 0.0}
    config = preset("best").with_(**{"discovery.edges": edges, "network.devices": 12, **budget})
    ends: list[float] = []
    plain = BestCycle.stay_or_go_back

    def watched(self: BestCycle, play: state.Play, learner: LearnerState) -> None:
        ends.append(float(learner.gained[0]))
        plain(self, play, learner)

    monkeypatch.setattr(cycles.BestCycle, "stay_or_go_back", watched)
    went_back = 0
    for seed in range(4):
        ends.clear()
        network, terms = Network.generate(config, seed), Terms.of(config.reward)
        board = board_of(network, terms)
        play, learner, _ = compiled(network, config, seed)
        assert len(ends) == 8
        assert learner.gained[0] == pytest.approx(max(ends))
        went_back += sum(end < max(ends[:cycle]) for cycle, end in enumerate(ends) if cycle)
        empty, again = state.start(board, terms, edges), state.load(board, terms, play.slots)
        assert learner.gained[0] == pytest.approx(state.total(board, terms, again) - state.total(board, terms, empty))
        assert np.allclose(again.share, play.share)
        assert np.allclose(again.used, play.used)
    assert went_back


def test_no_budget_is_exceeded_by_cycles(config: Config) -> None:
    for messages in (60, 101, 300):
        changed = config.with_(**{"discovery.edges": 2, "marginal.messages": messages, "marginal.cycle": 20})
        network = Network.generate(changed, 3)
        found = discover(network, changed, method="marginal")
        assert found.messages <= messages * 2 * network.devices


def test_cycles_find_better_graphs_than_one_long_cooling() -> None:
    config = Config().with_(**{"network.devices": 12, "marginal.messages": 3000, "marginal.spread": 0.0})
    ahead = []
    for seed in range(6):
        network = Network.generate(config, seed)
        many, one = (
            discover(network, config.with_(**{"marginal.cycle": cycle}), seed=seed, method="marginal").evaluation
            for cycle in (300, 3000)
        )
        ahead.append(many.objective / one.objective - 1.0)
    assert np.mean(ahead) > 0.0
    assert min(ahead) > -0.005
