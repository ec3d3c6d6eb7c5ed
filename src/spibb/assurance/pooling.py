"""How far the actions of a state differ, and how noisily the log shows it: the pooling weights.

A random-effects model of the targets z = r + γ V̄(x') that the log holds for each pair (x, a), V̄
being the baseline's values: z = Q(x, a) + noise of variance σ², and within a state

    Q(x, a) = mean of the state + slope · ℓ(x, a) + effect of variance τ²,

ℓ = log π_b(a|x) less its mean under π_b. The slope says what the baseline's preferences are worth:
positive where actions that it seldom plays do worse. All of it is estimated from the log; α = σ²/τ²
is the number of visits at which a pair's own evidence weighs as much as that of its state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.assurance.rows import PooledRows
from spibb.assurance.values import Evaluator
from spibb.frozen import Frozen
from spibb.policy import Policy

PRIOR_PAIRS = 4.0
"""How many pairs the prior on τ² counts for."""
PRIOR_VISITS = 8.0
"""α of that prior."""
NOISE_VISITS = 2.0
"""Visits for which the pooled variance counts beside a pair's own."""
RAREST = 1e-3
"""Probabilities of the baseline below this are read as this when preferences are compared."""


@dataclass(frozen=True, eq=False)
class Pooling(Frozen):
    """σ² `noise`, τ² `spread`, the `slope` with its standard error, and what follows for pairs [P].

    `weight` is w = n/(n + α), the share of a pair's own evidence. `preference` is (1 − w)·ℓ: the
    slope times this shifts a pair's value. `error` is the standard deviation of what remains
    unknown of it beside the slope and the pair's own outcomes.
    """

    noise: float
    spread: float
    slope: float
    slope_error: float
    weight: np.ndarray
    preference: np.ndarray
    error: np.ndarray

    @property
    def visits(self) -> float:
        """α = σ²/τ²."""
        return self.noise / self.spread if self.spread > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Pairs(Frozen):
    """The targets of each pair [P]: how many, their mean, squares about it, and ℓ."""

    n: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    log_preference: np.ndarray
    n_actions: int

    def within_state(self, values: np.ndarray) -> np.ndarray:
        """Values [P] less their mean in the state, weighted by visits."""
        n, table = (a.reshape(-1, self.n_actions) for a in (self.n, values))
        total = np.maximum(n.sum(axis=1, keepdims=True), 1)
        return (table - (n * table).sum(axis=1, keepdims=True) / total).reshape(-1)


def pool(rows: PooledRows, baseline: Policy, discount: float) -> Pooling:
    """Estimate the random-effects model from the outcomes of a log."""
    first = rows.weighted(_share(rows.visits, PRIOR_VISITS))
    v = Evaluator(first, baseline.probs[None], discount).mean_values()[:, 0]
    pairs = _pairs(rows, baseline.probs, discount, v)
    noise = _noise(pairs) + rows.unseen_variance
    slope, slope_error, spread = _effects(pairs, noise)
    alpha = noise / spread if spread > 0 else 0.0
    weight = _share(pairs.n, alpha)
    error = np.sqrt((1 - weight) ** 2 * spread + weight**2 * _thin(pairs, noise))
    return Pooling(
        noise, spread, slope, slope_error, weight, (1 - weight) * pairs.log_preference, error
    )


def _share(visits: np.ndarray, alpha: float) -> np.ndarray:
    """n/(n + α), 0 where there are no visits."""
    return np.where(visits > 0, visits / np.maximum(visits + alpha, 1e-300), 0.0)


def _pairs(rows: PooledRows, probs: np.ndarray, discount: float, v: np.ndarray) -> _Pairs:
    target = rows.mean_reward + discount * np.append(v, 0.0)[rows.successors]
    n, size = rows.n, len(rows.visits)
    mean = np.bincount(rows.pair, n * target, size) / np.maximum(rows.visits, 1)
    apart = n * (target - mean[rows.pair]) ** 2 + rows.reward_squares
    preference = np.log(np.maximum(probs, RAREST))
    preference -= (probs * preference).sum(axis=1, keepdims=True)
    return _Pairs(
        rows.visits, mean, np.bincount(rows.pair, apart, size), preference.reshape(-1),
        probs.shape[1],
    )  # fmt: skip


def _noise(pairs: _Pairs) -> float:
    """σ²: the variance within pairs; that of all targets where no pair was seen twice."""
    n = pairs.n
    freedom = n.sum() - (n > 0).sum()
    if freedom > 0:
        return float(pairs.squares.sum() / freedom)
    centre = (n * pairs.mean).sum() / max(n.sum(), 1)
    return float((n * (pairs.mean - centre) ** 2).sum() / max(n.sum() - 1, 1))


def _effects(pairs: _Pairs, noise: float) -> tuple[float, float, float]:
    """Slope, its standard error, and τ² by moments, with a prior of a few pairs at σ²/α₀."""
    n = pairs.n
    effect, ell = pairs.within_state(pairs.mean), pairs.within_state(pairs.log_preference)
    power = float((n * ell**2).sum())
    informed = power > 1e-9 * float(n.sum())
    slope = float((n * ell * effect).sum()) / power if informed else 0.0
    table = n.reshape(-1, pairs.n_actions)
    freedom = int(np.maximum((table > 0).sum(axis=1) - 1, 0).sum()) - informed
    squares = float((n * (effect - slope * ell) ** 2).sum())
    per_state = table.sum(axis=1)
    doubled = (per_state - (table**2).sum(axis=1) / np.maximum(per_state, 1)).sum()
    excess = max(squares - max(freedom, 0) * noise, 0.0) * max(freedom, 1) / max(doubled, 1.0)
    spread = (PRIOR_PAIRS * noise / PRIOR_VISITS + excess) / (PRIOR_PAIRS + max(freedom, 0))
    variance = (n * ell) ** 2 @ np.where(n > 0, noise / np.maximum(n, 1) + spread, 0.0)
    return slope, float(np.sqrt(variance)) / power if informed else 0.0, spread


def _thin(pairs: _Pairs, noise: float) -> np.ndarray:
    """What resampling a pair's few outcomes misses of the variance of its mean [P].

    Dirichlet weights give squares/(n (n + 1)); with the variance shrunk towards the pooled one it
    should be v/n. A pair seen once has no variance of its own at all.
    """
    n = np.maximum(pairs.n, 1)
    variance = (NOISE_VISITS * noise + pairs.squares) / (NOISE_VISITS + n - 1)
    missing = np.maximum(variance / n - pairs.squares / (n * (n + 1)), 0.0)
    return np.where(pairs.n > 0, missing, 0.0)
