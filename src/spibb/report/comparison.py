"""Two policies side by side: where they differ, and what a log says about the difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.assurance.posterior import posterior_improvement
from spibb.assurance.values import INVERTED_UP_TO
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.estimate import estimate_mdp, in_common
from spibb.evaluate import exact_value
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.policy import Policy

MOVED = 1e-9


@dataclass(frozen=True)
class Difference:
    """One state in which two policies differ: total variation and likeliest actions."""

    state: Label
    variation: float
    greedy_a: Label
    greedy_b: Label
    visits: int | None = None


@dataclass(frozen=True)
class Values:
    """What a log says: values in its model, and the posterior of ρ(A) − ρ(B)."""

    value_a: float
    value_b: float
    probability: float
    gain: float
    interval: tuple[float, float]
    level: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two policies differ.

    `differences` are ordered by total variation ½ Σ_a |A(a|x) − B(a|x)|, times visits where a log
    is given. `only_a` and `only_b` count states that the other policy does not know.
    """

    common: int
    only_a: int
    only_b: int
    differences: tuple[Difference, ...]
    mean_variation: float
    values: Values | None = None

    @property
    def greedy_changed(self) -> int:
        """Number of states in which the likeliest action differs."""
        return sum(d.greedy_a != d.greedy_b for d in self.differences)


def compare(
    a: Policy,
    b: Policy,
    log: Log | None = None,
    *,
    discount: float = 0.95,
    rng: np.random.Generator,
) -> Comparison:
    """Compare two policies in the states that both know; with a log, also their values in it.

    Values and the posterior are those of `posterior_improvement`, with B as baseline.
    """
    known = b.states.index
    shared = [label for label in a.states.labels if label in known]
    if not shared:
        raise InputError(
            "the two policies have no state in common: compare policies of one problem"
        )
    labels = dict.fromkeys((*a.actions.labels, *b.actions.labels))
    states, actions = Vocabulary(tuple(shared), a.states.names), Vocabulary(tuple(labels))
    left, right = (p.aligned(states, actions).probs for p in (a, b))
    variation = np.abs(left - right).sum(axis=1) / 2
    visits = None if log is None else _visits(log, states)
    weight = variation if visits is None else variation * visits
    differences = tuple(
        Difference(
            states[s], float(variation[s]), actions[int(left[s].argmax())],
            actions[int(right[s].argmax())], None if visits is None else int(visits[s]),
        )
        for s in np.lexsort((-variation, -weight)).tolist() if variation[s] > MOVED
    )  # fmt: skip
    return Comparison(
        len(shared), len(a.states) - len(shared), len(b.states) - len(shared), differences,
        float(variation.mean()), None if log is None else _values(a, b, log, discount, rng),
    )  # fmt: skip


def _visits(log: Log, states: Vocabulary) -> np.ndarray:
    """How often the log acts in each state [S]; states that it never visits count 0."""
    seen = np.bincount(log.state, minlength=len(log.states))
    codes = log.states.codes(states)
    return np.where(codes >= 0, seen[np.maximum(codes, 0)], 0)


def _values(a: Policy, b: Policy, log: Log, discount: float, rng: np.random.Generator) -> Values:
    """Both policies in the models that the log leaves possible."""
    log, (left, right) = in_common(log, {"A": a, "B": b})
    counts = Counts.from_log(log)
    model = estimate_mdp(counts, discount)
    draws = 1000 if len(log.states) <= INVERTED_UP_TO else 100
    posterior = posterior_improvement(counts, left, right, discount, rng=rng, draws=draws)
    return Values(
        exact_value(model, left), exact_value(model, right), posterior.probability,
        posterior.gain, posterior.interval, posterior.level,
    )  # fmt: skip
