"""Who trusts whom with what (paper eq. trust_matrix, Section III, Appendix D, R27, R46).

A trust rule is a text: "random:0.5", "block", "rows:0.5", "columns:0.5", "insecure:0.5", "full", "none", or the path of
an .npy file that holds trust[receiver, transmitter, partition]. Rules fill the receiver x slot layout directly, so that 100,000
devices need no N x N table.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.arrays import read_npy
from d2dfl.errors import UserError
from d2dfl.registry import no_such
from d2dfl.rng import stream

Trust = NDArray[np.bool_]  # [receiver, slot, partition]
Candidates = NDArray[np.int32]  # [receiver, slot], -1 pads
BLOCK_LIMIT = 5000
DENSITY = 0.5  # R27: what structure leaves open is trusted as often as in the random matrix


def random(candidates: Candidates, partitions: int, density: float, seed: int) -> Trust:
    """Every entry is 1 with probability `density`, independently."""
    if not 0 <= density <= 1:
        raise UserError(f"the trust density cannot be {density}: give a number from 0 to 1")
    return stream(seed, "trust").random((*candidates.shape, partitions), dtype=np.float32) < density


def rows(candidates: Candidates, partitions: int, sparsity: float, seed: int) -> Trust:
    """Each transmitter closes each *receiver's* row with probability `sparsity` (Appendix D)."""
    closed = _closed(sparsity, seed, "trust-rows", candidates.shape)
    return random(candidates, partitions, DENSITY, seed) & ~closed[:, :, None]


def columns(candidates: Candidates, partitions: int, sparsity: float, seed: int) -> Trust:
    """Each transmitter closes a share `sparsity` of its *partitions*, drawn by itself, for everybody (Appendix D)."""
    devices = candidates.shape[0]
    order = stream(seed, "trust-columns").random((devices, partitions)).argsort(axis=1)
    closed = order < round(_share(sparsity) * partitions)
    return random(candidates, partitions, DENSITY, seed) & ~closed[candidates]


def insecure(candidates: Candidates, partitions: int, share: float, seed: int) -> Trust:
    """A share of the devices is held to be insecure by *everybody*: they receive nothing (Section III, R46)."""
    devices = candidates.shape[0]
    closed = np.zeros(devices, dtype=np.bool_)
    closed[stream(seed, "trust-insecure").permutation(devices)[: round(_share(share) * devices)]] = True
    return random(candidates, partitions, DENSITY, seed) & ~closed[:, None, None]


def block(candidates: Candidates, partitions: int, density: float, seed: int) -> Trust:
    """Each transmitter's matrix is block diagonal, blocks of 2 to 4 receivers x 2 to 4 partitions (Appendix D).

    Blocks run along the diagonal and start again at the first partition when partitions run out, so that every
    receiver lies in one block. R27: inside a block an entry is 1 with probability `density`, as everywhere else; full
    blocks are block:1.
    """
    devices = candidates.shape[0]
    if devices > BLOCK_LIMIT:
        raise UserError(f"block trust is laid out device by device: give at most {BLOCK_LIMIT} devices, not {devices}")
    generator = stream(seed, "trust-block")
    first = np.zeros((devices, devices), dtype=np.int16)
    last = np.zeros((devices, devices), dtype=np.int16)
    for transmitter in range(devices):
        receiver = partition = 0
        while receiver < devices:
            tall, wide = generator.integers(2, 5, size=2)
            first[transmitter, receiver : receiver + tall] = partition
            last[transmitter, receiver : receiver + tall] = min(partition + wide, partitions)
            receiver += int(tall)
            partition = 0 if partition + wide >= partitions else partition + int(wide)
    receivers = np.arange(devices)[:, None]
    index = np.arange(partitions)
    inside = (index >= first[candidates, receivers][..., None]) & (index < last[candidates, receivers][..., None])
    return inside & random(candidates, partitions, density, seed)


def full(candidates: Candidates, partitions: int, _: float, __: int) -> Trust:
    """Everyone trusts everyone with everything."""
    return np.ones((*candidates.shape, partitions), dtype=np.bool_)


def none(candidates: Candidates, partitions: int, _: float, __: int) -> Trust:
    """Nobody trusts anybody."""
    return np.zeros((*candidates.shape, partitions), dtype=np.bool_)


FULL = "full"  # nothing is kept back: a rule that nobody has to be told of
# name -> (rule, value when the text gives none)
RULES: dict[str, tuple[Callable[[Candidates, int, float, int], Trust], float]] = {
    "random": (random, DENSITY),
    "block": (block, DENSITY),
    "rows": (rows, 0.5),
    "columns": (columns, 0.5),
    "insecure": (insecure, 0.5),
    FULL: (full, 1.0),
    "none": (none, 0.0),
}


def make(rule: str, candidates: Candidates, partitions: int, seed: int) -> Trust:
    """Trust[receiver, slot, partition] by the rule's text; padded slots trust nothing."""
    if rule.endswith(".npy"):
        trust = _from_file(Path(rule), candidates, partitions)
    else:
        name, _, value = rule.partition(":")
        if name not in RULES:
            raise no_such("trust rule", rule, f"give {', '.join(RULES)} with an optional :value, or an .npy file")
        function, default = RULES[name]
        try:
            number = float(value) if value else default
        except ValueError:
            raise UserError(
                f"the trust rule {rule!r:.80} has no number after the colon: write for example {name}:0.5"
            ) from None
        trust = function(candidates, partitions, number, seed)
    return trust & (candidates >= 0)[:, :, None]


def to_slots(trust: NDArray[np.bool_], candidates: Candidates) -> Trust:
    """Turn trust[receiver, transmitter, partition] into trust[receiver, slot, partition]."""
    receivers = np.arange(candidates.shape[0])[:, None]
    picked: Trust = trust[receivers, candidates] & (candidates >= 0)[:, :, None]
    return picked


def _share(sparsity: float) -> float:
    if not 0 <= sparsity <= 1:
        raise UserError(f"the trust sparsity cannot be {sparsity}: give a number from 0 to 1")
    return sparsity


def _closed(sparsity: float, seed: int, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return stream(seed, name).random(shape) < _share(sparsity)


def _from_file(path: Path, candidates: Candidates, partitions: int) -> Trust:
    devices = candidates.shape[0]
    trust = read_npy(path, "an .npy file of trust[receiver, transmitter, partition]")
    if trust.shape != (devices, devices, partitions):
        raise UserError(
            f"{path} holds an array of shape {trust.shape}: trust[receiver, transmitter, partition] must be {(devices, devices, partitions)}"
        )
    if not ((trust == 0) | (trust == 1)).all():
        raise UserError(f"{path} holds trust values other than 0 and 1: give only 0 and 1")
    return to_slots(trust.astype(np.bool_), candidates)
