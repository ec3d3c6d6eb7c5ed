"""From counts to the estimated MDP M̂."""

from __future__ import annotations

import numpy as np

from spibb.checks import choice, discount
from spibb.counts import Counts
from spibb.mdp import MDP

UNSEEN = ("zero", "pessimistic", "optimistic")


def estimate_mdp(
    counts: Counts, discount: float, *, unseen: str = "zero", v_max: float = 0.0
) -> MDP:
    """The maximum-likelihood MDP M̂ = ⟨X, A, R̂, P̂, γ⟩ of the counts.

    P̂ and R̂ are the frequencies and the mean rewards of the log; its episode starts are the
    initial distribution. `unseen` is the value of pairs that the log never contains: 0 ("zero"),
    −v_max ("pessimistic") or v_max ("optimistic"). The paper initialises Q with ±V_max for Basic
    RL and is silent for SPIBB; zero is what its released code does there.
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


def expected_rewards(counts: Counts, unseen: str, v_max: float) -> np.ndarray:
    """R̂ [S, A], with the value of `unseen` where the log has nothing."""
    return np.where(counts.pairs > 0, counts.mean_reward, unseen_value(unseen, v_max))


def unseen_value(unseen: str, v_max: float) -> float:
    """The number behind the name of a treatment of unseen pairs."""
    choice("unseen", unseen, UNSEEN)
    return {"zero": 0.0, "pessimistic": -v_max, "optimistic": v_max}[unseen]


def default_v_max(counts: Counts, discount_: float) -> float:
    """A bound on |return| from the rewards seen: their range, with 0, over 1 − γ.

    Zero belongs to the range because nothing is earned after the end.
    """
    low, high = counts.reward_range
    return (max(high, 0.0) - min(low, 0.0)) / (1 - discount(discount_))
