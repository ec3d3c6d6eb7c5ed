"""Algorithms: one file per paper, one line per algorithm in the registry."""

from __future__ import annotations

import dataclasses
from typing import Any

from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm, Improvement, Problem
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.checks import InputError, choice, did_you_mean
from spibb.log import Log
from spibb.policy import Policy

REGISTRY: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm
    for algorithm in (
        PiBSpibb,
        PiLeqBSpibb,
        BasicRL,
        ModelFreeSpibb,
        HCPI,
        RaMDP,
        RobustMDP,
        ARBRM,
        Auto,
    )
}

__all__ = ["REGISTRY", "Algorithm", "Improvement", "Problem", "improve", "make"]


def make(name: str, **options: Any) -> Algorithm:
    """The algorithm of a registry name, with its hyper-parameters."""
    kind = REGISTRY[choice("algorithm", name, tuple(REGISTRY))]
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known)
            raise InputError(
                f"{name} has no option {option!r}{hint}: its options are {', '.join(known)}"
            )
    return kind(**options)


def improve(
    log: Log,
    baseline: Policy,
    *,
    discount: float = 0.95,
    v_max: float | None = None,
    algorithm: str = "pi-b",
    **options: Any,
) -> Improvement:
    """Improve a baseline from its log in one call; `options` go to the algorithm."""
    chosen = make(algorithm, **options)
    return chosen.improve(Problem.from_log(log, baseline, discount=discount, v_max=v_max))
