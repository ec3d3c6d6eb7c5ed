"""Ξ(M̂, e): the MDPs that a log does not rule out, and the worst and best of them for a policy.

Ξ is rectangular: nature picks every row on its own, so that one sort per row finds the worst one,
and robust policy iteration finds the policy that is best against it (Iyengar 2005; Nilim & El
Ghaoui 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb import checks
from spibb.algorithms.problem import Circumstances, Problem
from spibb.arrays import largest
from spibb.certificate import Premises, error_radius
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import dense, robust
from spibb.kernels.tuples import Ambiguous
from spibb.mdp import MDP
from spibb.solve import (
    MAX_SWEEPS,
    METHODS,
    TOLERANCE,
    Box,
    Found,
    Solution,
    is_dense,
    largest_error,
    unit_of,
)
from spibb.ties import settle


@dataclass(frozen=True, eq=False)
class UncertaintySet(Frozen):
    """Ξ(M̂, e): the MDPs that a log does not rule out (section 2.1).

    All M with ‖P(·|x,a) − P̂(·|x,a)‖₁ ≤ e(x,a) and |R(x,a) − R̂(x,a)| ≤ e(x,a) R_max. `radius` is e
    [S, A], at most 2, and 2 where a pair was never seen; `low` and `high` [S, A] are the ends of
    the interval of R.

    1. P ranges over all distributions on X ∪ {end}: a row may put mass on any state of the
       vocabulary and on the end of the process, observed there or not. The end is worth 0.
    2. R also stays within ±R_max, as that is what R_max means; the printed interval alone would
       let a pair pay −3 R_max.
    """

    mdp: MDP
    radius: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def around(cls, mdp: MDP, radius: np.ndarray, r_max: float) -> UncertaintySet:
        """The set around a model, with errors `radius` [S, A] on P and radius · r_max on R."""
        radius = np.minimum(np.maximum(radius, 0.0), 2.0)
        return cls(mdp, radius, *robust.reward_interval(mdp.rewards, radius, r_max))

    @classmethod
    def from_problem(
        cls,
        problem: Problem,
        *,
        delta: float = 0.1,
        r_max: float | None = None,
        known_rewards: bool = False,
    ) -> UncertaintySet:
        """The set that holds the true MDP with probability 1 − δ, by Proposition 1.

        `r_max` bounds |R|; without it, it is the largest absolute reward of the log.
        `known_rewards` takes R̂ as exact in the pairs seen, as Petrik et al. do; the others pay
        what the log's rewards allow.
        """
        radius, unit = error_radii(problem, delta), problem.unit
        largest = reward_bound(problem, r_max) / unit
        low, high = robust.reward_bounds(problem.data, radius, largest, known_rewards)
        return cls(problem.model, radius, low * unit, high * unit)

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return self.mdp.shape


@dataclass(frozen=True, eq=False)
class ExtremeSolution(Solution):
    """A policy, its values in the worst (or best) MDP of an uncertainty set, and that MDP."""

    mdp: MDP

    @cached_property
    def value(self) -> float:
        """ρ(π, M) in that MDP."""
        return float(self.mdp.initial @ self.v)


def error_radii(problem: Problem, delta: float) -> np.ndarray:
    """e(x, a) [S, A] of Proposition 1, at most 2: no two distributions are farther apart."""
    return robust.radii(problem.data.model.counts, radius_of_one(problem.circumstances, delta))


def radius_of_one(known: Circumstances, delta: float) -> float:
    """e(x, a) of Proposition 1 for a pair seen once."""
    return error_radius(1, Premises(*known.shape, known.discount, known.v_max, delta))


def reward_bound(problem: Problem, r_max: float | None) -> float:
    """R_max: as given, otherwise the largest absolute reward of the log."""
    seen = robust.largest_reward(*problem.counts.reward_range)
    if r_max is None:
        return seen
    checks.number("r_max", r_max, 0, math.inf, "[)")
    if r_max < seen:
        raise InputError(
            f"r_max is {r_max:g}, but the log holds a reward of {seen:g} in absolute value: "
            f"give at least {seen:g}"
        )
    return float(r_max)


def optimise_worst_case(xi: UncertaintySet, box: Box, *, method: str = "auto") -> ExtremeSolution:
    """argmax_π min_{M ∈ Ξ} ρ(π, M) over a box of policies (Equation 2).

    `auto` solves exactly by robust policy iteration up to a few hundred states, and sweeps
    beyond, until the error is proven to be below `TOLERANCE` times the largest value.
    """
    return _solve(xi, xi.low, box, method)


def worst_case(xi: UncertaintySet, probs: np.ndarray, *, method: str = "auto") -> ExtremeSolution:
    """min_{M ∈ Ξ} ρ(π, M) for a policy [S, A]."""
    return _solve(xi, xi.low, _only(probs), method)


def best_case(xi: UncertaintySet, probs: np.ndarray, *, method: str = "auto") -> ExtremeSolution:
    """max_{M ∈ Ξ} ρ(π, M) for a policy [S, A]: the worst case of the negated rewards, negated."""
    mirrored = _solve(xi, -xi.high, _only(probs), method)
    return replace(
        mirrored,
        q=-mirrored.q,
        v=-mirrored.v,
        mdp=replace(mirrored.mdp, rewards=-mirrored.mdp.rewards),
    )


def _only(probs: np.ndarray) -> Box:
    """The box that holds one policy."""
    rows = np.array(probs, dtype=np.float64, order="C")
    return Box(rows, rows, rows)


class _Game(NamedTuple):
    """What the robust kernels take: the models, in units of the largest reward, the box, and room
    for the policy, for Q and for nature's reply."""

    ambiguous: Ambiguous
    box: Box
    probs: np.ndarray
    q: np.ndarray
    kept: np.ndarray
    moved: np.ndarray


