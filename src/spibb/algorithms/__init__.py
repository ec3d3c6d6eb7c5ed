"""Algorithms: one file per paper, one line per algorithm in the registry."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from spibb import checks
from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.certified import Certified
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb, ThresholdSpibb
from spibb.behaviour import Baseline
from spibb.checks import did_you_mean
from spibb.defaults import DELTA, DISCOUNT
from spibb.errors import InputError
from spibb.log import Log
from spibb.names import DQN

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
        Certified,
    )
}

__all__ = ["REGISTRY", "Algorithm", "Improvement", "Problem", "configured", "improve", "make"]


def configured(
    algorithm: str | type[Algorithm] | Algorithm,
    options: Mapping[str, Any],
    delta: float | None = None,
) -> tuple[Algorithm, float]:
    """The algorithm of a name, a class or an instance, and the failure probability δ.

    Where the algorithm answers at a level of its own (`Auto`, `Certified`), its field `delta` is
    that δ, and another one is refused. An N∧ that the log chooses is chosen at that level.
    """
    chosen = _chosen(algorithm, dict(options))
    if getattr(chosen, "n_wedge", None) == "auto" and isinstance(chosen, ThresholdSpibb):
        chosen, algorithm = chosen.chooser, type(chosen)
    if delta is not None:
        checks.delta(delta)
    if not chosen.answers_at_delta:
        return chosen, DELTA if delta is None else delta
    own: float = chosen.delta  # type: ignore[attr-defined]
    if delta is None or delta == own:
        return chosen, own
    if "delta" in options or isinstance(algorithm, Algorithm):
        raise InputError(
            f"delta is {delta:g}, and {own:g} as an option of {chosen.name}: give it once"
        )
    return dataclasses.replace(chosen, delta=delta), delta  # type: ignore[type-var]


def _chosen(algorithm: Any, options: dict[str, Any]) -> Algorithm:
    if isinstance(algorithm, type) and issubclass(algorithm, Algorithm):
        return _configured(algorithm, algorithm.__name__, options)
    if not isinstance(algorithm, Algorithm):
        return make(algorithm, **options)
    if options:
        raise InputError(
            f"{next(iter(options))} is given with a configured {type(algorithm).__name__}: give "
            f"options to its constructor, as {type(algorithm).__name__}({next(iter(options))}=…)"
        )
    return algorithm


def make(name: str, /, **options: Any) -> Algorithm:
    """The algorithm of a registry name, or of a class of yours: module.Class."""
    if not isinstance(name, str):
        raise InputError(
            f"algorithm is {checks.named(name)}, expected a name, a class or a configured "
            "algorithm: write 'pi-b', PiBSpibb or PiBSpibb(n_wedge=10)"
        )
    own = "." in name
    if name.lower() == DQN:
        raise InputError(
            f"{name} learns from vectors, and here states are labels: use spibb.run(source, "
            f"algorithm={DQN!r}) or spibb improve --algorithm {DQN}, which read the table"
        )
    return _configured(_imported(name) if own else _registered(name), name, options)


def _registered(name: str) -> type[Algorithm]:
    if name not in REGISTRY:
        raise InputError(
            f"algorithm is {checks.shown(name)}{did_you_mean(name, [*REGISTRY, DQN])}: choose one "
            f"of {', '.join(REGISTRY)}; {DQN} for numeric columns; or your own, as module.Class"
        )
    return REGISTRY[name]


def _configured(kind: type[Algorithm], name: str, options: dict[str, Any]) -> Algorithm:
    checks.options(name, kind, options)
    return kind(**options)


def _imported(name: str) -> type[Algorithm]:
    """The class of an import path; modules of the current folder are found too."""
    module, _, attribute = name.rpartition(".")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"algorithm {name!r} cannot be imported ({error}): write module.Class, of a module "
            "that is installed or in the current folder"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, Algorithm)):
        raise InputError(f"{name!r} is not an algorithm: derive it from spibb.algorithms.Algorithm")
    return kind


def improve(
    log: Log,
    baseline: Baseline | None = None,
    *,
    discount: float = DISCOUNT,
    v_max: float | None = None,
    algorithm: str | type[Algorithm] | Algorithm = "pi-b",
    **options: Any,
) -> Improvement:
    """Improve a baseline from its log in one call.

    `algorithm` is a registry name, an import path, a class, or a configured algorithm; `options` go
    to the algorithm of a name or a class.

    Parameters:
        log: the log.
        baseline: the policy that made it, in any form that `Problem.from_log` takes; None
            takes the log's `action_prob`, and estimates the policy where that was not recorded.
        discount: γ in [0, 1).
        v_max: largest absolute return; derived from the rewards if None.
        algorithm: what improves it.
        options: options of the algorithm, such as ``n_wedge=10``.

    Returns:
        The new policy with its values, `verdict`, `certificate()` and `posterior()`.

    >>> spibb.improve(log, baseline, discount=0.9, n_wedge=1).policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    """
    chosen = _chosen(algorithm, options)
    return chosen.improve(Problem.from_log(log, baseline, discount=discount, v_max=v_max))
