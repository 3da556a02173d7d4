"""Both Q-tables of a device and its policy (Sections IV-B and IV-E), rewards kept in plain lists."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

ROUNDING = 1e-12


@dataclass
class Learner:
    """One device. `update`: R2; `reduction_rule`: R4; H: `buffer`; delta: `reduction`."""

    actions: int
    buffer: int
    reduction: float
    update: str = "per-action"
    reduction_rule: str = "multiply"
    omega: list[float] = field(default_factory=list)  # every reward so far, reduced or not, oldest first
    of_action: dict[tuple[int, int], list[float]] = field(default_factory=dict)  # the same, by state and action
    psi_r: dict[tuple[int, int], float] = field(default_factory=dict)
    psi_c: dict[tuple[int, int], int] = field(default_factory=dict)

    def reduced(self, reward: float) -> float:
        """beta * R: smaller where it is below the mean of Omega."""
        last = self.omega[-self.buffer :]
        # R14: the mean of what is in the buffer, which is min(t, H) rewards. Into an empty one all goes as it is.
        # In fractions, and up to rounding: a reward that equals the mean is not below it.
        mean = sum(map(Fraction, last), Fraction(0)) / max(len(last), 1)
        if not last or mean - Fraction(reward) <= Fraction(ROUNDING) * abs(mean):
            return reward
        if self.reduction_rule == "multiply":
            return (1.0 - self.reduction) * reward
        return reward - self.reduction * abs(reward)  # R4: a bad reward must not become a better one

    def learn(self, state: int, action: int, reward: float) -> None:
        """Section IV-E: Omega, psi^R and psi^C after `action` in `state` has brought `reward`."""
        kept = self.reduced(reward)
        self.omega.append(kept)
        rewards = self.of_action.setdefault((state, action), [])
        rewards.append(kept)
        # R2: the sum of this action's last H rewards. Literal: of the last H rewards of any action.
        last = (rewards if self.update == "per-action" else self.omega)[-self.buffer :]
        self.psi_r[state, action] = math.fsum(last)
        self.psi_c[state, action] = len(last)

    def worth(self, state: int, action: int) -> float | None:
        """psi^R / psi^C; None: never tried."""
        if (state, action) not in self.psi_c:
            return None
        return self.psi_r[state, action] / self.psi_c[state, action]

    def probabilities(self, state: int, temperature: float, unknown: float, real: list[int]) -> list[float]:
        """eq. prob_edge at a temperature (R3), over the actions that exist; never tried: worth `unknown` (R13)."""
        worth = {action: unknown if (w := self.worth(state, action)) is None else w for action in real}
        highest = max(worth.values())
        weights = [math.exp((worth[action] - highest) / temperature) if action in worth else 0.0 for action in self.all]
        return [weight / sum(weights) for weight in weights]

    def untried(self, state: int) -> list[int]:
        return [action for action in self.all if (state, action) not in self.psi_c]

    @property
    def all(self) -> range:
        return range(self.actions)
