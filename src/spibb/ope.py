"""Off-policy evaluation: what a policy would earn, from a log that another policy made.

Notation: episode i visits x_0, a_0, r_0, x_1, …, a_{T−1}, r_{T−1}; the behaviour policy μ made it,
π is to be evaluated, and w_t = Π_{u≤t} π(a_u|x_u)/μ(a_u|x_u) is its importance weight. Sources:
Precup, Sutton & Singh 2000; Jiang & Li 2016; Thomas, Theocharous & Ghavamzadeh 2015 (HCOPE, HCPI);
Thomas & Brunskill 2016. Six estimators of ρ(π) = E_π[Σ_t γ^t r_t]:

    is      X_i = w_{T−1} Σ_t γ^t r_t
    pdis    X_i = Σ_t γ^t w_t r_t
    dr      X_i = V̂(x_0) + Σ_t γ^t w_t (r_t + γ V̂(x_{t+1}) − Q̂(x_t, a_t))
    wis     Σ_i w_i G_i / Σ_i w_i,  G_i = Σ_t γ^t r_t
    wpdis   Σ_t γ^t Σ_i w_t^i r_t^i / Σ_i w_t^i
    wdr     mean V̂(x_0) + Σ_t γ^t Σ_i w_t^i (r_t^i + γ V̂(x_{t+1}^i) − Q̂(x_t^i, a_t^i)) / Σ_i w_t^i

The first three are unbiased means of the X_i (dr for any model that was not fitted to the same
episodes); the weighted three are consistent, biased, and of lower variance. An episode that ended
before step t keeps its last weight in the normaliser Σ_i w_t^i. Q̂ and V̂ are the values of π in a
model.

**Truncated episodes.** By default ("recorded") nothing is earned beyond the cut: the estimate is
of the return of the recorded part, and what is lost is γ^T V(x_T) per cut episode. With "model",
γ V̂(x_T) is added to the last reward of a cut episode, in all six; this trusts the model there, and
an episode whose last successor is not recorded stays as it is.

**Missing mass.** Weights have mean 1 in truth; in a log that lacks what π would do their mean is
lower, and the rest counts as a return of 0: safe where 0 is the worst return, and the contrary
where returns are negative. Limited contributions make it count as `lowest_return` L: as if all
rewards were (1 − γ)L higher, is adds L(1 − w_{T−1}) and pdis adds
L(1 − (1 − γ)Σ_t γ^t w_t − γ^T w_{T−1}), both of mean 0. They cannot be below L, which exact bounds
need; but a limit far from the returns multiplies the chance in the weights. So estimates, Student's
t and BCa do without them, except in HCPI, which must not trust what the log lacks. dr fills the gap
with the model's values, and the model that is estimated here gives L to pairs it never saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spibb import checks
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.estimate import estimate_mdp, in_common
from spibb.evaluate import returns
from spibb.frozen import Frozen
from spibb.kernels import ope as kernels
from spibb.log import Log
from spibb.mdp import MDP
from spibb.mean_bounds import bca_bound, bernstein_bound, betting_bound, student_t_bound
from spibb.policy import Policy
from spibb.showing import Shown
from spibb.solve import evaluate

ESTIMATORS = ("is", "wis", "pdis", "wpdis", "dr", "wdr")
WEIGHTED = ("wis", "wpdis", "wdr")
MODELLED = ("dr", "wdr")
TRUNCATED = ("recorded", "model")
LIMITED = ("is", "pdis")
"""Estimators whose contributions can have a lower limit, so that Bernstein's bound applies."""
ROUNDING = 1e-12
"""Relative to a limit: what is below it by less is rounding."""
DECIMALS = 6
"""Recorded probabilities are compared to so many decimals, or as many as they have."""
FEW_EPISODES = 10
LARGE_SHARE = 0.5
FAR = 5.0
"""Standard errors by which a mean weight must miss 1 to be worth a warning, and"""
LEAST_FAR = 0.05
"""by how much: probabilities may be rounded."""


