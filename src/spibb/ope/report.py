"""All estimators with all bounds of one policy on one log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spibb import checks, words
from spibb.arrays import rounding_of
from spibb.behaviour import in_common
from spibb.bounds.chance import RULE_OF_THREE
from spibb.counts import Counts
from spibb.defaults import DISCOUNT
from spibb.episodes.conformity import contradiction, decisions, misrecorded
from spibb.episodes.departures import typical_model
from spibb.episodes.limits import slack
from spibb.episodes.propensities import behaviour_probs
from spibb.evaluate import returns
from spibb.grade import Grade, headline
from spibb.log import Log
from spibb.mdp import MDP
from spibb.ope.bounds import BOUNDS, EXACT, BoundedEstimate, with_bounds
from spibb.ope.contributions import ESTIMATORS, TRUNCATED, contributions
from spibb.ope.estimate import Estimate, beyond_reach
from spibb.ope.sweep import Candidates
from spibb.policy import Policy
from spibb.showing import Shown


@dataclass(frozen=True, eq=False)
class OffPolicyReport(Shown):
    """All estimators with all bounds of one policy on one log.

    `n_truncated` episodes of the `n_episodes` were cut; `truncated` is the rule applied to them.
    `earned` is the mean return of the log, and `differences` are the estimates less that, episode
    by episode, with bounds of their own: what the policy gains over the one that made the log. The
    rule "model" completes cut episodes by each policy's own values, and so has differences only
    where the behaviour is given as a policy. `refuted` says why the behaviour cannot have made the
    log, if it cannot: no estimate is then worth anything.

    >>> rng = np.random.default_rng(0)
    >>> found = spibb.off_policy_estimates(log, baseline, baseline, rng=rng)
    >>> found.n_episodes, round(found["wis"].estimate.value, 2)
    (3, 0.63)
    """

    rows: tuple[BoundedEstimate, ...]
    differences: tuple[BoundedEstimate, ...]
    earned: float
    delta: float
    n_episodes: int
    n_truncated: int
    truncated: str
    refuted: str | None = None

    def _facts(self) -> Mapping[str, Any]:
        """The sample, and what each estimator says."""
        found = {row.estimate.name: row.estimate.value for row in self.rows}
        return {"episodes": self.n_episodes, "delta": self.delta, "earned": self.earned, **found}

    def __getitem__(self, name: str) -> BoundedEstimate:
        names = [row.estimate.name for row in self.rows]
        return self.rows[names.index(checks.choice("estimator", name, names))]

    def difference(self, name: str) -> BoundedEstimate:
        """The difference by one estimator."""
        names = [row.estimate.name for row in self.differences]
        return self.differences[names.index(checks.choice("estimator", name, names))]

    @property
    def effective_sample_size(self) -> float:
        """Kish's size of the episode weights, which all estimators share."""
        return self.rows[0].estimate.effective_sample_size

    @property
    def warning(self) -> str | None:
        """What the estimates suffer from, if anything."""
        return self._warning_about(self.rows)

    def warning_about(self, name: str) -> str | None:
        """What one estimator suffers from, if anything: others may be of no use here."""
        return self._warning_about((self[name],))

    def _warning_about(self, rows: Sequence[BoundedEstimate]) -> str | None:
        weights = next((r.estimate.warning for r in rows if r.estimate.warning), None)
        refuted = self.refuted and f"the log contradicts the behaviour policy: {self.refuted}"
        beyond_reach = _out_of_reach([row.estimate for row in rows if row.estimate.out_of_reach])
        return "; ".join(part for part in (refuted, weights, beyond_reach) if part) or None

    @property
    def _gains_at_least(self) -> list[float]:
        """The lower bounds by Student's t on the difference."""
        return [b.value for r in self.differences for b in r.bounds if b.name == "student-t"]

    @property
    def favourable(self) -> bool:
        """Whether all of these bounds are above 0, and there is no warning."""
        bounds = self._gains_at_least
        return bool(bounds) and all(bound > 0 for bound in bounds) and not self.warning

    @property
    def _unproven(self) -> str:
        """What no estimate can know: losses that are rare and did not happen here."""
        exact = [
            b.value for r in self.differences for b in r.bounds if b.name in EXACT and not b.refusal
        ]
        proven = ", and no exact bound is above 0" if exact and max(exact) <= 0 else ""
        share = words.percent(min(1.0, RULE_OF_THREE / self.effective_sample_size))
        rare = share if share.startswith("less") else f"up to {share}"
        return f"A loss in {rare} of the episodes may not show in them{proven}."

    @property
    def conclusion(self) -> str | None:
        """One sentence: is the policy better than the one that made the log? None if not known.

        It takes all six lower bounds by Student's t on the difference, and no warning.
        """
        return self.concluded()

    def concluded(self, doubts: Sequence[str] = ()) -> str | None:
        """The conclusion where there are doubts beside the estimates."""
        bounds = self._gains_at_least
        if not bounds:
            return None
        level = words.level(self.delta)
        if self.favourable:
            return (
                f"{headline(Grade.SUPPORTED, doubts)}. According to all six estimators, the new "
                f"policy gains at least {words.at_least(min(bounds))} per episode (level {level}, "
                f"Student's t), if these episodes did not train it. {self._unproven}"
            )
        better = sum(bound > 0 for bound in bounds)
        few = f"{better} of {len(bounds)} lower bounds on the gain are above 0 at level {level}"
        why = self.warning or f"{few} (Student's t)"
        return f"{headline(Grade.NOT_SUPPORTED)}. {why[0].upper()}{why[1:]}."


