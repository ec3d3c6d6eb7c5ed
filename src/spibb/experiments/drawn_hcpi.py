"""HCPI on episodes that are still outcome codes: the same choice as `HCPI`, many times as fast.

A study fits HCPI a million times. Its log never becomes columns here; configurations that differ in
δ share their training and their one pass over the test episodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from spibb.algorithms.base import Problem
from spibb.algorithms.hcpi import ALPHAS, HCPI, greedy, replayed_rows
from spibb.kernels import hcpi as kernel
from spibb.kernels import ope as kernels
from spibb.simulate import Sampler


@dataclass(frozen=True, eq=False)
class Drawn:
    """Episodes drawn from a sampler, the problem they pose, and the policy that drew them."""

    sampler: Sampler
    codes: np.ndarray
    lengths: np.ndarray
    problem: Problem


def supports(algorithm: HCPI) -> bool:
    """Whether a configuration is one that this fast version knows."""
    return (
        algorithm.estimator in ("is", "pdis", "dr")
        and algorithm.bound == "student-t"
        and algorithm.trainer is None
        and algorithm.truncated == "recorded"
        and algorithm.baseline_value is not None
        and algorithm.lowest_return in (None, 0.0)
    )


def policies(algorithms: Sequence[HCPI], drawn: Drawn) -> np.ndarray:
    """The policies of several configurations [M, S, A]."""
    found = np.empty((len(algorithms), *drawn.problem.baseline.probs.shape))
    shared: dict[HCPI, tuple[np.ndarray, np.ndarray, int]] = {}
    for m, algorithm in enumerate(algorithms):
        alike = replace(algorithm, delta=0.5, baseline_value=0.0)
        if alike not in shared:
            shared[alike] = _train_and_test(alike, drawn)
        trained, sums, n_test = shared[alike]
        alpha = ALPHAS[_choose(algorithm, sums, n_test)] if n_test >= 2 else 1.0
        found[m] = (1 - alpha) * trained + alpha * drawn.problem.baseline.probs
    return found


def _train_and_test(algorithm: HCPI, drawn: Drawn) -> tuple[np.ndarray, np.ndarray, int]:
    """π_t [S, A], the moments [3, 11] of the test episodes, and their number."""
    n_train = max(1, int(algorithm.train_share * len(drawn.lengths)))
    split = int(drawn.lengths[:n_train].sum())
    sampler, codes = drawn.sampler, drawn.codes
    counts = sampler.to_counts(codes[:split], drawn.lengths[:n_train])
    problem = drawn.problem
    training = Problem.from_counts(
        counts, problem.baseline, discount=problem.discount, v_max=problem.v_max
    )
    trained = greedy(_q_learning(algorithm, training, drawn, split), training)
    tables = _tables(algorithm, training, trained, sampler)
    sums = kernel.moments(
        codes[split:], drawn.lengths[n_train:], tables, problem.discount,
        algorithm.estimator == "is",
    )  # fmt: skip
    return trained, sums, len(drawn.lengths) - n_train


def _q_learning(algorithm: HCPI, training: Problem, drawn: Drawn, split: int) -> np.ndarray:
    """Offline Q-learning on transitions drawn as `HCPI` draws them.

    The tables of the outcome codes serve as the transitions, and codes as their row numbers.
    """
    rows = replayed_rows(algorithm.seed, algorithm.updates, split)
    sampler = drawn.sampler
    transitions = sampler.state, sampler.action, sampler.reward, sampler.successor
    q = np.zeros(training.baseline.probs.shape)
    kernels.q_learning(
        transitions, drawn.codes[rows], training.available, training.discount,
        algorithm.step_size, q,
    )  # fmt: skip
    return q


def _tables(
    algorithm: HCPI, training: Problem, trained: np.ndarray, sampler: Sampler
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Per outcome code, what a step contributes to each mixture, each [C, 11]."""
    model, baseline = training.model, training.baseline.probs
    if algorithm.estimator == "dr":
        q, v = kernel.mixture_values(
            model.rows, model.rewards, model.discount, trained, baseline, ALPHAS
        )
    else:
        q, v = np.zeros((*model.shape, len(ALPHAS))), np.zeros((model.shape[0] + 1, len(ALPHAS)))
    outcomes = sampler.state, sampler.action, sampler.successor, sampler.reward
    policies = trained, baseline, sampler.policy.probs
    return kernel.step_tables(outcomes, policies, model.discount, q, v, ALPHAS)


@lru_cache(maxsize=1024)
def _quantile(freedom: int, probability: float) -> float:
    return float(stdtrit(freedom, probability))


def _choose(algorithm: HCPI, sums: np.ndarray, n: int) -> int:
    """The lane of the highest Student's t bound, if it beats the baseline; else the last one."""
    last = len(ALPHAS) - 1
    if algorithm.delta == 1:
        return 0 if sums[2, 0] > 0 else 1
    mean = sums[0] / n
    spread = np.sqrt(np.maximum(sums[1] - n * mean**2, 0) / (n - 1))
    bounds = mean - spread / math.sqrt(n) * _quantile(n - 1, 1 - algorithm.delta)
    bounds[sums[2] <= 0] = -math.inf
    best = last - int(np.argmax(bounds[::-1]))
    return best if bounds[best] > float(algorithm.baseline_value or 0.0) else last