@dataclass(frozen=True, eq=False)
class Estimate(Frozen):
    """One estimate of ρ(π): `value` is the mean of the `contributions` [E] of the episodes.

    For a weighted estimator the contributions are its linearisation, θ + E·ω_i·(G_i − θ) for wis
    and the same at every step for the others: their mean is the estimate, and their spread its
    standard error (delta method), which that of E·ω_i·G_i is not. `weights` [E] are the importance
    weights of whole episodes, and `effective_sample_size` is Kish's (Σw)²/Σw². `warning` says when
    the estimate rests on a handful of episodes. `limited` [E] are contributions of the same mean in
    truth, of which none of any episode, seen or not, can be below `limit`: see the module. Where
    nothing is known it is −∞, `no_limit` says why, and `remedy` what helps.
    """

    name: str
    value: float
    contributions: np.ndarray
    limited: np.ndarray
    weights: np.ndarray
    effective_sample_size: float
    warning: str | None = None
    limit: float = -math.inf
    no_limit: str = "no limit was declared"
    remedy: str = "declare a lower one"

    @property
    def pessimistic(self) -> Estimate:
        """The estimate by the limited contributions: what the log lacks counts as the limit."""
        return replace(self, value=float(self.limited.mean()), contributions=self.limited)


@dataclass(frozen=True)
class LowerBound:
    """ρ(π) ≥ value with probability 1 − δ under the assumption; `refusal` says why there is none.

    `value` is NaN where the bound is refused.
    """

    name: str
    value: float
    delta: float
    assumption: str
    refusal: str | None = None


@dataclass(frozen=True, eq=False)
class BoundedEstimate:
    """An estimate with its lower bounds."""

    estimate: Estimate
    bounds: tuple[LowerBound, ...]


@dataclass(frozen=True, eq=False)
class OffPolicyReport(Shown):
    """All estimators with all bounds of one policy on one log.

    `n_truncated` episodes of the `n_episodes` were cut; `truncated` is the rule applied to them.
    `earned` is the mean return of the log, and `differences` are the estimates less that, episode
    by episode, with bounds of their own: what the policy gains over the one that made the log. The
    rule "model" completes cut episodes by each policy's own values, and so has differences only
    where the behaviour is given as a policy.
    """

    rows: tuple[BoundedEstimate, ...]
    differences: tuple[BoundedEstimate, ...]
    earned: float
    delta: float
    n_episodes: int
    n_truncated: int
    truncated: str

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
        """What the estimates suffer from, if anything; the same for all."""
        return self.rows[0].estimate.warning