class _Played(NamedTuple):
    """The values of a game, and the outcome `worst` that nature moves mass to."""

    found: Found
    worst: int


def _solve(xi: UncertaintySet, rewards: np.ndarray, box: Box, method: str) -> ExtremeSolution:
    checks.choice("method", method, METHODS)
    mdp, unit = xi.mdp, unit_of(rewards)
    game = _Game(
        Ambiguous(mdp.task.rows, rewards / unit, xi.radius, mdp.discount),
        box,
        probs=box.start.copy(),
        q=np.empty(xi.shape),
        kept=np.empty(len(mdp.probs)),
        moved=np.empty(rewards.size),
    )
    played = _iterate(game) if is_dense(method, len(rewards)) else _sweep(game)
    found = Solution.in_units(unit, played.found)
    return ExtremeSolution(
        found.probs, found.q, found.v, found.iterations, found.converged, found.error,
        _with_reply(mdp, rewards, game.kept, game.moved, played.worst),
    )  # fmt: skip


def _iterate(game: _Game) -> _Played:
    """The exact solution, by robust policy iteration."""
    last = robust.RobustValues(*robust.policy_iteration(*game))
    rounding = largest(last.ties)
    error = largest_error(rounding, game.ambiguous.discount)
    converged = last.settled and error <= TOLERANCE / dense.ROUNDING * rounding
    found = Found(game.probs, game.q, last.v, last.iterations, converged, error)
    return _Played(found, last.worst)


def _sweep(game: _Game) -> _Played:
    """A solution within `TOLERANCE`, by sweeps.

    As in `solve.optimise`, values come closer where a tie is in doubt that could cost more.
    """
    last = robust.RobustBound(*robust.sweep(*game, TOLERANCE, MAX_SWEEPS))
    wanted, sweeps = last.wanted, last.sweeps
    game.probs[:], doubtful = _settle(game, last)
    if doubtful:
        closer = TOLERANCE * (1 - game.ambiguous.discount) / 4
        last = robust.RobustBound(*robust.sweep(*game, closer, MAX_SWEEPS))
        game.probs[:], doubtful = _settle(game, last)
        sweeps += last.sweeps
    converged = last.error <= wanted and not doubtful
    return _Played(Found(game.probs, game.q, last.v, sweeps, converged, last.error), last.worst)


def _settle(game: _Game, last: robust.RobustBound) -> tuple[np.ndarray, bool]:
    """The greedy policy against nature's reply to V, and whether a tie in it is in doubt.

    An error of V counts at most as if nature moved its mass to where the error is largest.
    """
    rows, rewards, radius, discount = game.ambiguous
    q, moved, v, worst = game.q, game.moved, last.v, last.worst
    zero, lowest = np.zeros(q.shape), abs(v[worst]) if worst >= 0 else 0.0
    sizes = dense.q_values(rows._replace(probs=game.kept), np.abs(rewards), discount, np.abs(v))
    sizes += discount * lowest * moved.reshape(q.shape)

    def backup(errors: np.ndarray) -> np.ndarray:
        farthest = discount * radius / 2 * errors.max()
        return dense.q_values(rows, zero, discount, errors) + farthest

    return settle(q, game.box, backup, v, sizes, last.error, TOLERANCE * (1 - discount))


def _with_reply(
    mdp: MDP, rewards: np.ndarray, kept: np.ndarray, moved: np.ndarray, worst: int
) -> MDP:
    """The MDP of nature's reply: rows of `kept`, and `moved` on the worst outcome.

    A successor may occur twice in a row; its masses add up.
    """
    indptr, successors = mdp.indptr, mdp.successors
    if worst >= 0:
        ends = indptr[1:]
        successors = np.insert(successors, ends, worst)
        kept = np.insert(kept, ends, moved)
        indptr = indptr + np.arange(len(indptr))
    return MDP(
        indptr, successors, kept, rewards, mdp.initial, mdp.discount, mdp.states, mdp.actions
    )
