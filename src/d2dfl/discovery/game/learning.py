"""What our learner remembers and spends, and the two draws by which it decides: noise on proposals, and what is kept."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import leaf
from d2dfl.discovery.constants import SLIGHT
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.offers import Told

NO_DEVICE = np.int64(-1)
RESTLESSNESS = 1 << 40  # where the stream of noise begins that is there at every turn


class LearnerState(NamedTuple):
    """What the devices remember between revisions, and what they have spent."""

    useful: NDArray[np.bool_]  # [receiver, slot] introduced at the start, and with something to send
    told: Told  # [receiver, edge, label] by the transmitters of the links in force
    prices: NDArray[np.float64]  # [receiver, edge, label] what a datapoint less would cost, as its transmitter was told
    introduced: NDArray[np.float64]  # [transmitter, label] worth of giving, as told at the start
    bonus: NDArray[np.float32]  # data clusters: [receiver, slot] what the transmitter itself won when it was tried last
    claim: NDArray[np.float32]  # [receiver, slot] what the link is worth to the receiver beyond the objective
    unit: NDArray[np.float64]  # [1] what a device expects of its best link, in the mean
    account: NDArray[np.int64]  # [device] messages that its revisions may take until this cycle ends
    spent: NDArray[np.int64]  # [device] messages that they took
    began: NDArray[np.int64]  # [device] those that they had taken when this cycle began
    taking_turns: NDArray[np.bool_]  # [device] still revises
    draws: NDArray[np.int64]  # [device] random numbers used
    turns: NDArray[np.int64]  # [device] revisions
    holder: NDArray[np.int64]  # [1] whose turn was last; NO_DEVICE at the beginning
    quiet: NDArray[np.int64]  # [1] turns in a row that changed nothing, which the token counts
    gained: NDArray[np.float64]  # [1] what moves have brought so far, claims included, which the token adds up
    carried: NDArray[np.int64]  # [1] real numbers that the token carries
    messages: NDArray[np.float64]  # [1] sent by all
    counts: NDArray[np.float64]  # [1] counts inside them
    reals: NDArray[np.float64]  # [1] real numbers inside them
    bits: NDArray[np.float64]  # [1] bits of masked sums


class Cooling(NamedTuple):
    """How a device's temperature falls with what it has spent of its account in one cycle."""

    hot: float  # temperature at the beginning
    cold: float  # share of the account from which on it is 0
    restless: float  # of `hot`: proposals are at least this noisy, also when only what improves is kept
    patience: int  # turns in a row without a change after which the cycle ends


class Devices(NamedTuple):
    """What is a device's own, and stays as it is while it learns."""

    keys: NDArray[np.uint64]  # [device] of its draws
    free: NDArray[np.bool_]  # [device] whether it may be without a link


class Revision(NamedTuple):
    """One device that reconsiders one of its links, and how warm it is."""

    key: np.uint64  # of the device's draws
    receiver: np.int64
    edge: np.int64
    free: bool  # whether it may be without a link
    temperature: float
    noise: float  # on its proposals


@leaf
def gumbel(learner: Any, revision: Any) -> Any:
    """Noise whose largest draw over choices makes a softmax of them."""
    if revision.noise <= 0.0:
        return 0.0
    draw = uniform(revision.key, learner.draws[revision.receiver])
    learner.draws[revision.receiver] += 1
    return -revision.noise * np.log(-np.log(draw + 1e-300) + 1e-300)


@leaf
def keeps(learner: Any, revision: Any, change: Any, expected: Any) -> Any:
    """Whether a device keeps a move that changed this much, where it had expected `expected`.

    When cold, it keeps what improves. When warm, also what is worse, but no more so than it had expected: noise proposed such a
    move as often as log-linear learning makes it.
    """
    if revision.temperature <= 0.0:
        return change > SLIGHT
    draw = uniform(revision.key, learner.draws[revision.receiver])
    learner.draws[revision.receiver] += 1
    return draw < np.exp(min(0.0, change / revision.temperature - min(expected, 0.0) / revision.noise))


@leaf
def say(learner: Any, messages: Any, counts: Any, reals: Any) -> None:
    """Charge messages, and the numbers inside of them."""
    learner.messages[0] += messages
    learner.counts[0] += counts
    learner.reals[0] += reals