@checks.takes(
    log=Log, policy=Policy, behaviour=(type(None), Policy), model=(type(None), MDP),
    rng=np.random.Generator,
)  # fmt: skip
def off_policy_estimates(  # noqa: PLR0913 (one parameter per assumption)
    log: Log,
    policy: Policy,
    behaviour: Policy | None = None,
    discount: float = 0.95,
    *,
    delta: float = 0.05,
    model: MDP | None = None,
    truncated: str = "recorded",
    lowest_return: float = 0.0,
    highest_return: float = math.inf,
    bounds: Sequence[str] = ("bernstein", "betting", "student-t", "bca"),
    rng: np.random.Generator,
) -> OffPolicyReport:
    """Evaluate a policy on a log: every estimator, with lower bounds at failure rate `delta`.

    `bounds` leaves out some: BCa resamples all episodes, which takes long with 100,000 of them.
    `behaviour` made the log; None takes the log's `action_prob`. `model` serves dr, wdr and the
    rule "model"; None estimates it from the same log, which costs dr its unbiasedness (by O(1/E)).
    `lowest_return` is declared, not seen: no return is below it (with pdis: no reward is below
    (1 − γ) times it). `highest_return` is declared too: exact bounds of a difference need it.
    Nothing here knows how `policy` was made: trained on this very log, its estimates flatter it.

    Parameters:
        log: the episodes.
        policy: what is evaluated.
        behaviour: what made the log.
        discount: γ in [0, 1).
        delta: failure probability of each bound.
        model: Q̂ and V̂ of the doubly robust estimators are its values.
        truncated: what a cut episode counts: "recorded" or "model".
        lowest_return: no return is below it.
        highest_return: none is above it.
        bounds: names of the lower bounds.
        rng: the source of random numbers.

    Returns:
        Six estimates with their bounds, by name, and their differences to what the log earned.

    >>> report = spibb.off_policy_estimates(log, baseline, baseline, 0.9,
    ...                                     rng=np.random.default_rng(0), bounds=("student-t",))
    >>> round(report["is"].estimate.value, 9)
    0.6
    """
    checks.discount(discount)
    checks.delta(delta)
    checks.number("lowest_return", lowest_return, -math.inf, math.inf, "()")
    checks.number("highest_return", highest_return, lowest_return, math.inf, "(]")
    for bound in checks.several("bounds", bounds, '("student-t",)'):
        checks.choice("bound", bound, BOUNDS)
    log, (target, *made) = _aligned(log, model, policy=policy, behaviour=behaviour)
    propensities = behaviour_probs(log, made[0] if made else None)
    if model is None:
        model = pessimistic_model(Counts.from_log(log), discount, lowest_return)
    completed = truncated == "model"
    found = contributions(
        log, Candidates.of(target, *made) if completed else Candidates.of(target), propensities,
        discount, model=model, truncated=truncated, lowest_return=lowest_return,
    )  # fmt: skip
    earned = found.terms["is"][:, -1] if completed else returns(log, discount)
    estimates = [found.estimate(name) for name in ESTIMATORS]
    comparable = bool(made) or not completed
    gains = [_less(estimate, earned, highest_return) for estimate in estimates if comparable]
    return OffPolicyReport(
        rows=tuple(_with_bounds(estimate, bounds, delta, rng) for estimate in estimates),
        differences=tuple(_with_bounds(gain, bounds, delta, rng) for gain in gains),
        earned=float(earned.mean()) if comparable else math.nan,
        delta=delta,
        n_episodes=log.n_episodes,
        n_truncated=int(log.truncated.sum()),
        truncated=truncated,
    )


def _less(estimate: Estimate, earned: np.ndarray, highest_return: float) -> Estimate:
    """An estimate of ρ(π) − ρ(μ): each episode's contribution less what it earned [E].

    The behaviour's importance weights are 1, so that its own estimate is the mean return; most
    of the chance in the episodes cancels. No difference is below the contributions' limit less the
    highest return.
    """
    gains, limited = estimate.contributions - earned, estimate.limited - earned
    limit, reason, remedy = estimate.limit - highest_return, estimate.no_limit, estimate.remedy
    if estimate.limit > -math.inf and earned.max() > highest_return * (1 + ROUNDING):
        limit, remedy = -math.inf, "declare a higher one"
        reason = f"a return of {earned.max():g} is above the declared highest {highest_return:g}"
    elif estimate.limit > -math.inf and highest_return == math.inf:
        reason, remedy = "no highest_return was declared", "declare one"
    return replace(
        estimate, value=float(gains.mean()), contributions=gains, limited=limited, limit=limit,
        no_limit=reason, remedy=remedy,
    )  # fmt: skip


def pessimistic_model(counts: Counts, discount: float, lowest_return: float) -> MDP:
    """M̂ with pairs that were never seen worth `lowest_return`."""
    return estimate_mdp(counts, discount, unseen="pessimistic", v_max=-lowest_return)


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


