"""HCPI on episodes that are still outcome codes: the same choice as `HCPI`, many times as fast.

A study fits HCPI a million times. Its log never becomes columns here; configurations that differ in
δ share their training and their one pass over the test episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from spibb.algorithms.base import Problem
from spibb.algorithms.hcpi import ALPHAS, HCPI, greedy, replay_uniforms
from spibb.kernels import hcpi as kernels
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
    baseline = drawn.problem.baseline.probs
    found = np.empty((len(algorithms), *baseline.shape))
    shared: dict[tuple[object, ...], Tested] = {}
    for m, algorithm in enumerate(algorithms):
        alike = (algorithm.estimator, algorithm.train_share, algorithm.updates,
                 algorithm.step_size, algorithm.seed)  # fmt: skip
        if alike not in shared:
            shared[alike] = train_and_test(algorithm, drawn)
        alpha = choose(algorithm, shared[alike])
        found[m] = (1 - alpha) * shared[alike].trained + alpha * baseline
    return found


class Tested(NamedTuple):
    """π_t [S, A], and the moments [3, 11] of the mixtures on the test episodes."""

    trained: np.ndarray
    sums: np.ndarray
    n_test: int


def train_and_test(algorithm: HCPI, drawn: Drawn) -> Tested:
    """Train on the first episodes, and sum up what the others say about each mixture."""
    n_train = max(1, int(algorithm.train_share * len(drawn.lengths)))
    split = int(drawn.lengths[:n_train].sum())
    sampler, codes, problem = drawn.sampler, drawn.codes, drawn.problem
    training = Problem.from_counts(
        sampler.to_counts(codes[:split], drawn.lengths[:n_train]), problem.baseline,
        discount=problem.discount, v_max=problem.v_max,
    )  # fmt: skip
    trained = greedy(_q_learning(algorithm, training, sampler, codes[:split]), training)
    q, v = _values(algorithm, training, trained)
    steps = kernels.step_tables(
        (sampler.state, sampler.action, sampler.successor, sampler.reward),
        (trained, problem.baseline.probs, sampler.policy.probs), problem.discount, q, v, ALPHAS,
    )  # fmt: skip
    sums = kernels.moments(
        (codes[split:], drawn.lengths[n_train:]), steps, (sampler.state, sampler.successor, v),
        problem.discount, algorithm.estimator == "is",
    )  # fmt: skip
    return Tested(trained, sums, len(drawn.lengths) - n_train)


def _q_learning(
    algorithm: HCPI, training: Problem, sampler: Sampler, codes: np.ndarray
) -> np.ndarray:
    """Offline Q-learning on transitions drawn as `HCPI` draws them.

    The tables of the outcome codes serve as the transitions, and codes as their row numbers.
    """
    rows = kernels.replayed(codes, replay_uniforms(algorithm.seed, algorithm.updates))
    transitions = sampler.state, sampler.action, sampler.reward, sampler.successor
    q = np.zeros(training.baseline.probs.shape)
    kernels.q_learning(
        transitions, rows, training.available, training.discount, algorithm.step_size, q
    )
    return q


def _values(
    algorithm: HCPI, training: Problem, trained: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Q [S, A, 11] and V [S + 1, 11] of the mixtures in the model of the training episodes.

    Only dr uses them; elsewhere they are 0.
    """
    model = training.model
    if algorithm.estimator == "dr":
        return kernels.mixture_values(
            model.rows, model.rewards, model.discount, trained, training.baseline.probs, ALPHAS
        )
    n_states, n_actions = model.shape
    return np.zeros((n_states, n_actions, len(ALPHAS))), np.zeros((n_states + 1, len(ALPHAS)))


@lru_cache(maxsize=1024)
def _quantile(freedom: int, probability: float) -> float:
    return float(stdtrit(freedom, probability))


def choose(algorithm: HCPI, tested: Tested) -> float:
    """α of the mixture with the highest Student's t bound, if it beats the baseline; else 1."""
    n, sums = tested.n_test, tested.sums
    if n < 2:
        return 1.0
    if algorithm.delta == 1:
        return float(ALPHAS[0 if sums[2, 0] > 0 else 1])
    quantile, rival = _quantile(n - 1, 1 - algorithm.delta), float(algorithm.baseline_value or 0)
    return float(ALPHAS[kernels.choose(sums, n, quantile, rival)])
