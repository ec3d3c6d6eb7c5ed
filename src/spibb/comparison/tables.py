"""Two tables side by side: where they differ, and what a log says about the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import posterior_improvement, sure_gain
from spibb.behaviour import in_common
from spibb.decisions import likeliest
from spibb.defaults import DELTA, DISCOUNT
from spibb.episodes.departures import MOVED
from spibb.errors import InputError
from spibb.ingest.assumptions import Finding
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.verdict import Evidence, Verdict, decide, gather
from spibb.verdict.evidence import n_draws
from spibb.verdict.remedies import WhyUnchanged


@dataclass(frozen=True)
class Difference:
    """One state in which two policies differ: total variation and likeliest actions."""

    state: Label
    variation: float
    greedy_a: Label
    greedy_b: Label
    visits: int | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two policies differ, as `spibb.compare` returns it.

    Attributes:
        common: number of states that both policies know.
        only_a: number of states that only A knows.
        only_b: number of states that only B knows.
        differences: the states in which they differ, those with the largest total variation
            ½ Σ_a |A(a|x) − B(a|x)| first, times visits where a log is given.
        mean_variation: mean total variation in the common states.
        evidence: what the log says of A in the place of B, as if B had made the log; None without.
        verdict: the verdict on this evidence.
        trained: whether the log is the file that trained A.
        stored: `grade`, `headline` and `sentence` that `spibb improve` said of A with this log,
            baseline B and discount, if so. Rely on these and not on `verdict`.
        discount: γ that the log was judged with; None without a log.
        discount_from: where the discount comes from; None if every episode is a single step.
        assumptions: what the log does not say itself, and what was left out of it.

    >>> other = spibb.Policy([[1, 0], [0.6, 0.4]], ["mild", "severe"], ["treat", "wait"])
    >>> found = spibb.compare(other, baseline)
    >>> found.differences[0].state, found.mean_variation
    ('mild', 0.2)
    """

    common: int
    only_a: int
    only_b: int
    differences: tuple[Difference, ...]
    mean_variation: float
    evidence: Evidence | None = None
    verdict: Verdict | None = None
    trained: bool = False
    stored: Mapping[str, Any] | None = None
    discount: float | None = None
    discount_from: str | None = None
    assumptions: tuple[Finding, ...] = ()

    @property
    def unjudged(self) -> bool:
        """Whether B did not make the log, which then cannot say what A gains in its place."""
        return self.evidence is not None and _made_by_another(self.evidence) is not None

    @property
    def greedy_changed(self) -> int:
        """Number of states in which the likeliest action differs."""
        return sum(d.greedy_a != d.greedy_b for d in self.differences)


def compare_tables(
    a: Policy,
    b: Policy,
    log: Log | None = None,
    *,
    discount: float = DISCOUNT,
    seed: int = 0,
    level: float | None = None,
) -> Comparison:
    """Compare two policies in the states that both know; with a log, judge A in the place of B.

    Where the log trained A, it judges its own choice, at the `level` at which `spibb improve` did.
    """
    b = b.named(a.states.names, a.actions.names)
    known = b.states.index
    shared = [label for label in a.states.labels if label in known]
    if not shared:
        raise InputError(
            "the two policies have no state in common: compare policies of one problem"
        )
    labels = dict.fromkeys((*a.actions.labels, *b.actions.labels))
    states, actions = Vocabulary(tuple(shared), a.states.names), Vocabulary(tuple(labels))
    left, right = (p.aligned(states, actions).probs for p in (a, b))
    mine, theirs = (likeliest(probs, actions) for probs in (left, right))
    variation = np.abs(left - right).sum(axis=1) / 2
    visits = None if log is None else _visits(log, states)
    weight = variation if visits is None else variation * visits
    differences = tuple(
        Difference(
            states[s], float(variation[s]), actions[int(mine[s])], actions[int(theirs[s])],
            None if visits is None else int(visits[s]),
        )
        for s in np.lexsort((-variation, -weight)).tolist() if variation[s] > MOVED
    )  # fmt: skip
    evidence = None if log is None else _evidence(a, b, log, discount, seed, level)
    return Comparison(
        len(shared), len(a.states) - len(shared), len(b.states) - len(shared), differences,
        float(variation.mean()), evidence,
        None if evidence is None else _verdict(evidence),
    )  # fmt: skip


def _verdict(evidence: Evidence) -> Verdict:
    verdict, wrong = decide(evidence, unchanged=SAME), _made_by_another(evidence)
    if wrong is None:
        return verdict
    return replace(
        verdict, sentence=f"B did not make this log ({wrong}), so that the log cannot say what A "
        "gains in the place of B.",
        remedy="Compare with a log that B made; or evaluate A and B one after the other (spibb "
        "evaluate LOG --policy A), which needs only to know who made the log.",
    )  # fmt: skip


def _made_by_another(evidence: Evidence) -> str | None:
    """Why B cannot have made the log, if it cannot."""
    problem = evidence.problem
    if problem.contradictions:
        return f"{problem.contradictions:,} of its decisions are actions that B never takes"
    return problem.misreported


SAME = WhyUnchanged("both policies do the same", "Another policy.")
"""Why nothing changes from one policy to the other."""


def _visits(log: Log, states: Vocabulary) -> np.ndarray:
    """How often the log acts in each state [S]; states that it never visits count 0."""
    seen = np.bincount(log.state, minlength=len(log.states))
    codes = log.states.codes(states)
    return np.where(codes >= 0, seen[np.maximum(codes, 0)], 0)


def _evidence(
    a: Policy, b: Policy, log: Log, discount: float, seed: int, level: float | None
) -> Evidence:
    """What the log says of A against B, at a level below δ if one is given."""
    log, (left, right) = in_common(log, {"A": a, "B": b})
    problem = Problem.from_log(log, right, discount=discount)
    if level is None or level >= DELTA:
        return gather(problem, left, seed=seed)
    posterior = posterior_improvement(
        problem.counts, left, right, discount, rng=np.random.default_rng(seed),
        draws=n_draws(problem, level),
    )  # fmt: skip
    lower = float(sure_gain(posterior.gains, level))
    found = gather(problem, left, seed=seed, posterior=posterior)
    return replace(found, lower=lower, shared=True, share=level)
