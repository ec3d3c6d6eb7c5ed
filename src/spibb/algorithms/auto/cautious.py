"""The cautious policy: it departs from the baseline where the gain exceeds its uncertainty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spibb.assurance.posterior import Belief
from spibb.assurance.rows import Models
from spibb.assurance.values import Evaluator

CAUTIOUS = "cautious"
"""The name of the candidate."""
CAUTION = 0.5
"""Standard deviations by which a change must gain in its state."""
DRAWS = 500
"""Models drawn to find how sure the advantages are."""
ITERATIONS = 50
TIE = 1e-9
"""Of the spread of values and rewards: advantages below it are none."""


class ActionValues(NamedTuple):
    """Q over models: its mean [S, A], and covariances [S, A, A] of Q(x, a) − Σ_a π_b Q(x, a)."""

    mean: np.ndarray
    covariance: np.ndarray


class RowOptions(NamedTuple):
    """Rows that a state may have [K, S, A], the baseline's first, and what their doubt costs
    [K, S]."""

    rows: np.ndarray
    costs: np.ndarray

    def at(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The policy [S, A] of one option for each state [S], and its costs [S]."""
        states = np.arange(len(chosen))
        return self.rows[chosen, states], self.costs[chosen, states]


def cautious_policy(
    belief: Belief, baseline: np.ndarray, rng: np.random.Generator, *, caution: float = CAUTION
) -> np.ndarray:
    """The policy [S, A] that is best in the mean model if every change costs its doubt.

    In each state the baseline's row may lose its worst actions, as many as pays; the others keep
    their proportions. A row π(·|x) has the advantage Σ_a (π − π_b)(a|x) Q(x, a) over the
    baseline's; `caution` times its standard deviation over the drawn models is what it costs there
    whenever it is used. Policy iteration in the mean model finds the best rows with these costs.

    Q takes the baseline's values in the mean model for what follows: their own doubt is that of
    all actions alike.
    """
    weight = sum(pooling.probability * pooling.weight for pooling in belief.poolings)
    mean = belief.rows.mean(np.asarray(weight))
    v = _value(belief, mean, baseline)
    q = _values(belief, baseline, v, rng)
    ahead = belief.discount * belief.rows.expected(mean, v).reshape(baseline.shape)
    return _best(belief, mean, q.mean - ahead, _options(belief, baseline, q, caution))


def _value(belief: Belief, model: Models, policy: np.ndarray) -> np.ndarray:
    return Evaluator(belief.rows, policy[None], belief.discount, model).mean_values()[0]


def _values(
    belief: Belief, baseline: np.ndarray, v: np.ndarray, rng: np.random.Generator
) -> ActionValues:
    """R + γ P v in drawn models."""
    total, squares = np.zeros(baseline.shape), np.zeros((*baseline.shape, baseline.shape[1]))
    for models in belief.models(DRAWS, rng):
        q = models.rewards + belief.discount * belief.rows.expected(models, v)
        q = q.reshape(-1, *baseline.shape)
        total += q.sum(axis=0)
        q -= (baseline * q).sum(axis=2, keepdims=True)
        squares += np.matmul(q.transpose(1, 2, 0), q.transpose(1, 0, 2))
    mean = total / DRAWS
    apart = mean - (baseline * mean).sum(axis=1, keepdims=True)
    return ActionValues(mean, squares / DRAWS - apart[:, :, None] * apart[:, None, :])


def _options(belief: Belief, baseline: np.ndarray, q: ActionValues, caution: float) -> RowOptions:
    """The baseline's rows, and without all but the best 1, …, A − 1 of their actions.

    Actions that were never tried keep the baseline's probability.
    """
    tried = (belief.rows.visits.reshape(baseline.shape) > 0) & (baseline > 0)
    free = np.where(tried, baseline, 0.0)
    order = np.argsort(np.where(tried, -q.mean, np.inf), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    kept = free * (rank < np.arange(1, baseline.shape[1])[:, None, None])
    total = np.maximum(kept.sum(axis=2, keepdims=True), 1e-300)
    best = np.where(tried, kept * (free.sum(axis=1, keepdims=True) / total), baseline)
    rows = np.concatenate([baseline[None], best])
    moved = rows - baseline
    variance = np.einsum("ksa,sab,ksb->ks", moved, q.covariance, moved)
    costs = caution * np.sqrt(np.maximum(variance, 0.0))
    costs[1:, belief.rows.idle] = np.inf
    return RowOptions(rows, costs)


def _best(belief: Belief, mean: Models, rewards: np.ndarray, options: RowOptions) -> np.ndarray:
    """Policy iteration from the baseline; an option must be better to replace another."""
    chosen, states = np.zeros(len(rewards), dtype=np.intp), np.arange(len(rewards))
    for _ in range(ITERATIONS):
        policy, costs = options.at(chosen)
        paid = (rewards - costs[:, None]).reshape(1, -1)
        v = _value(belief, mean._replace(rewards=paid), policy)
        ahead = belief.rows.expected(mean, v).reshape(rewards.shape)
        values = (options.rows * (rewards + belief.discount * ahead)).sum(axis=2) - options.costs
        best = values.argmax(axis=0)
        better = values[best, states] > values[chosen, states] + TIE * (np.ptp(v) + np.ptp(rewards))
        if not better.any():
            break
        chosen = np.where(better, best, chosen)
    return options.at(chosen)[0]
