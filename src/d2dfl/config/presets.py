"""Presets: `best` (ours, the default) and `paper` (the most literal set that works), and what each paradigm changes."""

import types
from collections.abc import Mapping
from typing import Any

from d2dfl.config import Config
from d2dfl.config.sections.learning import PARADIGMS, SUPERVISED
from d2dfl.registry import entry_named

PRESETS = ("best", "paper")

_PAPER: Mapping[str, Any] = types.MappingProxyType(
    {
        # The most literal set that works at all. Each line is the option nearest to the text.
        "network.threshold": "0.05",  # R29
        "channel.budget_share": 0.1,  # R29
        "reward.reliability_weight": 1.0,  # R29
        "discovery.edges": 1,  # Section VI
        "reward.kind": "change",  # R7
        "reward.metric": "wasserstein",  # R8
        "reward.gate": 5,  # R29
        "reward.threshold_rule": "before-loss",  # R1: keeps every message equation as printed
        "reward.budget_rule": "ratio",  # R9: unscaled, the budget drowns every other term
        "discovery.method": "qlearning",
        "discovery.edge_mode": "sequence",  # R16
        "discovery.no_link": False,  # R12
        "discovery.count_bits": 8,  # Section IV-C: 8L bits a message
        "federation.views": "literal",  # R42
        "qlearning.reduction_rule": "multiply",  # R4
        "qlearning.temperature": 1.0,  # R3
        "qlearning.temperature_end": 1.0,
    }
)


# What a paradigm changes in every preset (R29, Appendix C), and in the paper's.
_PARADIGMS: Mapping[str, Mapping[str, Any]] = types.MappingProxyType(
    {
        "unsupervised": {
            "network.devices": 10,
            "federation.optimiser": "adam",
            "federation.learning_rate": 1e-3,
        },
        "regression": {"data.dataset": "diabetes", "network.devices": 10},
    }
)
_PAPER_PARADIGMS: Mapping[str, Mapping[str, Any]] = types.MappingProxyType(
    {
        "semi": {"partition.neighbours": 7},  # R35
        "unsupervised": {  # Remark 2, Algorithm 2, Fig. 8
            "discovery.edges": 2,
            "partition.clustering": "own",
            "partition.clusters": 7,
            "partition.components": 8,
        },
    }
)


def preset(name: str, paradigm: str = SUPERVISED) -> Config:
    """The configuration of a preset: `best` (ours, the default) or `paper` (the most literal set that works).

    A paradigm brings its own defaults: encoders train with Adam on 10 devices, a regression needs a set with numbers.
    """
    entry_named("preset", name, dict.fromkeys(PRESETS))
    entry_named("paradigm", paradigm, dict.fromkeys(PARADIGMS))
    changes = {"partition.paradigm": paradigm, **_PARADIGMS.get(paradigm, {})}
    if name == "paper":
        changes |= {**_PAPER, **_PAPER_PARADIGMS.get(paradigm, {})}
    return Config().with_(**changes)
