"""Where a policy on vectors changed: the most typical cases, and how well the log covers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spibb.counts import BRACKETS
from spibb.deep.improving import VectorImprovement
from spibb.deep.vector_policy import VectorDecisions, VectorPolicy
from spibb.labels import Label

WORTH_SHOWING = 0.01
"""Probability that a decision must move to be a case of its kind; less may be changed as well."""


@dataclass(frozen=True)
class Case:
    """A typical decision of those that move probability from `less` to `more`.

    It is the logged state nearest to the mean of all such states, in standard deviations; `share`
    are their share of all logged decisions, `moved` the mean probability that moves there. By
    action: `current` and `new` probabilities, and pseudo-`counts`.
    """

    state: Mapping[str, float]
    less: Label
    more: Label
    share: float
    moved: float
    current: Mapping[Label, float]
    new: Mapping[Label, float]
    counts: Mapping[Label, float]


def typical_cases(result: VectorImprovement, most: int = 10) -> list[Case]:
    """The changes of an improvement by kind."""
    found = result.decisions
    return cases_of(result.policy, result.log.state, found.baseline, found, most)


def cases_of(
    policy: VectorPolicy,
    states: np.ndarray,
    old: np.ndarray,
    found: VectorDecisions,
    most: int = 10,
) -> list[Case]:
    """What a policy, which decides `found` at states [N, d], changes of `old` rows [N, A].

    By kind, what is done less and more, the commonest first.
    """
    change = found.probs - old
    moved = np.abs(change).sum(axis=1) / 2
    less, more = change.argmin(axis=1), change.argmax(axis=1)
    kind = np.where(moved > WORTH_SHOWING, less * len(policy.actions) + more, -1)
    kinds, sizes = np.unique(kind[kind >= 0], return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:most]
    z, labels = policy.inputs(states), policy.actions.labels

    def named(row: int, values: np.ndarray) -> dict[Label, float]:
        return dict(zip(labels, values[row].tolist()))

    def case(rows: np.ndarray) -> Case:
        row = int(rows[np.argmin(((z[rows] - z[rows].mean(axis=0)) ** 2).sum(axis=1))])
        return Case(
            dict(zip(policy.features, states[row].tolist())), labels[int(change[row].argmin())],
            labels[int(change[row].argmax())], len(rows) / len(states), float(moved[rows].mean()),
            named(row, old), named(row, found.probs), named(row, found.counts),
        )  # fmt: skip

    return [case(np.flatnonzero(kind == kinds[k])) for k in order]


@dataclass(frozen=True)
class VectorCoverage:
    """Logged decisions by their pseudo-counts, without themselves: (range, trusted, copied).

    `copied` is the baseline's probability of what is copied for lack of evidence, at the logged
    states, and `changed` the share of decisions that change.
    """

    bins: tuple[tuple[str, int, int], ...]
    copied: float
    changed: float


def coverage(result: VectorImprovement) -> VectorCoverage:
    """How much evidence the log has for what it shows."""
    taken, found, n_wedge = result.taken_counts, result.decisions, result.policy.n_wedge
    limits = [*pairwise(BRACKETS), (BRACKETS[-1], np.inf)]
    bins = []
    for low, high in limits:
        inside = (taken >= low) & (taken < high)
        trusted = inside & (taken >= n_wedge)
        name = f"{low} to <{high}" if high < np.inf else f"{low}+"  # 4.7 is possible
        bins.append((name, int(trusted.sum()), int((inside & ~trusted).sum())))
    thin = found.counts < n_wedge
    copied = float((found.baseline * thin).sum(axis=1).mean())
    return VectorCoverage(tuple(bins), copied, result.changed)
