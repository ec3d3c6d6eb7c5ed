"""How good is a policy: exactly, or by simulation."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from spibb import checks, solve
from spibb.errors import InputError
from spibb.log import Log, Transitions, returns_to_go
from spibb.mdp import MDP
from spibb.policy import HasPolicy, Policy, inner_policy

WORTH_A_WARNING = 1e-6
"""The relative error of a value from which on it is no longer called exact without a word."""


@checks.takes(mdp=MDP)
def exact_value(mdp: MDP, policy: Policy | HasPolicy) -> float:
    """The value of a policy in a known MDP, ρ(π, M) = Σ_x p₀(x) V^π(x).

    Equations are solved directly up to `solve.DIRECT_UP_TO` states, and by sweeps beyond. A warning
    says so where the error may exceed 1e-6 of the value.

    Parameters:
        mdp: the world.
        policy: what acts in it, or a loaded policy or an improvement; rows are
            found by label.

    Returns:
        The value of the policy from the MDP's initial distribution.

    >>> spibb.exact_value(spibb.estimate_mdp(spibb.Counts.from_log(log), 0.9), baseline)
    0.54
    """
    acting = inner_policy(policy)
    if acting is None:
        raise checks.wrong_type("policy", policy, Policy)
    rows = acting.aligned(mdp.states, mdp.actions).probs
    found = solve.evaluate_exactly(mdp, rows)
    value = float(mdp.initial @ found.v)
    close = mdp.shape[0] <= solve.DENSE_UP_TO  # each value to its own last digits
    if not close and found.error > WORTH_A_WARNING * float(mdp.initial @ np.abs(found.v)):
        warnings.warn(
            f"exact_value is {value:g} with an error of up to {found.error:.2g}: the MDP has "
            f"{mdp.shape[0]} states and discount {mdp.discount:.12g}",
            stacklevel=3,
        )
    return value


def returns(log: Transitions, discount: float) -> np.ndarray:
    """The discounted return of each episode of a log [E]; a truncated one misses its tail."""
    checks.discount(discount)
    with np.errstate(over="ignore"):
        found = np.add.reduceat(discount**log.step * log.reward, log.episode_starts[:-1])
    if not np.isfinite(found).all():
        raise InputError(
            f"the returns of episodes with rewards from {log.reward.min():g} to "
            f"{log.reward.max():g} exceed the largest number, 1.8e308: divide the rewards by a "
            "constant"
        )
    return found


def shown_v_max(log: Log, discount: float) -> float:
    """The least V_max that the recorded returns allow.

    A return that was recorded to its end is at most V_max; one of k steps that was cut may go on
    with up to V_max more, so that it shows no more than |return| / (1 + γ^k).
    """
    ended = np.repeat(log.terminated[log.last_rows], log.lengths)
    beyond = np.where(ended, 0.0, discount**log.remaining)
    return float((np.abs(returns_to_go(log, discount)) / (1 + beyond)).max())


@dataclass(frozen=True)
class MonteCarlo:
    """A mean over simulated episodes and its standard error."""

    value: float
    standard_error: float
    n_episodes: int


def standard_error(sample: np.ndarray) -> float:
    """The standard error of the mean of independent values [n]; infinite for a single one."""
    if len(sample) < 2:
        return math.inf
    unit = solve.unit_of(sample[None])
    return unit * float((sample / unit).std(ddof=1)) / math.sqrt(len(sample))


@checks.takes(log=Log)
def monte_carlo_value(log: Log, discount: float) -> MonteCarlo:
    """The mean return of a log's own policy."""
    return mean_of(returns(log, discount))


def mean_of(sample: np.ndarray) -> MonteCarlo:
    """The mean of independent returns [E]."""
    return MonteCarlo(float(sample.mean()), standard_error(sample), len(sample))
