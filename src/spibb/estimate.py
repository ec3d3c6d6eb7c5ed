"""What a log says: the estimated MDP M̂ and the estimated baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from spibb.checks import choice, discount, number, shown, some, takes
from spibb.counts import END, Counts
from spibb.errors import InputError
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy

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


Counted = TypeVar("Counted", Log, Counts)


def in_common(log: Counted, policies: Mapping[str, Policy]) -> tuple[Counted, list[Policy]]:
    """A log (or its counts) and policies, over the log's states and the actions of all of them.

    Each policy needs a row for every state of the log; the keys name them in messages.
    """
    played: dict[Label, None] = {
        label: None
        for policy in policies.values()
        for label, mass in zip(
            policy.actions.named(log.actions.names).labels, policy.probs.max(axis=0)
        )
        if mass > 0 and label not in log.actions.index
    }
    actions: Vocabulary = log.actions
    if played:
        labels = (*actions.labels, *sorted(played, key=repr))
        actions = Vocabulary(labels, actions.names)
    rows = [policy.aligned(log.states, actions, what) for what, policy in policies.items()]
    return log.with_labels(log.states, actions), rows


Baseline = Policy | np.ndarray | Sequence[Sequence[float]] | Callable[[Label], Any] | Any
"""A policy; rows in the order of the log's labels; a function of a state's label; or a table."""


def as_policy(baseline: Baseline, log: Log | Counts) -> Policy:
    """A baseline in any form but a table as a policy over a log's labels."""
    if isinstance(baseline, Policy):
        return baseline
    if callable(baseline):
        rows = [_row(baseline(label), label, log.actions) for label in log.states.labels]
        return Policy(rows, log.states, log.actions, "baseline")
    return Policy(baseline, log.states, log.actions, "baseline")


def _row(given: Any, state: Label, actions: Vocabulary) -> list[float]:
    """A function's answer for a state: a mapping from actions, or numbers in their order."""
    if not isinstance(given, Iterable):
        raise InputError(
            f"baseline gives {shown(given)} in state {state!r}, expected the probability of each "
            "action: return a mapping from actions, or numbers in their order"
        )
    if not isinstance(given, Mapping):
        return list(given)
    unknown = [label for label, p in given.items() if label not in actions.index and p > 0]
    if unknown:
        raise InputError(
            f"baseline plays {some(unknown)} in state {state!r}, which the log never shows: give a "
            "Policy with labels for all actions"
        )
    return [given.get(label, 0.0) for label in actions.labels]


@takes(log=(Counts, Log))
def estimate_baseline(log: Log | Counts, *, smoothing: float = 0.0) -> Policy:
    """The policy that the log shows, π̂_b(a|x) = (N(x, a) + k) / (N(x) + k|A|) (Simão et al. 2020).

    States in which the log never acts get a uniform row.

    Parameters:
        log: the log or its counts.
        smoothing: k ≥ 0, pseudo-counts of every action; with 0, an action never taken in a state
            is unavailable there.

    Returns:
        The policy, with the labels of the log.

    >>> spibb.estimate_baseline(log, smoothing=1).row("severe")
    {'treat': 0.6, 'wait': 0.4}
    """
    smoothing = number("smoothing", smoothing, 0, np.inf, "[)")
    counts = log if isinstance(log, Counts) else Counts.from_log(log)
    mass = counts.pairs + smoothing
    total = mass.sum(axis=1, keepdims=True)
    probs = np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / mass.shape[1])
    return Policy(probs, counts.states, counts.actions)
