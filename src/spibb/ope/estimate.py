"""One estimate of a policy's value, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np

from spibb.episodes.limits import discounted_steps
from spibb.frozen import Frozen
from spibb.words import counted

FEW_EPISODES = 10
"""An effective sample below this is not to be relied on."""
LARGE_SHARE = 0.5
"""Nor is an estimate in which one episode has more of the weight than this."""
FAR = 5.0
"""Standard errors by which a mean weight must miss 1 to be worth a warning, and"""
LEAST_FAR = 0.05
"""by how much: probabilities may be rounded."""


@dataclass(frozen=True, eq=False)
class Estimate(Frozen):
    """One estimate of ρ(π): `value` is the mean of the `contributions` [E] of the episodes.

    For a weighted estimator the contributions are its linearisation, θ + E·ω_i·(G_i − θ) for wis
    and the same at every step for the others: their mean is the estimate, and their spread its
    standard error (delta method), which that of E·ω_i·G_i is not. `weights` [E] are the importance
    weights of whole episodes, and `effective_sample_size` is Kish's (Σw)²/Σw². `warning` says when
    the estimate rests on a handful of episodes. `limited` [E] are contributions of the same mean in
    truth, of which none of any episode, seen or not, can be below `limit`: see the module. Where
    nothing is known it is −∞, `no_limit` says why, and `remedy` what helps. `reach` is the least
    and the most that the log's rewards can add up to.

    >>> report = spibb.off_policy_estimates(log, baseline, baseline, rng=np.random.default_rng(0))
    >>> len(report.rows[0].estimate.contributions)
    3
    """

    name: str
    value: float
    contributions: np.ndarray
    limited: np.ndarray
    weights: np.ndarray
    effective_sample_size: float
    warning: str | None = None
    limit: float = -math.inf
    no_limit: str = "no limit was declared"
    remedy: str = "declare a lower one"
    reach: tuple[float, float] = (-math.inf, math.inf)

    @property
    def weakness(self) -> Weakness | None:
        """What the weights suffer from, as `warning` says in words."""
        return weakness_of(self.weights, self.effective_sample_size)

    @property
    def out_of_reach(self) -> bool:
        """Whether it is beyond its reach by more than rounded probabilities explain."""
        return is_beyond_reach(self.value, self.reach, LEAST_FAR * max(map(abs, self.reach)))

    @property
    def pessimistic(self) -> Estimate:
        """The estimate by the limited contributions: what the log lacks counts as the limit."""
        return replace(self, value=float(self.limited.mean()), contributions=self.limited)


def effective_sample_size(weights: np.ndarray) -> float:
    """Kish's (Σw)²/Σw² of weights [E]: 0 where there is no weight at all, or where it overflows."""
    largest = weights.max(initial=0.0)
    if not 0 < largest < math.inf:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / (scaled**2).sum())


class Weakness(Enum):
    """What weights of episodes may suffer from."""

    OVERFLOW = auto()
    NO_EVIDENCE = auto()
    ONE_EPISODE = auto()
    FEW_EPISODES = auto()
    NOT_ONE_ON_AVERAGE = auto()


def weakness_of(weights: np.ndarray, size: float) -> Weakness | None:
    """The first thing that weights [E] of an effective `size` suffer from, if any."""
    if not np.isfinite(weights).all():
        return Weakness.OVERFLOW
    if size == 0:
        return Weakness.NO_EVIDENCE
    if _largest_share(weights) > LARGE_SHARE and len(weights) > 1:
        return Weakness.ONE_EPISODE
    if size < FEW_EPISODES:
        return Weakness.FEW_EPISODES
    off = abs(float(weights.mean()) - 1)
    if off > max(LEAST_FAR, FAR * float(weights.std()) / math.sqrt(len(weights))):
        return Weakness.NOT_ONE_ON_AVERAGE
    return None


def _largest_share(weights: np.ndarray) -> float:
    return float(weights.max() / weights.sum())


def no_evidence(n: int) -> str:
    """What is said where none of n episodes has a weight."""
    none = "the only episode is not" if n == 1 else f"none of the {n:,} episodes is"
    return f"{none} possible under the policy: no evidence from the log"


def warning_of(weights: np.ndarray, size: float) -> str | None:
    """Say when an estimate rests on a handful of episodes, or on wrong probabilities."""
    n = len(weights)
    match weakness_of(weights, size):
        case Weakness.OVERFLOW:
            return "the importance weights overflow: the episodes are too long for these ratios"
        case Weakness.NO_EVIDENCE:
            return no_evidence(n)
        case Weakness.ONE_EPISODE:
            share = f"{_largest_share(weights):.0%}"
            return f"one of the {n:,} episodes carries {share} of the weight: do not rely on this"
        case Weakness.FEW_EPISODES:
            of = counted(n, "episode")
            return f"the estimate rests on about {size:,.1f} of {of}: do not rely on it"
        case Weakness.NOT_ONE_ON_AVERAGE:
            return (
                f"the mean importance weight is {weights.mean():.3g}, and should be 1: the "
                "behaviour's probabilities are wrong, or the log lacks what the policy does"
            )
    return None


def reach_of(
    reward: np.ndarray, longest: float, discount: float, *, completed: bool = False
) -> tuple[float, float]:
    """The least and the most that rewards [N] like these add up to, in `longest` steps at most.

    Episodes that a model completes have no end.
    """
    steps = discounted_steps(discount, math.inf if completed else longest)
    low, high = float(reward.min()), float(reward.max())
    return low * (steps if low < 0 else 1.0), high * (steps if high > 0 else 1.0)


def is_beyond_reach(value: float, reach: tuple[float, float], slack: float) -> bool:
    """Whether a number is outside two ends by more than the slack; what is not known is not."""
    low, high = reach
    return value < low - slack or value > high + slack


def beyond_reach(reach: tuple[float, float]) -> str:
    """What is said of a return that no episode can have."""
    low, high = reach
    return (
        "beyond what the log's rewards can add up to in an episode, "
        f"{low:.4g} to {high:.4g}".replace("-", "−")
    )
