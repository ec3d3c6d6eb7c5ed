"""What a log says of its world: the estimated MDP M̂, and limits of returns."""

from __future__ import annotations

import math

import numpy as np

from spibb.checks import choice, discount, number, takes
from spibb.counts import END, Counts
from spibb.errors import InputError
from spibb.mdp import MDP

UNSEEN = ("zero", "pessimistic", "optimistic")


@takes(counts=Counts)
def estimate_mdp(
    counts: Counts, discount: float, *, unseen: str = "zero", v_max: float = 0.0
) -> MDP:
    """The maximum-likelihood MDP M̂ = ⟨X, A, R̂, P̂, γ⟩ of the counts.

    P̂ and R̂ are the frequencies and the mean rewards of the log; its episode starts are the
    initial distribution.

    Parameters:
        counts: the counts of the log.
        discount: γ in [0, 1).
        unseen: value of pairs that the log never contains: 0 ("zero"), −v_max ("pessimistic") or
            v_max ("optimistic"). The paper initialises Q with ±V_max for Basic RL and does not say
            what it does for SPIBB; its released code uses zero there.
        v_max: largest absolute return.

    Returns:
        The MDP, with the labels of the counts.

    >>> mdp = spibb.estimate_mdp(spibb.Counts.from_log(log), discount=0.9)
    >>> mdp.rewards.tolist()  # of an unseen pair 0
    [[0.0, 0.0], [1.0, 0.0]]
    """
    indptr, successors, probs = counts.transitions
    return MDP(
        indptr=indptr,
        successors=successors,
        probs=probs,
        rewards=expected_rewards(counts, unseen, v_max),
        initial=counts.starts / counts.starts.sum(),
        discount=discount,
        states=counts.states,
        actions=counts.actions,
    )


def pessimistic_model(counts: Counts, discount: float, lowest_return: float) -> MDP:
    """M̂ with pairs that were never seen worth `lowest_return`."""
    return estimate_mdp(counts, discount, unseen="pessimistic", v_max=-lowest_return)


def expected_rewards(counts: Counts, unseen: str, v_max: float) -> np.ndarray:
    """R̂ [S, A], with the value of `unseen` where the log has nothing."""
    return np.where(counts.pairs > 0, counts.mean_reward, unseen_value(unseen, v_max))


def unseen_value(unseen: str, v_max: float) -> float:
    """The number behind the name of a treatment of unseen pairs."""
    choice("unseen", unseen, UNSEEN)
    v_max = number("v_max", v_max, -np.inf, np.inf, "()")
    return {"zero": 0.0, "pessimistic": -v_max, "optimistic": v_max}[unseen]


def default_v_max(counts: Counts, discount_: float) -> float:
    """A bound on |return| from the rewards seen: their range, with 0, over 1 − γ.

    Zero belongs to the range because nothing is earned after the end. Where every episode is a
    single step that ends, a return is a reward, and nothing is divided by.
    """
    low, high = counts.reward_range
    steps = 1 - discount(discount_)
    bound = (max(high, 0.0) - min(low, 0.0)) / (1.0 if counts.one_step else steps)
    if not math.isfinite(bound):
        raise InputError(
            f"rewards from {low:g} to {high:g} with discount {discount_:g} give returns above the "
            "largest number, 1.8e308: divide the rewards by a constant"
        )
    return bound


def shown_v_max(counts: Counts, discount_: float) -> float:
    """The least V_max that the mean rewards of the outcomes allow.

    The reward of an end is a whole return, at most V_max; after any other, up to γV_max may follow.
    """
    mean = np.abs(counts.reward_sum / counts.n)
    ended = mean[counts.successors == END].max(initial=0.0)
    others = max(map(abs, counts.reward_range)) / (1 + discount_)
    return float(max(ended, others))