def _out_of_reach(found: Sequence[Estimate]) -> str | None:
    """Say which estimates are beyond what rewards like the log's can add up to."""
    if not found:
        return None
    values = words.listed([f"{one.name} = {words.general(one.value, 4)}" for one in found])
    return (
        f"{values} {'is' if len(found) == 1 else 'are'} {beyond_reach(found[0].reach)}: do not "
        f"rely on {'it' if len(found) == 1 else 'them'}"
    )


@checks.takes(
    log=Log, policy=Policy, behaviour=(type(None), Policy), model=(type(None), MDP),
    rng=np.random.Generator,
)  # fmt: skip
def off_policy_estimates(  # noqa: PLR0913 (one parameter per assumption)
    log: Log,
    policy: Policy,
    behaviour: Policy | None = None,
    discount: float = DISCOUNT,
    *,
    delta: float = 0.05,
    model: MDP | None = None,
    truncated: str = "recorded",
    lowest_return: float | None = None,
    highest_return: float = math.inf,
    bounds: Sequence[str] = ("bernstein", "betting", "student-t", "bca"),
    rng: np.random.Generator,
) -> OffPolicyReport:
    """Evaluate a policy on a log: every estimator, with lower bounds at failure rate `delta`.

    If `policy` was trained on this log, it looks better here than it is.

    Parameters:
        log: the episodes.
        policy: what is evaluated.
        behaviour: the policy that made the log; None takes the log's `action_prob`.
        discount: γ in [0, 1).
        delta: failure probability of each bound.
        model: its values are the Q̂ and V̂ of dr, wdr and the rule "model". None estimates it from
            the same log, which costs dr its unbiasedness (by O(1/E)).
        truncated: what a cut episode counts: "recorded" or "model".
        lowest_return: no return is below it (for pdis, where a positive one counts as 0: no reward
            is below (1 − γ) times it). This is declared, not seen: without it, None, there are no
            exact bounds. No estimate depends on it.
        highest_return: no return is above it; exact bounds of a difference need it too.
        bounds: names of the lower bounds. "bca" resamples all episodes, which takes long with
            100,000 of them.
        rng: the source of random numbers.

    Returns:
        Six estimates with their bounds, by name, and their differences from what the log earned.

    >>> report = spibb.off_policy_estimates(log, baseline, baseline, 0.9,
    ...                                     rng=np.random.default_rng(0), bounds=("student-t",))
    >>> round(report["is"].estimate.value, 9)
    0.6
    """
    checks.discount(discount)
    checks.delta(delta)
    checks.choice("truncated", truncated, TRUNCATED)
    lowest_return = checks.limit("lowest_return", lowest_return)
    least = -math.inf if lowest_return is None else lowest_return
    checks.number("highest_return", highest_return, least, math.inf, "(]")
    for bound in checks.several("bounds", bounds, '("student-t",)'):
        checks.choice("bound", bound, BOUNDS)
    estimates, earned = _estimates(
        log, policy, behaviour, discount,
        model=model, truncated=truncated, lowest_return=lowest_return,
    )  # fmt: skip
    if refuted := _refuted(log, behaviour):
        no_limit = "the log contradicts the behaviour policy"
        remedy = "give the policy that really made it, or --behaviour estimate"
        estimates = [
            replace(one, limit=-math.inf, no_limit=no_limit, remedy=remedy) for one in estimates
        ]
    found = report_of(
        log, estimates, earned, delta=delta, truncated=truncated, highest_return=highest_return,
        bounds=bounds, rng=rng,
    )  # fmt: skip
    return replace(found, refuted=refuted)


