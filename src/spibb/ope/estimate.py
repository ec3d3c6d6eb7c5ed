"""One estimate of a policy's value, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
    def out_of_reach(self) -> bool:
        """Whether it is beyond its reach by more than rounded probabilities explain."""
        return is_beyond(self.value, self.reach, LEAST_FAR * max(map(abs, self.reach)))

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


def no_evidence(n: int) -> str:
    """What is said where none of n episodes has a weight."""
    none = "the only episode is not" if n == 1 else f"none of the {n:,} episodes is"
    return f"{none} possible under the policy: no evidence from the log"


def warning_of(weights: np.ndarray, size: float) -> str | None:
    """Say when an estimate rests on a handful of episodes, or on wrong probabilities."""
    n = len(weights)
    if not np.isfinite(weights).all():
        return "the importance weights overflow: the episodes are too long for these ratios"
    if size == 0:
        return no_evidence(n)
    share = weights.max() / weights.sum()
    if share > LARGE_SHARE and n > 1:
        return f"one of the {n:,} episodes carries {share:.0%} of the weight: do not rely on this"
    if size < FEW_EPISODES:
        of = counted(n, "episode")
        return f"the estimate rests on about {size:,.1f} of {of}: do not rely on it"
    off = abs(float(weights.mean()) - 1)
    if off > max(LEAST_FAR, FAR * float(weights.std()) / math.sqrt(n)):
        return (
            f"the mean importance weight is {weights.mean():.3g}, and should be 1: the behaviour's "
            "probabilities are wrong, or the log lacks what the policy does"
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


def is_beyond(value: float, reach: tuple[float, float], slack: float) -> bool:
    """Whether a number is outside two ends by more than the slack; what is not known is not."""
    low, high = reach
    return value < low - slack or value > high + slack


def beyond(reach: tuple[float, float]) -> str:
    """What is said of a return that no episode can have."""
    low, high = reach
    return (
        "beyond what the log's rewards can add up to in an episode, "
        f"{low:.4g} to {high:.4g}".replace("-", "−")
    )
