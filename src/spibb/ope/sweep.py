"""Passes over a log that give every episode's part in the six estimators, for many policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from spibb.evaluate import returns
from spibb.kernels import ope as kernels
from spibb.kernels.formulas import mixed, pdis_limit
from spibb.log import Log
from spibb.mdp import MDP
from spibb.solve import evaluate


@dataclass(frozen=True, eq=False)
class Candidates:
    """K policies side by side: `probs` [S, A, K]; their values are those in a model."""

    probs: np.ndarray

    needs_model: ClassVar[bool] = True

    @classmethod
    def of(cls, *policies: np.ndarray) -> Candidates:
        """Any policies, each [S, A]."""
        return cls(np.stack(policies, axis=2))

    @classmethod
    def mixtures(cls, trained: np.ndarray, baseline: np.ndarray, alphas: np.ndarray) -> Candidates:
        """(1 − α) π_t + α π_b for every α [K]."""
        return cls(mixed(alphas, trained[:, :, None], baseline[:, :, None]))

    def values(self, model: MDP | None) -> tuple[np.ndarray, np.ndarray]:
        """Q̂ [S, A, K] and V̂ [S + 1, K] of every policy in a model; the last row of V̂ is 0.

        Without a model all values are 0.
        """
        n_states, _, n_lanes = self.probs.shape
        q, v = np.zeros(self.probs.shape), np.zeros((n_states + 1, n_lanes))
        if model is None:
            return q, v
        for k in range(n_lanes):
            solution = evaluate(model, np.ascontiguousarray(self.probs[:, :, k]))
            q[:, :, k], v[:n_states, k] = solution.q, solution.v
        return q, v


@dataclass(frozen=True, eq=False)
class ValuedCandidates(Candidates):
    """K policies that bring their own values, from wherever: `q` [S, A, K] and `v` [S, K]."""

    q: np.ndarray
    v: np.ndarray

    needs_model: ClassVar[bool] = False

    def values(self, model: MDP | None) -> tuple[np.ndarray, np.ndarray]:
        """Q̂ and V̂ as they were brought; the last row of V̂ is 0."""
        return self.q, np.concatenate([self.v, np.zeros_like(self.v[:1])])


@dataclass(frozen=True, eq=False)
class Sweep:
    """Passes of the kernels over one log, each made when first needed."""

    log: Log
    candidates: Candidates
    propensities: np.ndarray
    discount: float
    model: MDP | None
    truncated: str

    @cached_property
    def tables(self) -> kernels.LaneTables:
        """The policies and their values."""
        return kernels.LaneTables(self.candidates.probs, *self.candidates.values(self.model))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of steps T of each episode [E]."""
        return self.log.lengths

    @cached_property
    def beyond(self) -> np.ndarray:
        """The state whose value completes each episode [E]; S, worth 0, where nothing does."""
        nothing, last = len(self.log.states), self.log.last_rows
        following = self.log.next_state[last]
        completed = self.log.truncated[last] & (following >= 0) & (self.truncated == "model")
        return np.where(completed, following, nothing)

    @cached_property
    def episodes(self) -> kernels.LoggedEpisodes:
        """The columns of the log, as the kernels take them.

        A step's successor is the state of the next row, whose Q̂ the estimate subtracts there: a
        recorded `next_state` that differs would not cancel.
        """
        log = self.log
        following = np.append(log.state[1:], 0)
        following[log.last_rows] = self.beyond
        return kernels.LoggedEpisodes(
            log.episode_starts, log.state, log.action, log.reward, following, self.beyond,
            1 / self.propensities,
        )  # fmt: skip

    @cached_property
    def powers(self) -> np.ndarray:
        """γ^t [H, 1] for every step of the longest episode."""
        return self.discount ** np.arange(self.lengths.max(), dtype=np.float64)[:, None]

    @cached_property
    def completed(self) -> np.ndarray:
        """The returns with what the model adds beyond a cut [E, K]."""
        v = self.tables.v[self.beyond]
        recorded = returns(self.log, self.discount)[:, None]
        return np.asarray(recorded + self.final_powers * v)

    @cached_property
    def final_powers(self) -> np.ndarray:
        """γ^T [E, 1]."""
        return np.asarray(self.discount * self.powers[self.lengths - 1])

    @cached_property
    def plain(self) -> kernels.LaneSums:
        """Episode weights, pdis and dr, each [E, K]."""
        return self._centred(0.0)

    def decisions(self, less: float) -> np.ndarray:
        """Σ_t γ^t w_t (r_t − c) [E, K], with what the model adds."""
        return (self._centred(less) if less else self.plain).decisions

    def _centred(self, less: float) -> kernels.LaneSums:
        shape = len(self.powers), self.candidates.probs.shape[2]
        centre = np.zeros((2, *shape))
        centre[0] = less
        return self._forward(np.broadcast_to(self.powers, shape).copy(), centre)

    @cached_property
    def normalised(self) -> tuple[np.ndarray, np.ndarray]:
        """wpdis and wdr, linearised, each [E, K].

        With ω_t^i = w_t^i / Σ_i w_t^i and y the reward (wpdis) or the model error (wdr) of a step,
        X_i = [V̂(x_0^i)] + Σ_t γ^t (ȳ_t + E ω_t^i (y_t^i − ȳ_t)), ȳ_t = Σ_i ω_t^i y_t^i. After its
        end an episode has y = 0 and keeps its last weight: that is the term in `rest`.
        """
        sums = np.zeros((3, len(self.powers), self.candidates.probs.shape[2]))
        kernels.step_sums(self.episodes, self.tables, self.discount, sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            total, weighted = sums[0], sums[1:]
            means, scale = weighted / total, self.powers * len(self.lengths) / total
            weights, *centred = self._forward(scale, means)
            later = np.flip(np.cumsum(np.flip(scale * means, axis=1), axis=1), axis=1)
            rest = np.concatenate([later, np.zeros_like(later[:, :1])], axis=1)[:, self.lengths]
            both = centred - weights * rest + (self.powers * means).sum(axis=1)[:, None]
        return both[0], both[1]

    def _forward(self, scale: np.ndarray, centre: np.ndarray) -> kernels.LaneSums:
        shape = len(self.lengths), scale.shape[1]
        out = kernels.LaneSums(np.empty(shape), np.empty(shape), np.empty(shape))
        kernels.forward(self.episodes, self.tables, self.discount, scale, centre, out)
        return out


def _wis(sweep: Sweep) -> np.ndarray:
    """θ + E ω_i (G_i − θ) with ω_i = w_i / Σw and θ = Σ_i ω_i G_i."""
    weights = sweep.plain.weights
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = weights / weights.sum(axis=0)
        value = (shares * sweep.completed).sum(axis=0)
        return np.asarray(value + len(shares) * shares * (sweep.completed - value))


def _is(sweep: Sweep, low: float = 0.0) -> np.ndarray:
    """L + w (G − L)."""
    return low + sweep.plain.weights * (sweep.completed - low)


def _pdis(sweep: Sweep, low: float = 0.0) -> np.ndarray:
    """L + Σ_t γ^t w_t (r_t − (1 − γ)L) − γ^T w_{T−1} L: the end is absorbing and pays −(1 − γ)L.

    With r_t ≥ (1 − γ)L no term of the sum is negative; nor is the last one, if L ≤ 0.
    """
    shifted = sweep.decisions((1 - sweep.discount) * low)
    return np.asarray(low + shifted - low * sweep.final_powers * sweep.plain.weights)


TERMS: Mapping[str, Callable[[Sweep], np.ndarray]] = {
    "is": _is,
    "wis": _wis,
    "pdis": _pdis,
    "wpdis": lambda sweep: sweep.normalised[0],
    "dr": lambda sweep: sweep.plain.modelled,
    "wdr": lambda sweep: sweep.normalised[1],
}
"""Each episode's part in each estimator [E, K]."""
LIMITED: Mapping[str, Callable[[Sweep, float], np.ndarray]] = {"is": _is, "pdis": _pdis}
"""Estimators whose contributions can have a lower limit, so that exact bounds apply."""


def limit_of(name: str, lowest_return: float) -> float:
    """What no contribution of is or pdis can be below."""
    return pdis_limit(lowest_return) if name == "pdis" else lowest_return