def _refuted(log: Log, behaviour: Policy | None) -> str | None:
    """Why the behaviour, or `action_prob`, cannot have made the log, in words, if it cannot."""
    if behaviour is None:
        return misrecorded(log)
    common, (aligned,) = in_common(log, {"behaviour": behaviour})
    return contradiction(decisions(common), aligned.probs, common.states, common.actions)


def report_of(
    log: Log,
    estimates: Sequence[Estimate],
    earned: np.ndarray | None,
    *,
    delta: float,
    truncated: str,
    highest_return: float,
    bounds: Sequence[str],
    rng: np.random.Generator,
) -> OffPolicyReport:
    """Estimates of one policy with bounds, and less what each episode earned [E], if known."""
    gains = [] if earned is None else [_less(one, earned, highest_return) for one in estimates]
    return OffPolicyReport(
        rows=tuple(with_bounds(estimate, bounds, delta, rng) for estimate in estimates),
        differences=tuple(with_bounds(gain, bounds, delta, rng) for gain in gains),
        earned=math.nan if earned is None else float(earned.mean()),
        delta=delta,
        n_episodes=log.n_episodes,
        n_truncated=int(log.truncated.sum()),
        truncated=truncated,
    )


def _estimates(
    log: Log,
    policy: Policy,
    behaviour: Policy | None,
    discount: float,
    *,
    model: MDP | None,
    truncated: str,
    lowest_return: float | None,
) -> tuple[list[Estimate], np.ndarray | None]:
    """All six estimates, and what each episode earned [E], as far as it compares with them.

    Where a model completes cut episodes it must complete them for the behaviour too, so that it
    has to be a policy.
    """
    log, (target, *made) = _aligned(log, model, policy=policy, behaviour=behaviour)
    propensities = behaviour_probs(log, made[0] if made else None)
    if model is None:
        model = typical_model(Counts.from_log(log), discount)
    completed = truncated == "model"
    found = contributions(
        log, Candidates.of(target, *made) if completed else Candidates.of(target), propensities,
        discount, model=model, truncated=truncated, lowest_return=lowest_return,
    )  # fmt: skip
    earned = found.terms["is"][:, -1] if completed else returns(log, discount)
    return [found.estimate(name) for name in ESTIMATORS], earned if made or not completed else None


def _less(estimate: Estimate, earned: np.ndarray, highest_return: float) -> Estimate:
    """An estimate of ρ(π) − ρ(μ): each episode's contribution less what it earned [E].

    The behaviour's importance weights are 1, so that its own estimate is the mean return; most
    of the chance in the episodes cancels, and what rounding leaves is 0. No difference is below the
    contributions' limit less the highest return.
    """
    gains, limited = estimate.contributions - earned, estimate.limited - earned
    gains[np.abs(gains) <= rounding_of(earned)] = 0.0
    limit, reason, remedy = estimate.limit - highest_return, estimate.no_limit, estimate.remedy
    if estimate.limit > -math.inf and highest_return == math.inf:
        reason, remedy = "no highest_return was declared", "declare one"
    elif earned.max() > highest_return + slack(estimate.limit, highest_return):
        limit, remedy = -math.inf, "declare a higher one"
        most, declared = words.apart(float(earned.max()), highest_return)
        reason = f"a return of {most} is above the declared highest {declared}"
    return replace(
        estimate, value=float(gains.mean()), contributions=gains, limited=limited, limit=limit,
        no_limit=reason, remedy=remedy, reach=(-math.inf, math.inf),
    )  # fmt: skip


def _aligned(
    log: Log, model: MDP | None, **policies: Policy | None
) -> tuple[Log, tuple[np.ndarray, ...]]:
    """The log, and the rows [S, A] of the policies given, in common labels: the model's, if any."""
    given = {what: policy for what, policy in policies.items() if policy is not None}
    if model is None:
        log, aligned = in_common(log, given)
    else:
        states, actions = model.states, model.actions
        aligned = [policy.aligned(states, actions, what) for what, policy in given.items()]
        log = log.with_labels(states, actions)
    return log, tuple(policy.probs for policy in aligned)