def behaviour_probs(log: Log, behaviour: np.ndarray | None) -> np.ndarray:
    """μ(a_j|x_j) of every logged transition [N]: of a policy [S, A], or the log's own column."""
    if behaviour is None:
        if log.action_prob is None:
            raise InputError(
                "the log has no column 'action_prob': give the behaviour policy that made it"
            )
        check_recorded(log)
        return log.action_prob
    probs: np.ndarray = behaviour[log.state, log.action]
    if (probs <= 0).any():
        raise _impossible(log, probs <= 0)
    if wrong := disagreement(log, behaviour):
        raise InputError(f"{wrong}: give the policy that made the log, or none, to use action_prob")
    return probs


def check_recorded(log: Log) -> None:
    """Refuse a column `action_prob` that no policy can have: see `_sums`."""
    assert log.action_prob is not None
    at_most, at_least = _sums(log, log.action_prob)
    slack = max(0.01, len(log.actions) * _half_a_digit(log.action_prob))
    for wrong, sums, limit in (
        (at_most > 1 + slack, at_most, "at most 1"),
        (at_least < 1 - slack, at_least, "1, as all actions were taken there"),
    ):
        if wrong.any():
            x = int(np.argmax(np.where(wrong, np.abs(sums - 1), 0.0)))
            raise InputError(
                f"action_prob of state {log.states[x]!r} sums to {sums[x]:.4g} over its actions, "
                f"expected {limit}: check the column"
            )


