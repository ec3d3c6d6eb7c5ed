"""Baselines of a wanted performance in a known MDP: soften the optimal policy and randomise it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.checks import choice, number
from spibb.errors import InputError
from spibb.kernels import garnet
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import free_box, optimise, unit_of

RANDOMISATIONS = ("move", "multiply")
MAX_STATES = 4096
"""Randomisation keeps a dense inverse [S, S]."""
MISSED_BY = 1e-9
"""Of values, in units of the largest reward."""


@dataclass(frozen=True, eq=False)
class SoftenedBaseline:
    """A baseline, its value ρ(π_b) ≤ target, and the optimal and uniform policies' values.

    One randomisation step earlier the value was above the target.
    """

    policy: Policy
    value: float
    target: float
    optimal_value: float
    uniform_value: float


def softened_baseline(
    mdp: MDP, eta: float, rng: np.random.Generator, randomisation: str = "move"
) -> SoftenedBaseline:
    """A baseline with ρ(π_b) = ηρ* + (1 − η)ρ̃, ρ̃ the uniform policy's value (appendix B.1.4).

    Softening: softmax(Q*/τ) with τ such that ρ = (ρ_b + ρ*)/2. Randomisation: in a random state,
    take mass from argmax_a Q*(x, a), until ρ ≤ ρ_b. `randomisation` is "move" (the paper: 0.1, or
    what is left, goes to another random action) or "multiply" (the released code: times 0.9, then
    renormalise).

    1. States in which all actions are equally good, such as a terminal one, stay uniform.
    """
    return softened_baselines(mdp, (eta,), rng, randomisation)[0]


def softened_baselines(
    mdp: MDP,
    etas: Sequence[float],
    rng: np.random.Generator,
    randomisation: str = "move",
    *,
    optimal_q: np.ndarray | None = None,
) -> tuple[SoftenedBaseline, ...]:
    """One `softened_baseline` for each η, in one compiled call.

    Q* [S, A] is computed once, or given where a search has found it already.
    """
    _check(mdp, etas, randomisation)
    if optimal_q is None:
        optimal_q = optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool))).q
    mdp.check_fits(optimal_q, "optimal_q")
    seeds = rng.integers(2**64, size=len(etas), dtype=np.uint64)
    unit, task = unit_of(mdp.rewards), mdp.task
    probs, (values, _, targets), uniform, optimal = garnet.baselines(
        task._replace(rewards=mdp.rewards / unit), optimal_q / unit,
        np.array(etas, dtype=np.float64), randomisation == "multiply", seeds,
    )  # fmt: skip
    _check_reached(etas, values, targets)
    values, targets, uniform, optimal = (unit * x for x in (values, targets, uniform, optimal))
    return tuple(
        SoftenedBaseline(
            Policy.trusted(rows, mdp.states, mdp.actions), value, target, optimal, uniform
        )
        for rows, value, target in zip(probs, values.tolist(), targets.tolist())
    )


def _check(mdp: MDP, etas: Sequence[float], randomisation: str) -> None:
    choice("randomisation", randomisation, RANDOMISATIONS)
    for eta in etas:
        number("eta", eta, 0, 1, "()")
    if len(mdp.states) > MAX_STATES:
        raise InputError(
            f"mdp has {len(mdp.states)} states, expected at most {MAX_STATES}: softening inverts "
            "a dense matrix; make the baseline from a smaller MDP"
        )


def _check_reached(etas: Sequence[float], values: np.ndarray, targets: np.ndarray) -> None:
    missed = values > targets + MISSED_BY
    if missed.any():
        e = int(np.argmax(missed))
        raise InputError(
            f"eta {etas[e]:g} asks for a value of {targets[e]:.6g}, but without its best actions "
            f"the baseline is still worth {values[e]:.6g}: raise eta"
        )
