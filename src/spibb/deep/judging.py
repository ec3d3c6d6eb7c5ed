"""What held-out episodes say of a policy on vectors, and the verdict.

Importance weights of whole episodes vanish after some ten decisions, and with them every estimator
of `spibb.ope`. Single departures need one weight each: with ρ_t = π(a_t|x_t)/μ(a_t|x_t) and the
return G_t that followed,

    X_i = Σ_t γ^t (ρ_t − 1) (G_t − v(x_t))

has the mean of Σ_t γ^t Σ_a (π − μ)(a|x_t) Q^μ(x_t, a): the gain of all changes to the first order,
each made alone at one of the decisions of the current policy μ, then added up. By the lemma on
differences of performance (Kakade and Langford 2002) this is the gain itself up to the change in
which states are visited: where many changes each save the same reward, the sum counts it many
times, and may be more than any policy can gain. Where evidence is thin the new policy does what μ
does, and departs from nothing. Any function v of the
state leaves the mean as it is; the returns that followed the states of the training, fitted by a
line to the new policy's values V̂, leave little chance and little harm from a clone that errs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.bounds.means import bca_bound, student_t_bound
from spibb.deep.estimates import propensities, with_actions
from spibb.deep.vector_policy import VectorPolicy
from spibb.episodes.departures import ALONE
from spibb.episodes.limits import slack
from spibb.evaluate import returns
from spibb.ingest.vectors import VectorLog
from spibb.log import returns_to_go
from spibb.ope import FEW_EPISODES, OffPolicyReport, beyond_reach, is_beyond_reach, reach_of
from spibb.verdict import Grade, Verdict
from spibb.words import at_least, level, number, percent, signed, surely


@dataclass(frozen=True)
class VectorDepartures:
    """What the changes gain per episode on held-out ones, each made alone, then added up.

    Both lower bounds fail with probability `delta`, approximately; `lower` is the lesser. `earned`
    is the mean return of the episodes, and `reach` what their rewards can add up to.
    """

    episodes: int
    gain: float
    student_t: float
    bca: float
    delta: float
    earned: float
    reach: tuple[float, float]

    @property
    def lower(self) -> float:
        """The lesser of the two bounds."""
        return min(self.student_t, self.bca)

    @property
    def doubt(self) -> str | None:
        """Say when no policy can gain as much."""
        value = self.earned + self.gain
        if not is_beyond_reach(value, self.reach, slack(*self.reach)):
            return None
        return (
            f"do not rely on the size of the gain of the changes ({ALONE}): the mean return plus "
            f"that gain, {number(value)}, is {beyond_reach(self.reach)}"
        )


def fit_current(returns: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """a and b of the line a + b V̂ that is nearest to returns to go [N], by values V̂ [N]."""
    centre, spread = float(values.mean()), float(values.std())
    if spread <= 1e-12 * max(abs(centre), 1e-300):
        return float(returns.mean()), 0.0
    slope = float(((values - centre) / spread * returns).mean()) / spread
    return float(returns.mean()) - slope * centre, slope


def departures(
    log: VectorLog,
    policy: VectorPolicy,
    discount: float,
    *,
    delta: float,
    rng: np.random.Generator,
    behaviour: np.ndarray | None = None,
) -> VectorDepartures:
    """What single departures gain on episodes that trained nothing.

    `behaviour` [N] are the probabilities of what was done, by default those of `propensities`.
    """
    log = with_actions(log, policy.actions)
    found = policy.at(log.state)
    made = propensities(log, found.baseline) if behaviour is None else behaviour
    ratio = found.probs[np.arange(len(log)), log.action] / made
    value = (found.probs * found.q).sum(axis=1)
    usual = policy.current_fit[0] + policy.current_fit[1] * value
    beyond = (returns_to_go(log, discount) - usual) / policy.reward_unit
    terms = np.add.reduceat(discount**log.step * (ratio - 1) * beyond, log.episode_starts[:-1])
    unit = policy.reward_unit
    return VectorDepartures(
        log.n_episodes, float(terms.mean()) * unit, student_t_bound(terms, delta) * unit,
        bca_bound(terms, delta, rng=rng) * unit, delta, float(returns(log, discount).mean()),
        reach_of(log.reward, float(log.lengths.max()), discount),
    )  # fmt: skip


def verdict_of(
    moved: float, found: VectorDepartures | None, whole: OffPolicyReport | None, *, cloned: bool,
    more_assumed: Sequence[str] = (),
) -> Verdict:  # fmt: skip
    """The grade of a policy that moved a share of the decisions."""
    delta = 0.05 if found is None else found.delta
    assumed = (
        "one process makes all episodes, and the columns contain its whole state",
        "changes that gain when each is made alone also gain together",
        *(("the clone acts as the current policy does",) if cloned else ()),
        *more_assumed,
    )
    doubts = () if found is None or found.doubt is None else (found.doubt,)
    reason, remedy = _against(moved, found, whole)
    if reason or found is None:
        return Verdict(Grade.NOT_SUPPORTED, reason, assumed, remedy, delta, None, (), doubts)
    sentence = (
        f"On {found.episodes:,} held-out episodes, the changes ({ALONE}) gain {signed(found.gain)} "
        f"per episode, at least {surely(found.lower)} at level {level(delta)}; the new policy "
        f"departs from the current one in {percent(moved)} of the decisions."
    )
    return Verdict(
        Grade.SUPPORTED, sentence, assumed,
        "None here: certified needs finitely many states (--bin, --algorithm certified).",
        delta, found.lower, (), doubts,
    )  # fmt: skip


def _against(
    moved: float, found: VectorDepartures | None, whole: OffPolicyReport | None
) -> tuple[str, str]:
    """Why the log does not support the policy, and what would help; empty where it does."""
    more = "More held-out episodes like these, or a larger n_wedge."
    if moved == 0:
        return (
            "There is too little evidence to depart from the current policy anywhere.",
            "More episodes near the states of this log, or a smaller n_wedge or a larger radius, "
            "which ask for less evidence.",
        )
    if found is None or whole is None:
        return (
            "No episodes were held out, so only the training itself supports the new policy.",
            "Episodes held out (--holdout 0.3).",
        )  # fmt: skip
    if found.episodes < FEW_EPISODES:
        return f"Only {found.episodes} episodes were held out.", f"At least {FEW_EPISODES} of them."
    if not found.lower > 0:
        return f"On {found.episodes:,} held-out episodes, {_unsure(found)}.", more
    dr = whole.difference("dr").estimate
    if whole.effective_sample_size >= FEW_EPISODES and dr.value < 0:
        return (
            f"The changes ({ALONE}) gain, but in whole episodes (dr, "
            f"{whole.effective_sample_size:,.0f} effective ones) the new policy loses "
            f"{number(-dr.value)} per episode.", more,
        )  # fmt: skip
    return "", ""


def _unsure(found: VectorDepartures) -> str:
    """What a gain without a sure sign is: perhaps chance, or none at all."""
    bound = f"the lower bound is {at_least(found.lower)}"
    if found.gain > 0:
        return (
            f"the changes ({ALONE}) gain {signed(found.gain)} per episode, but that may be chance: "
            f"{bound}"
        )
    lost = f"lose {number(-found.gain)}" if found.gain < 0 else "gain nothing"
    return f"the changes ({ALONE}) {lost} per episode; {bound}"