def _sums(log: Log, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the probabilities of a state's actions sum to [S]: at most 1, and at least 1.

    1. The least that each pair has: no more than 1 in sum, whatever else the policy depends on.
    2. The same where every action was taken, always with one probability; elsewhere 1.
    """
    shape = len(log.states), len(log.actions)
    least, largest = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(least, (log.state, log.action), column)
    np.maximum.at(largest, (log.state, log.action), column)
    one = (largest - least <= 2 * _half_a_digit(column)) & (largest > -np.inf)
    sums = np.where(least < np.inf, least, 0.0).sum(axis=1)
    return sums, np.where(one.all(axis=1), sums, 1.0)


def disagreement(log: Log, policy: np.ndarray) -> str | None:
    """Where the log's `action_prob` contradicts a policy [S, A] that is said to have made it.

    Numbers may be rounded to the decimals that the column has, but at least two.
    """
    if log.action_prob is None:
        return None
    claimed = policy[log.state, log.action]
    wrong = np.abs(claimed - log.action_prob) > _half_a_digit(log.action_prob)
    if not wrong.any():
        return None
    j = int(np.argmax(wrong))
    return (
        f"action_prob is not the policy's probability in {int(wrong.sum())} of {len(log)} rows "
        f"(state {log.states[log.state[j]]!r}, action {log.actions[log.action[j]]!r}: "
        f"{log.action_prob[j]:.4g} in the log, {claimed[j]:.4g} in the policy)"
    )


def _half_a_digit(column: np.ndarray) -> float:
    """Half of the last decimal that a column of probabilities has: of the second to the sixth."""
    for decimals in range(2, DECIMALS):
        if np.allclose(column, np.round(column, decimals), rtol=0, atol=1e-12):
            return 0.5 * 10.0**-decimals + 1e-9
    return 0.5 * 10.0**-DECIMALS


def _impossible(log: Log, bad: np.ndarray) -> InputError:
    """The error for logged actions that the behaviour policy never takes; names the commonest."""
    pair = log.state[bad].astype(np.int64) * len(log.actions) + log.action[bad]
    distinct, rows = np.unique(pair, return_counts=True)
    x, a = divmod(int(distinct[np.argmax(rows)]), len(log.actions))
    others = f" ({int(bad.sum())} rows in {len(distinct)} such pairs)" if len(distinct) > 1 else ""
    return InputError(
        f"behaviour gives probability 0 to action {log.actions[a]!r} in state {log.states[x]!r}, "
        f"which the log takes in {int(rows.max())} rows{others}: give the policy that made the "
        "log, or drop those episodes"
    )


# ---- estimators ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidates:
    """K policies side by side: `probs` [S, A, K]."""

    probs: np.ndarray

    @classmethod
    def of(cls, *policies: np.ndarray) -> Candidates:
        """Any policies, each [S, A]."""
        return cls(np.stack(policies, axis=2))

    @classmethod
    def mixtures(cls, trained: np.ndarray, baseline: np.ndarray, alphas: np.ndarray) -> Candidates:
        """(1 − α) π_t + α π_b for every α [K]."""
        return cls(trained[:, :, None] * (1 - alphas) + baseline[:, :, None] * alphas)

    def values(self, model: MDP | None) -> tuple[np.ndarray, np.ndarray]:
        """Q̂ [S, A, K] and V̂ [S + 1, K] of every policy in a model; the last row of V̂ is 0.

        Without a model all values are 0.
        """
        n_states, _, n_lanes = self.probs.shape
        q, v = np.zeros(self.probs.shape), np.zeros((n_states + 1, n_lanes))
        if model is None:
            return q, v
        for k in range(n_lanes):
            solution = evaluate(model, np.ascontiguousarray(self.probs[:, :, k]))
            q[:, :, k], v[:n_states, k] = solution.q, solution.v
        return q, v


@dataclass(frozen=True, eq=False)
class Contributions:
    """What every episode adds to every estimate of every candidate.

    `weights` [E, K] are importance weights of whole episodes; `terms` holds an array [E, K] per
    estimator, and `limited` the same with missing mass at the limit, for those that have one.
    `lowest_return` is the limit that was declared, and `no_limits` says by estimator why
    its contributions can be below it; the others cannot.
    """

    weights: np.ndarray
    terms: Mapping[str, np.ndarray]
    limited: Mapping[str, np.ndarray]
    lowest_return: float
    no_limits: Mapping[str, str]

    def estimate(self, name: str, lane: int = 0) -> Estimate:
        """The estimate of one candidate."""
        terms = self.terms[checks.choice("estimator", name, tuple(self.terms))]
        weights = self.weights[:, lane].copy()
        size = effective_sample_size(weights)
        return Estimate(
            name=name,
            value=float(terms[:, lane].mean()),
            contributions=terms[:, lane].copy(),
            limited=self.limited.get(name, terms)[:, lane].copy(),
            weights=weights,
            effective_sample_size=size,
            warning=_warning(weights, size),
            limit=-math.inf if name in self.no_limits else self.lowest_return,
            no_limit=self.no_limits.get(name, ""),
            remedy="declare a lower one" if name in LIMITED else "use is or pdis",
        )


def contributions(
    log: Log,
    candidates: Candidates,
    propensities: np.ndarray,
    discount: float,
    *,
    names: Sequence[str] = ESTIMATORS,
    model: MDP | None = None,
    truncated: str = "recorded",
    lowest_return: float = 0.0,
) -> Contributions:
    """All wanted estimators of all candidates: one pass over the log, two more for weighted ones.

    `propensities` [N] are the behaviour's probabilities of the logged actions. Candidates, model
    and log share their labels. A weighted estimate is NaN where no episode has any weight.
    """
    for name in names:
        checks.choice("estimator", name, ESTIMATORS)
    _check_model(model, discount, truncated, names)
    _check_shapes(log, candidates, propensities, model)
    checks.discount(discount)
    checks.number("lowest_return", lowest_return, -math.inf, math.inf, "()")
    sweep = _Sweep(log, candidates, propensities, discount, model, truncated, lowest_return)
    return Contributions(
        sweep.plain[0], {name: _TERMS[name](sweep) for name in names},
        {name: _LIMITED[name](sweep, lowest_return) for name in names if name in LIMITED},
        lowest_return,
        no_limits(log, discount, lowest_return) | _no_limits_beyond(sweep),
    )  # fmt: skip


def no_limits(log: Log, discount: float, lowest: float) -> dict[str, str]:
    """Why an estimator's contributions can be below a declared limit L on returns, by estimator.

    is cannot: L + w(G − L) with G ≥ L. Nor can pdis if no reward is below (1 − γ)L. dr can,
    whatever is declared: an error of its model is multiplied by weights that nothing limits.
    """
    found = dict.fromkeys(WEIGHTED, "it is biased, and not the mean of independent terms")
    found["dr"] = "an error of its model, times a weight, can be below any limit"
    low = float(returns(log, discount).min())
    if low < lowest - ROUNDING * abs(lowest):
        found["is"] = f"the log has a return of {low:g}, below the declared {lowest:g}"
    reward, least = float(log.reward.min()), (1 - discount) * lowest
    if reward < least - ROUNDING * abs(least):
        found["pdis"] = (
            f"the log has a reward of {reward:g}, below (1 − γ) times the declared {lowest:g}"
        )
    return found


def _no_limits_beyond(sweep: _Sweep) -> dict[str, str]:
    """The same for what a model adds beyond the cut of an episode."""
    low = float(sweep.tables[2].min())
    if sweep.truncated == "recorded" or low >= sweep.lowest_return:
        return {}
    reason = f"the model completes cut episodes with {low:g}, below {sweep.lowest_return:g}"
    return dict.fromkeys(LIMITED, reason)


def _check_model(model: MDP | None, discount: float, truncated: str, names: Iterable[str]) -> None:
    checks.choice("truncated", truncated, TRUNCATED)
    if model is None:
        needy = [f"estimator {name!r}" for name in names if name in MODELLED]
        needy += ["truncated='model'"] if truncated == "model" else []
        if needy:
            raise InputError(f"{needy[0]} needs a model and none was given: give an MDP")
    elif model.discount != discount:
        raise InputError(
            f"the model's discount is {model.discount:g} and the estimate's is {discount:g}: "
            "use one discount"
        )


def _check_shapes(
    log: Log, candidates: Candidates, propensities: np.ndarray, model: MDP | None
) -> None:
    """What the kernels index must be there: they read without a check."""
    shape = len(log.states), len(log.actions)
    if candidates.probs.shape[:2] != shape or (model is not None and model.shape != shape):
        raise InputError(
            f"the policies are {candidates.probs.shape[:2]} and the log's labels {shape}: give "
            "policies, model and log the same labels"
        )
    checks.same_length(state=log.state, propensities=propensities)


@dataclass(frozen=True, eq=False)
class _Sweep:
    """Passes of the kernels over one log, each made when first needed."""

    log: Log
    candidates: Candidates
    propensities: np.ndarray
    discount: float
    model: MDP | None
    truncated: str
    lowest_return: float

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """π, Q̂ [S, A, K] and V̂ [S + 1, K]."""
        return (self.candidates.probs, *self.candidates.values(self.model))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of steps T of each episode [E]."""
        return np.diff(self.log.episode_starts)

    @cached_property
    def beyond(self) -> np.ndarray:
        """The state whose value completes each episode [E]; S, worth 0, where nothing does."""
        nothing, last = len(self.log.states), self.log.episode_starts[1:] - 1
        following = self.log.next_state[last]
        completed = self.log.truncated[last] & (following >= 0) & (self.truncated == "model")
        return np.where(completed, following, nothing)

    @cached_property
    def episodes(self) -> tuple[np.ndarray, ...]:
        """The columns of the log, as the kernels take them."""
        log = self.log
        following = np.where(log.next_state < 0, len(log.states), log.next_state)
        following[log.episode_starts[1:] - 1] = self.beyond
        return (log.episode_starts, log.state, log.action, log.reward, following, self.beyond,
                1 / self.propensities)  # fmt: skip

    @cached_property
    def powers(self) -> np.ndarray:
        """γ^t [H, 1] for every step of the longest episode."""
        return self.discount ** np.arange(self.lengths.max(), dtype=np.float64)[:, None]

    @cached_property
    def completed(self) -> np.ndarray:
        """The returns with what the model adds beyond a cut [E, K]."""
        v = self.tables[2][self.beyond]
        recorded = returns(self.log, self.discount)[:, None]
        return np.asarray(recorded + self.final_powers * v)

    @cached_property
    def final_powers(self) -> np.ndarray:
        """γ^T [E, 1]."""
        return np.asarray(self.discount * self.powers[self.lengths - 1])

    @cached_property
    def plain(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Episode weights, pdis and dr, each [E, K]."""
        return self._centred(0.0)

    def decisions(self, less: float) -> np.ndarray:
        """Σ_t γ^t w_t (r_t − c) [E, K], with what the model adds."""
        return self._centred(less)[1] if less else self.plain[1]

    def _centred(self, less: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = len(self.powers), self.candidates.probs.shape[2]
        centre = np.zeros((2, *shape))
        centre[0] = less
        return self._forward(np.broadcast_to(self.powers, shape).copy(), centre)

    @cached_property
    def normalised(self) -> tuple[np.ndarray, np.ndarray]:
        """wpdis and wdr, linearised, each [E, K].

        With ω_t^i = w_t^i / Σ_i w_t^i and y the reward (wpdis) or the model error (wdr) of a step,
        X_i = [V̂(x_0^i)] + Σ_t γ^t (ȳ_t + E ω_t^i (y_t^i − ȳ_t)), ȳ_t = Σ_i ω_t^i y_t^i. After its
        end an episode has y = 0 and keeps its last weight: that is the term in `rest`.
        """
        sums = np.zeros((3, len(self.powers), self.candidates.probs.shape[2]))
        kernels.step_sums(self.episodes, self.tables, self.discount, sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            means, scale = sums[1:] / sums[0], self.powers * len(self.lengths) / sums[0]
            weights, *centred = self._forward(scale, means)
            later = np.flip(np.cumsum(np.flip(scale * means, axis=1), axis=1), axis=1)
            rest = np.concatenate([later, np.zeros_like(later[:, :1])], axis=1)[:, self.lengths]
            both = centred - weights * rest + (self.powers * means).sum(axis=1)[:, None]
        return both[0], both[1]

    def _forward(
        self, scale: np.ndarray, centre: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = len(self.lengths), scale.shape[1]
        out = np.empty(shape), np.empty(shape), np.empty(shape)
        kernels.forward(self.episodes, self.tables, self.discount, scale, centre, out)
        return out


def _wis(sweep: _Sweep) -> np.ndarray:
    """θ + E ω_i (G_i − θ) with ω_i = w_i / Σw and θ = Σ_i ω_i G_i."""
    weights = sweep.plain[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = weights / weights.sum(axis=0)
        value = (shares * sweep.completed).sum(axis=0)
        return np.asarray(value + len(shares) * shares * (sweep.completed - value))


def _is(sweep: _Sweep, low: float = 0.0) -> np.ndarray:
    """L + w (G − L)."""
    return low + sweep.plain[0] * (sweep.completed - low)


def _pdis(sweep: _Sweep, low: float = 0.0) -> np.ndarray:
    """L + Σ_t γ^t w_t (r_t − (1 − γ)L) − γ^T w_{T−1} L: the end is absorbing and pays −(1 − γ)L."""
    shifted = sweep.decisions((1 - sweep.discount) * low)
    return np.asarray(low + shifted - low * sweep.final_powers * sweep.plain[0])


_TERMS: Mapping[str, Callable[[_Sweep], np.ndarray]] = {
    "is": _is,
    "wis": _wis,
    "pdis": _pdis,
    "wpdis": lambda sweep: sweep.normalised[0],
    "dr": lambda sweep: sweep.plain[2],
    "wdr": lambda sweep: sweep.normalised[1],
}
_LIMITED: Mapping[str, Callable[[_Sweep, float], np.ndarray]] = {"is": _is, "pdis": _pdis}


def effective_sample_size(weights: np.ndarray) -> float:
    """Kish's (Σw)²/Σw² of weights [E]: 0 where there is no weight at all, or where it overflows."""
    largest = weights.max(initial=0.0)
    if not 0 < largest < math.inf:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def _warning(weights: np.ndarray, size: float) -> str | None:
    """Say when an estimate rests on a handful of episodes, or on wrong probabilities."""
    n = len(weights)
    if not np.isfinite(weights).all():
        return "the importance weights overflow: the episodes are too long for these ratios"
    if size == 0:
        return f"none of the {n} episodes is possible under the policy: no evidence from the log"
    share = weights.max() / weights.sum()
    if share > LARGE_SHARE and n > 1:
        return f"one of the {n} episodes carries {share:.0%} of the weight: do not rely on it"
    if size < FEW_EPISODES:
        return f"the estimate rests on about {size:.1f} of {n} episodes: do not rely on it"
    off = abs(float(weights.mean()) - 1)
    if off > max(LEAST_FAR, FAR * float(weights.std()) / math.sqrt(n)):
        return (
            f"the mean importance weight is {weights.mean():.3g}, and should be 1: the behaviour's "
            "probabilities are wrong, or the log lacks what the policy does"
        )
    return None


def _limit(estimate: Estimate) -> float:
    """What no contribution can be below; where that is not known, exact bounds say nothing."""
    if estimate.limit == -math.inf:
        raise InputError(
            f"{' and '.join(EXACT)} need a limit that no contribution can be below, and "
            f"{estimate.name!r} has none: {estimate.no_limit}; {estimate.remedy}, or use "
            "another bound"
        )
    return estimate.limit


def _seen(estimate: Estimate) -> np.ndarray:
    """The contributions; without any weight they say nothing of the policy."""
    if estimate.effective_sample_size == 0 and estimate.warning:
        raise InputError(estimate.warning)
    return estimate.contributions


_BOUNDS: Mapping[str, Callable[[Estimate, float, np.random.Generator], float]] = {
    "bernstein": lambda estimate, delta, _: max(
        bernstein_bound(estimate.limited, delta, lowest=_limit(estimate)), estimate.limit
    ),
    "betting": lambda estimate, delta, _: betting_bound(
        estimate.limited, delta, lowest=_limit(estimate)
    ),
    "student-t": lambda estimate, delta, _: student_t_bound(_seen(estimate), delta),
    "bca": lambda estimate, delta, rng: bca_bound(_seen(estimate), delta, rng=rng),
}
BOUNDS = tuple(_BOUNDS)
EXACT = ("bernstein", "betting")
"""Bounds that hold in samples of any size, given a limit that no contribution can be below."""
_ASSUMPTIONS: Mapping[str, str] = {
    "bernstein": "independent episodes, none of which can contribute less than {lowest:g}",
    "betting": "independent episodes, none of which can contribute less than {lowest:g}",
    "student-t": "independent episodes, and a mean that is close to normal",
    "bca": "independent episodes, enough of them to stand for what was not seen",
}


def lower_bound(
    estimate: Estimate, bound: str, delta: float, *, rng: np.random.Generator
) -> LowerBound:
    """A lower bound on ρ(π) that fails with probability `delta`: 0.9 means 10 % confidence.

    Only "bca" draws from `rng`.
    """
    checks.choice("bound", bound, BOUNDS)
    assumption = _ASSUMPTIONS[bound].format(lowest=estimate.limit)
    return LowerBound(bound, _BOUNDS[bound](estimate, delta, rng), delta, assumption)


def _with_bounds(
    estimate: Estimate, names: Sequence[str], delta: float, rng: np.random.Generator
) -> BoundedEstimate:
    """Bounds of an estimate; one that does not apply says why instead of stopping the rest."""
    bounds = []
    for name in names:
        try:
            found = lower_bound(estimate, name, delta, rng=rng)
        except InputError as error:
            found = LowerBound(name, math.nan, delta, "", refusal=str(error))
        bounds.append(found)
    return BoundedEstimate(estimate, tuple(bounds))
