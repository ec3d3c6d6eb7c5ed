"""Two policies on vectors side by side, and what a log says of one in the place of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.deep.cases import Case, cases_of
from spibb.deep.conforming import conformity_on
from spibb.deep.estimates import estimate_on, propensities, with_actions
from spibb.deep.judging import VectorDepartures, departures, verdict_of
from spibb.deep.vector_policy import VectorPolicy
from spibb.defaults import DISCOUNT
from spibb.episodes.departures import changed_states
from spibb.errors import InputError
from spibb.ingest.assumptions import Finding
from spibb.ingest.vectors import VectorLog
from spibb.labels import Vocabulary
from spibb.ope import OffPolicyReport
from spibb.verdict import Grade, Verdict

NOT_TRAINED = "these episodes did not train the new policy"
"""What is assumed of a log that is given to judge a policy."""


@dataclass(frozen=True, eq=False)
class VectorComparison:
    """How policy A differs from B at `states` many states, a share of `differ` of them.

    `greedy_changed` is the share in which the most probable action differs, `mean_variation` the
    mean of ½ Σ_a |A(a|x) − B(a|x)|, and `cases` are typical ones, from B to A. With a log, `single`
    departures and `verdict` are those of A in the place of B, as if B had made the log; the other
    fields are those of `Comparison`.
    """

    states: int
    differ: float
    greedy_changed: float
    mean_variation: float
    cases: tuple[Case, ...]
    single: VectorDepartures | None = None
    verdict: Verdict | None = None
    trained: bool = False
    discount: float | None = None
    discount_from: str | None = None
    assumptions: tuple[Finding, ...] = ()


def compare_vectors(
    a: VectorPolicy,
    b: VectorPolicy,
    log: VectorLog | None = None,
    *,
    discount: float = DISCOUNT,
    delta: float = 0.05,
    seed: int = 0,
) -> VectorComparison:
    """Compare two policies at a log's states; without one, at those that A was trained on."""
    b = _alike(a, b)
    states = a.points * a.scaling.spread + a.scaling.centre if log is None else log.state
    found, old = a.at(states), b(states)
    variation = np.abs(found.probs - old).sum(axis=1) / 2
    greedy = found.probs.argmax(axis=1) != old.argmax(axis=1)
    differ = float(changed_states(found.probs, old).mean())
    single, verdict = (
        (None, None) if log is None else _judged(a, b, log, differ, discount, delta, seed)
    )
    return VectorComparison(
        len(states), differ, float(greedy.mean()), float(variation.mean()),
        tuple(cases_of(a, states, old, found)), single, verdict,
    )  # fmt: skip


def _judged(
    a: VectorPolicy, b: VectorPolicy, log: VectorLog, differ: float, discount: float, delta: float,
    seed: int,
) -> tuple[VectorDepartures | None, Verdict]:  # fmt: skip
    """What a log says of A in the place of B."""
    log, rng = with_actions(log, a.actions), np.random.default_rng(seed)
    wrong = _not_made_by(b, log)
    if wrong:
        remedy = "Compare with the policy that made the log."
        return None, Verdict(
            Grade.NOT_SUPPORTED, f"B did not make this log: {wrong}.", (), remedy, delta, None, ()
        )
    behaviour = propensities(log, b(log.state))
    single = departures(log, a, discount, delta=delta, rng=rng, behaviour=behaviour)
    whole = estimate_on(log, a, discount, delta=delta, behaviour=behaviour, rng=rng)
    return single, verdict_of(
        differ, single, whole, cloned=log.action_prob is None,
        more_assumed=("the current policy made the log", NOT_TRAINED),
    )  # fmt: skip


def judged_on(
    log: VectorLog, policy: VectorPolicy, single: VectorDepartures, whole: OffPolicyReport
) -> Verdict:
    """The verdict on a policy in the place of the baseline that is stored with it."""
    found = policy.at(log.state)
    moved = float(changed_states(found.probs, found.baseline).mean())
    return verdict_of(
        moved, single, whole, cloned=log.action_prob is None, more_assumed=(NOT_TRAINED,)
    )


def _not_made_by(policy: VectorPolicy, log: VectorLog) -> str | None:
    """Why a log is not a policy's, if it is not."""
    try:
        return next(iter(conformity_on(log, policy).warnings), None)
    except InputError as error:
        return str(error)


def _alike(a: VectorPolicy, b: VectorPolicy) -> VectorPolicy:
    """B with its columns and actions in the order of A's."""
    for what, left, right in (
        ("columns", a.features, b.features), ("actions", a.actions.labels, b.actions.labels)
    ):  # fmt: skip
        if set(left) != set(right):
            raise InputError(
                f"the policies have different {what}, {_list(left)} and {_list(right)}: compare "
                "policies of one problem"
            )
    place = np.array([a.features.index(name) for name in b.features])
    return b.reordered(place, Vocabulary.codes(a.actions, b.actions))


def _list(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names))
