"""What a log's own recorded probabilities say of a gain, where they vary within a state.

Then whoever decided saw something that the states do not hold. An action that is taken in good
cases looks good in any model of states and actions, however large the log is. What needs no such
model divides by the probability that each row records: single departures from what was done, and
whole episodes, reweighted. Their means are right whatever the decisions looked at.

They are right of a policy that other episodes chose. The best of many looks good in the episodes
that it was chosen from, and where no model is trusted, none draws it back. So the algorithm also
trains on four fifths of the episodes, in five ways, and the last fifth judges each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from scipy.special import stdtrit

from spibb.algorithms.auto.algorithm import ESTIMATOR
from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Problem
from spibb.episodes.departures import Departures
from spibb.evaluate import standard_error
from spibb.ope import FEW_EPISODES, OffPolicyReport
from spibb.verdict.crossing import cross_fitted_departures

"""The off-policy estimator that may contradict the model: it uses none."""
SINGLE = "the changes one at a time"
CROSS_FITTED = "changes chosen and judged by different episodes"
FOLDS = 5
WHOLE = "whole episodes, reweighted"


@dataclass(frozen=True)
class ModelFreeGain:
    """The gain by an estimate that needs no model, and its limit at level 1 − δ (Student's t)."""

    what: str
    gain: float
    lower: float


def says_nothing(report: OffPolicyReport | None) -> bool:
    """Whether whole episodes, weighted, are inconclusive."""
    if report is None or report.effective_sample_size < FEW_EPISODES:
        return True
    return report.warning_about(ESTIMATOR) is not None


@dataclass(frozen=True)
class CrossFittedGain:
    """A mean gain with its standard error."""

    gain: float
    standard_error: float


def cross_fitted_gain(algorithm: Algorithm, problem: Problem) -> CrossFittedGain | None:
    """What single departures gain if each of `FOLDS` parts judges what the others choose.

    None where a log has fewer episodes than parts need for a standard error.
    """
    if problem.n_episodes < 2 * FOLDS:
        return None
    found = cross_fitted_departures(algorithm, problem, FOLDS)
    gain = sum(one.gain for one in found) / FOLDS
    return CrossFittedGain(gain, math.hypot(*(one.standard_error for one in found)) / FOLDS)


def direct_limits(
    departures: Departures,
    cross_fitted: CrossFittedGain | None,
    estimates: OffPolicyReport | None,
    n_episodes: int,
    delta: float,
) -> Iterator[ModelFreeGain]:
    """Limits of the gain without a model.

    Single departures count the changes to the first order. That is all of the gain where episodes
    have one step, so that `estimates`, of whole episodes, are those of longer ones only.
    """
    yield _limit(SINGLE, departures.gain, departures.standard_error, n_episodes, delta)
    if cross_fitted is not None:
        gain, error = cross_fitted.gain, cross_fitted.standard_error
        yield _limit(CROSS_FITTED, gain, error, n_episodes, delta)
    if estimates is not None and not says_nothing(estimates):
        found = estimates.difference(ESTIMATOR).estimate
        error = standard_error(found.contributions)
        yield _limit(WHOLE, found.value, error, len(found.contributions), delta)


def _limit(what: str, gain: float, error: float, n: int, delta: float) -> ModelFreeGain:
    quantile = float(stdtrit(max(n - 1, 1), delta))  # negative
    return ModelFreeGain(what, gain, gain + quantile * error)
