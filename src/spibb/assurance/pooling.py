"""How far the actions of a state differ, and how noisily the log shows it: the pooling weights.

A random-effects model of the targets z = r + γ V̄(x') that the log holds for each pair (x, a), V̄
being the baseline's values: z = Q(x, a) + noise of variance σ², and within a state

    Q(x, a) = mean of the state + slope · ℓ(x, a) + effect of variance τ² = σ²/α,

ℓ = log π_b(a|x) less its mean under π_b. The slope says what the baseline's preferences are worth:
positive where actions that it seldom plays do worse. α is the number of visits at which a pair's
own evidence weighs as much as that of its state; where actions hardly differ it is large.

α is not estimated but uncertain: each value of a grid has the probability that the log gives it,
with state means, slope and σ² integrated out (flat priors, 1/σ²) and all powers of two as likely
beforehand, and as likely as no difference at all. A log that cannot tell whether actions differ
then says so, and what looks best in it is trusted no more than the best of as many equal actions
would be: however many states there are, small differences of all of them do not add up to a gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spibb.assurance.rows import PooledRows
from spibb.assurance.values import Evaluator
from spibb.frozen import Frozen
from spibb.policy import Policy

FIRST_VISITS = 8.0
"""α with which V̄ is found."""
LEAST_VISITS = 1.0
"""The smallest α of the grid: one visit says as much about a pair as its state does."""
MOST_VISITS = 16.0
"""The largest α of the grid, in visits of the pair that was seen most."""
ALIKE = 2.0**40
"""The α, in the same unit, that stands for actions that do not differ at all."""
EXTREME = 6.0
"""Standard errors by which rewards of a pair are far from the others of its state."""
EXACT = 1e-20
"""Squares within pairs that are rounding, relative to those of all targets."""
NOISE_VISITS = 2.0
"""Visits for which the pooled variance counts beside that of a pair, or of an action."""
RAREST = 1e-3
"""Probabilities of the baseline below this are read as this when preferences are compared."""


@dataclass(frozen=True, eq=False)
class Pooling(Frozen):
    """One value of α with its `probability`, and what follows from it for pairs [P].

    `noise` is σ² with its degrees of `freedom`, `spread` τ², `slope` comes with its standard error.
    `weight` is w = n/(n + α), the share of a pair's own evidence. `preference` is (1 − w)·ℓ: the
    slope times this shifts a pair's value. `error` is the standard deviation of what remains
    unknown of it beside the slope and the pair's own outcomes, `state_error` [S] the same for m_x.
    """

    probability: float
    noise: float
    freedom: float
    spread: float
    slope: float
    slope_error: float
    weight: np.ndarray
    preference: np.ndarray
    error: np.ndarray
    state_error: np.ndarray

    @property
    def visits(self) -> float:
        """α = σ²/τ²."""
        return self.noise / self.spread if self.spread > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Pairs(Frozen):
    """The targets of each pair [P]: how many, their mean, squares about it, the `lead` of
    its rewards over those of the state's other pairs where rewards vary, and ℓ; and in how many
    degrees of freedom `telling` any of their variances is known at most."""

    n: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    lead: np.ndarray
    log_preference: np.ndarray
    n_actions: int
    telling: float

    @property
    def seen(self) -> np.ndarray:
        return self.n > 0

    @cached_property
    def by_state(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of targets of each state, and their squares about its mean, [S] each."""
        squares = self.n * self.centred(self.mean, self.n) ** 2 + self.squares
        n, squares = (a.reshape(-1, self.n_actions).sum(axis=1) for a in (self.n, squares))
        return n, squares

    def centred(self, values: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Values [P] less their mean in the state, weighted by `share` [..., P]."""
        weights = share.reshape(*share.shape[:-1], -1, self.n_actions)
        table = values.reshape(-1, self.n_actions)
        total = np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
        found = table - (weights * table).sum(axis=-1, keepdims=True) / total
        return np.asarray(found.reshape(share.shape))


class _Within(NamedTuple):
    """Squares of the targets about the means of their pairs, and their degrees of freedom."""

    squares: float
    freedom: float


class _Fits(NamedTuple):
    """What the log says if α is given, for each of several: log-evidence up to a constant, σ² with
    its degrees of freedom, and the slope, [L] each."""

    evidence: np.ndarray
    noise: np.ndarray
    freedom: np.ndarray
    slope: np.ndarray
    slope_error: np.ndarray


def pool(rows: PooledRows, baseline: Policy, discount: float) -> tuple[Pooling, ...]:
    """Every α that the log allows, most visits last, with its probability."""
    first = rows.mean(_share(rows.visits, FIRST_VISITS))
    v = Evaluator(rows, baseline.probs[None], discount, first).mean_values()[0]
    pairs = _pairs(rows, baseline.probs, discount, v)
    within = _within(pairs, rows.unseen_variance)
    if within is None:
        sure = _Fits(*(np.full(1, value) for value in (0.0, 0.0, 1.0, 0.0, 0.0)))
        return _poolings(pairs, np.zeros(1), sure)
    alphas = np.array(_grid(pairs))
    return _poolings(pairs, alphas, _fits(pairs, alphas, within))


def _share(visits: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """n/(n + α), 0 where there are no visits."""
    return np.where(visits > 0, visits / np.maximum(visits + alpha, 1e-300), 0.0)


def _pairs(rows: PooledRows, probs: np.ndarray, discount: float, v: np.ndarray) -> _Pairs:
    target = rows.mean_reward + discount * np.append(v, 0.0)[rows.successors]
    n, size = rows.n, len(rows.visits)
    mean = np.bincount(rows.pair, n * target, size) / np.maximum(rows.visits, 1)
    apart = n * (target - mean[rows.pair]) ** 2 + rows.reward_squares
    squares = np.bincount(rows.pair, apart, size)
    preference = np.log(np.maximum(probs, RAREST))
    preference -= (probs * preference).sum(axis=1, keepdims=True)
    return _Pairs(
        rows.visits, mean, squares, _lead(rows), preference.reshape(-1), probs.shape[1],
        _telling(rows, target, probs.shape),
    )  # fmt: skip


def _lead(rows: PooledRows) -> np.ndarray:
    """A pair's mean reward less that of the state's other pairs [P]; 0 where rewards never vary."""
    n, n_actions = rows.visits, rows.shape[1]
    if not rows.reward_squares.any():
        return np.zeros(len(n))
    paid = np.bincount(rows.pair, rows.n * rows.mean_reward, len(n))
    visits, total = (a.reshape(rows.shape).sum(axis=1).repeat(n_actions) for a in (n, paid))
    others = (total - paid) / np.maximum(visits - n, 1)
    return np.where((n > 0) & (visits > n), paid / np.maximum(n, 1) - others, 0.0)


def _telling(rows: PooledRows, target: np.ndarray, shape: tuple[int, int]) -> float:
    """Degrees of freedom of a variance of targets about the means of their states.

    2 n/(κ − 1), κ being their kurtosis: n for normal noise, twice the number of events where rare
    events make all of the variance.
    """
    state, n = rows.pair // shape[1], rows.n
    visits = np.maximum(np.bincount(state, n, shape[0]), 1)
    apart = target - (np.bincount(state, n * target, shape[0]) / visits)[state]
    inside = rows.reward_squares / n
    squares = float(n @ (apart**2 + inside))
    fourth = float(n @ (apart**4 + 6 * apart**2 * inside + 3 * inside**2))
    excess = float(n.sum()) * fourth - squares**2
    return 2 * float(n.sum()) * squares**2 / excess if excess > 0 else math.inf


def _grid(pairs: _Pairs) -> list[float]:
    """Powers of two, and that actions are alike; where all that the log compares is two actions in
    one state, the least, and the same where there is only one action.

    A single difference tells neither α nor the slope, so that hardly anything is pooled.
    """
    if pairs.n_actions == 1 or _between(pairs) == 1:
        return [LEAST_VISITS]
    most = max(float(pairs.n.max()), 1.0)
    last = math.ceil(math.log2(MOST_VISITS * most))
    return [*(2.0**k for k in range(round(math.log2(LEAST_VISITS)), last + 1)), ALIKE * most]


def _within(pairs: _Pairs, unseen_variance: float) -> _Within | None:
    """The noise that repeated pairs show, or all targets where no pair of a state has another.

    None if there is none: repeats never differ, or nothing does.
    """
    scatter = _scatter(pairs)
    repeats = float(pairs.n.sum() - pairs.seen.sum())
    if repeats == 0 and _between(pairs) == 0:
        return _Within(scatter, max(float(pairs.n.sum()) - 1, 1.0)) if scatter > 0 else None
    squares = float(pairs.squares.sum()) + unseen_variance * max(repeats, 1.0)
    if squares <= EXACT * scatter and (repeats > 0 or scatter == 0):
        return None
    return _Within(squares, max(repeats, float(unseen_variance > 0)))


def _scatter(pairs: _Pairs) -> float:
    """Squares of all targets about their mean."""
    centre = float(pairs.n @ pairs.mean) / max(float(pairs.n.sum()), 1.0)
    return float(pairs.squares.sum() + pairs.n @ (pairs.mean - centre) ** 2)


def _between(pairs: _Pairs) -> int:
    """Degrees of freedom between the pairs of a state."""
    seen = pairs.seen.reshape(-1, pairs.n_actions)
    return int(np.maximum(seen.sum(axis=1) - 1, 0).sum())


def _fits(pairs: _Pairs, alphas: np.ndarray, within: _Within) -> _Fits:
    """The means of pairs have variance σ²(1/n + 1/α) about their state's line in ℓ."""
    seen, between = pairs.seen, _between(pairs)
    share = np.where(seen, _share(pairs.n, alphas[:, None]) * alphas[:, None], 0.0)
    effect, ell = (pairs.centred(values, share) for values in (pairs.mean, pairs.log_preference))
    power = (share * ell**2).sum(axis=1)
    informed = (power > 1e-9 * share.sum(axis=1)) & (between > 1)
    known = np.where(informed, power, 1.0)
    slope = np.where(informed, (share * (ell * effect)).sum(axis=1) / known, 0.0)
    squares = within.squares + (share * (effect - slope[:, None] * ell) ** 2).sum(axis=1)
    freedom = within.freedom + between - informed
    per_state = share.reshape(len(alphas), -1, pairs.n_actions).sum(axis=2)
    evidence = np.log(share[:, seen]).sum(axis=1)
    evidence -= np.log(per_state, out=np.zeros(per_state.shape), where=per_state > 0).sum(axis=1)
    evidence -= np.log(known) + freedom * np.log(np.maximum(squares, 1e-300))
    noise = squares / np.maximum(freedom, 1.0)
    error = np.where(informed, np.sqrt(noise / known), 0.0)
    telling = np.maximum(np.minimum(freedom, pairs.telling), 1.0)
    return _Fits(evidence / 2, noise, telling, slope, error)


def _poolings(pairs: _Pairs, alphas: np.ndarray, fits: _Fits) -> tuple[Pooling, ...]:
    """What follows from each α, with the probability that its evidence gives it."""
    probability = np.exp(fits.evidence - fits.evidence.max())
    probability /= probability.sum()
    alpha, noise = alphas[:, None], fits.noise[:, None]
    weight = _share(pairs.n, alpha)
    spread = np.where(alpha > 0, noise / np.where(alpha > 0, alpha, 1.0), 0.0)
    own = _thin(pairs.n, pairs.squares, noise * _loudness(pairs))
    error = np.sqrt((1 - weight) ** 2 * spread + weight**2 * own + _odd(pairs, noise, spread))
    fields: list[Any] = [
        probability.tolist(), fits.noise.tolist(), fits.freedom.tolist(), spread[:, 0].tolist(),
        fits.slope.tolist(), fits.slope_error.tolist(), weight,
        (1 - weight) * pairs.log_preference, error, np.sqrt(_thin(*pairs.by_state, noise)),
    ]  # fmt: skip
    return tuple(Pooling(*row) for row in zip(*fields))


def _loudness(pairs: _Pairs) -> np.ndarray:
    """The noise of each pair's action, in all states, over that of all actions, at least 1 [P].

    A gamble is noisier than a sure thing: what few outcomes of it miss is more. Its weight stays:
    unequal ones would move the value of the baseline, as noisy actions are often the bad ones.
    """
    free = np.maximum(pairs.n - 1, 0.0)
    squares, freedom = (a.reshape(-1, pairs.n_actions).sum(axis=0) for a in (pairs.squares, free))
    noise = squares.sum() / max(freedom.sum(), 1.0)
    if noise == 0:
        return np.ones(len(pairs.n))
    by_action = (NOISE_VISITS * noise + squares) / (NOISE_VISITS + freedom)
    return np.tile(np.maximum(by_action / noise, 1.0), len(pairs.n) // pairs.n_actions)


def _odd(pairs: _Pairs, noise: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The variance that extreme rewards of a pair add [L, P]: their squared distance over n³.

    Seen once they differ from the others by no more than their error, and not read with the noise
    of ordinary rewards; seen often they are trusted.
    """
    n = np.maximum(pairs.n, 1)
    extreme = pairs.lead**2 > EXTREME**2 * (noise / n + spread)
    return np.where(extreme, pairs.lead**2 / n**3, 0.0)


def _thin(visits: np.ndarray, squares: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """What resampling a few outcomes misses of the variance of their mean, by pair or state
    [L, P or S].

    Dirichlet weights give squares/(n (n + 1)); with the variance shrunk towards the pooled one it
    should be v/n. What was seen once has no variance of its own at all.
    """
    n = np.maximum(visits, 1)
    variance = (NOISE_VISITS * noise + squares) / (NOISE_VISITS + n - 1)
    missing = np.maximum(variance / n - squares / (n * (n + 1)), 0.0)
    return np.where(visits > 0, missing, 0.0)
