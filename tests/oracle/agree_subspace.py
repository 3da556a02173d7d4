"""Distributed PCA, package against `subspace.py`."""

import numpy as np

from d2dfl.partition.pca import common_subspace
from oracle.close import same
from oracle.subspace import captured, dispca, exact_scatter, projector, shared_mean
from subspaces import captured as captured_share

GAP = 0.02  # of eigenvalues beside each other, as a share: nearer ones may swap their directions by rounding


def check(seed: int) -> None:
    draws = np.random.default_rng([6, seed])
    devices, features = int(draws.integers(1, 6)), int(draws.integers(2, 9))
    spread = draws.normal(size=(features, features)) * 2.0 ** -np.arange(features)
    parts = []
    for _ in range(devices):
        count = int(draws.integers(1, 25))
        parts.append((draws.normal(size=(count, features)) @ spread.T + draws.normal(size=features)).astype(np.float32))
    points = sum(map(len, parts))
    wanted = int(draws.integers(1, min(features, points) + 1))
    plain = [part.astype(np.float64) for part in parts]
    mean = shared_mean(plain)
    found = {name: common_subspace(parts, wanted, name) for name in ("dispca", "scatter")}
    for name, oracle in (("dispca", dispca), ("scatter", exact_scatter)):
        same(f"{name}: mean", found[name].mean, mean, 1e-6)
        true, ours = oracle(plain, wanted), found[name].components
        same(f"{name}: orthonormal components", ours @ ours.T, np.eye(wanted), 1e-6)
        same(f"{name}: variance captured", captured(plain, ours), captured(plain, true), 1e-4)
        if _clear(plain, wanted):
            same(f"{name}: subspace", projector(ours), projector(true), 1e-3)
    best = captured(plain, exact_scatter(plain, wanted))
    share = captured_share(found["dispca"].components, np.concatenate(plain), mean)
    same("share of what pooled PCA captures", share, captured(plain, found["dispca"].components) / best, 1e-6)
    assert share <= 1 + 1e-9, f"disPCA captures {share} of what is best"
    if all(len(part) <= wanted for part in parts) or wanted == features:  # devices send all that they have
        same("disPCA of whole parts is the exact scatter", share, 1.0, 1e-4)


def _clear(parts: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]], wanted: int) -> bool:
    """Whether at every device, and at the server, the last component kept stands out from the first one left out."""
    mean = shared_mean(parts)
    stacks = [part - mean for part in parts]
    stacks.append(np.concatenate(stacks))
    for stack in stacks:
        values = np.sort(np.linalg.eigvalsh(stack.T @ stack))[::-1]
        if wanted < len(values) and values[wanted - 1] - values[wanted] <= GAP * values[0]:
            return False
    return True
