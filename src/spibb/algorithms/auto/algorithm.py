"""A policy chosen by the percentile of its gain: the log itself says how much to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spibb import checks
from spibb.algorithms.auto.cautious import CAUTIOUS, cautious_policy
from spibb.algorithms.auto.own_order import OrderedProblem
from spibb.algorithms.auto.result import AutoImprovement
from spibb.algorithms.base import Algorithm
from spibb.algorithms.candidate import Candidate, OffPolicyValue, surest
from spibb.algorithms.problem import AS_BASELINE, TREATMENTS, Problem
from spibb.algorithms.threshold import SHARES, Threshold, solve_each
from spibb.assurance.posterior import draws_for, gains_over, joint_level, sure_gain
from spibb.bounds.means import student_t_bound
from spibb.counts import Counts
from spibb.episodes.departures import changed_states
from spibb.evaluate import exact_value
from spibb.mdp import MDP
from spibb.ope import Candidates, Estimate, contributions
from spibb.policy import Policy
from spibb.solve import METHODS, Solution, evaluate
from spibb.words import at_least, number

KINDS = (CAUTIOUS, *SHARES)
SWEPT_N_WEDGES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
"""Of a sweep over thresholds alone."""
FEWEST_SHARES = 2
"""δ is divided into at least so many parts: the log that evaluates a policy also trained it."""
FEARED_SHARES = 3
"""δ is first divided by this where the log has shown disasters: models know least about these."""
JUDGED_FROM = 25
"""Episodes below which no probability is stated."""
FEWEST_REWARDS = 5
"""Fewest effective rewards that carry the return before a candidate is trusted."""
DIGITS = 6
"""Of the number of telling rewards: those beyond are rounding, and depend on the unit."""
INTERVAL = 0.95
"""Of the intervals in a sweep."""
ESTIMATOR = "wpdis"
"""The off-policy estimator of a sweep: no model, so that it can contradict M̂."""


@dataclass(frozen=True)
class Auto(Algorithm):
    """The candidate whose gain has the largest lower limit (percentile criterion, Equation 1):

    argmax_π q_ℓ(ρ(π, M) − ρ(π_b, M) | D),  and the baseline if that is not above −ζ,

    where π ranges over the candidates, q is the quantile, and M is drawn from the posterior of
    `assurance.posterior` (`draws`, `seed`). ℓ is at most δ/2, and the level at which the quantiles
    of all candidates that are above −ζ at δ/2 hold together with probability 1 − δ
    (`posterior.joint_level`). Where the log has shown disasters (`assurance.disasters`), δ/3 takes
    the place of δ.

    The first candidate is the *cautious* policy (`auto.cautious`): in every state the
    baseline's row without its worst actions, if the advantage outweighs its uncertainty. The
    others are Π_≤b-SPIBB, or what `kinds` names, at every N∧ of `n_wedges`.

    1. δ is divided because the log that trained the policy also evaluates it, and because the best
       of many looks better than it is.
    2. `kinds` may have several: all their candidates compete.
    3. Of candidates with equal quantiles the one with the largest N∧ is taken.
    4. Quantiles are those of finitely many draws: `draws`, or 2 k/δ for k candidates if that is
       more.
    5. Where fewer than five rewards make the whole difference (two clicks in thirty rows), the
       posterior cannot know their spread, and the baseline is kept.
    6. `PiBSpibb(n_wedge="auto")` and `PiLeqBSpibb(n_wedge="auto")` are this with one kind.

    **Guarantee.** None: the quantile depends on a prior, and Theorem 2 requires a fixed N∧.

    Parameters:
        delta: δ, failure rate that the candidates share.
        zeta: ζ, loss per episode that is tolerated.
        n_wedges: the thresholds that are tried, for "pi-b" and "pi-leq-b".
        kinds: the candidates: "cautious", "pi-b", "pi-leq-b".
        draws: models drawn given the log, at least.
        seed: seed of the draws.
        unseen: value of pairs that the log never has, as in `PiBSpibb`.
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.

    >>> result = spibb.Auto().improve(problem)
    >>> result.policy.row("severe")
    {'treat': 0.6, 'wait': 0.4}
    >>> result.reason
    'fewer than 5 rewards of the log differ from the usual one, ...: the baseline is kept'
    """

    name: ClassVar[str] = "auto"
    answers_at_delta: ClassVar[bool] = True
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 requires N∧ to be fixed before the log is seen; here the log chose the policy. "
        "See the verdict instead"
    )

    delta: float = 0.05
    zeta: float = 0.0
    n_wedges: tuple[float, ...] = (1, 5, 10, 20)
    kinds: tuple[str, ...] = (CAUTIOUS, "pi-leq-b")
    draws: int = 1000
    seed: int = 0
    unseen: str = AS_BASELINE
    method: str = "auto"

    def __post_init__(self) -> None:
        checks.delta(self.delta)
        checks.number("zeta", self.zeta, 0, math.inf, "[)")
        checks.positive_field(self, "draws")
        checks.choice("unseen", self.unseen, TREATMENTS)
        checks.choice("method", self.method, METHODS)
        checks.seed(self.seed)
        for n_wedge in checks.several("n_wedges", self.n_wedges, "(5, 10, 20)"):
            checks.number("n_wedges", n_wedge, 0, math.inf, "(]")
        for kind in checks.several("kinds", self.kinds, '("pi-b",)'):
            checks.choice("kinds", kind, KINDS)

    @classmethod
    def over_thresholds(cls, delta: float = 0.05) -> Auto:
        """Π_b- and Π_≤b-SPIBB at ten N∧, and nothing else."""
        return cls(delta=delta, n_wedges=SWEPT_N_WEDGES, kinds=tuple(SHARES))

    def improve(self, problem: Problem) -> AutoImprovement:
        """Evaluate every candidate, and return the one with the largest lower limit of the gain."""
        ordered = OrderedProblem.of(problem)
        named, policies = self._fitted(problem, ordered)
        sweep, rho = self._judged(problem, ordered, named, policies)
        chosen = self.choose(problem, sweep)
        place = next((k for k, candidate in enumerate(sweep, 1) if candidate is chosen), 0)
        rows = policies[place - 1] if place else problem.baseline.probs
        return AutoImprovement.from_solution(
            *self._solution(problem, chosen, rows), problem, self, sweep=sweep, chosen=chosen,
            reason=self._reason(problem, chosen, sweep), values_in_models=rho[:, [place, 0]],
            policies=policies,
        )  # fmt: skip

    def sweep(self, problem: Problem) -> tuple[Candidate, ...]:
        """Every candidate with what the log says about it, without choosing one."""
        ordered = OrderedProblem.of(problem)
        return self._judged(problem, ordered, *self._fitted(problem, ordered))[0]

    def candidates(self, problem: Problem) -> tuple[list[tuple[str, float]], np.ndarray]:
        """The algorithms with their N∧ (NaN for the cautious one), and their policies [M, S, A]."""
        return self._fitted(problem, OrderedProblem.of(problem))

    def _fitted(
        self, problem: Problem, ordered: OrderedProblem
    ) -> tuple[list[tuple[str, float]], np.ndarray]:
        named: list[tuple[str, float]] = []
        policies: list[np.ndarray] = []
        for kind in self.kinds:
            if kind == CAUTIOUS:
                named.append((kind, math.nan))
                policies.append(self._cautious(ordered))
                continue
            n_wedges = [float(n) for n in sorted(self.n_wedges)]
            named += [(kind, n) for n in n_wedges]
            # one by one: the kernel for many saves milliseconds here, and takes seconds to compile
            each = solve_each([self._threshold(kind, n) for n in n_wedges], problem)
            policies += [solution.probs for solution, _ in each]
        return named, np.stack(policies)

    def _cautious(self, ordered: OrderedProblem) -> np.ndarray:
        # other models than those that judge, so that no draw is both
        rng = np.random.default_rng([self.seed, 1])
        return ordered.restored(cautious_policy(ordered.belief, ordered.baseline, rng))

    def _threshold(self, kind: str, n_wedge: float) -> Threshold:
        return Threshold(SHARES[kind], n_wedge, self.unseen, self.method)

    def _solution(
        self, problem: Problem, chosen: Candidate | None, rows: np.ndarray
    ) -> tuple[Solution, np.ndarray]:
        """Values of the choice, and where it copies the baseline."""
        if chosen is None:
            return self._threshold("pi-b", math.inf).solve(problem)
        if chosen.algorithm != CAUTIOUS:
            return self._threshold(chosen.algorithm, chosen.n_wedge).solve(problem)
        kept = (rows == problem.baseline.probs).all(axis=1, keepdims=True)
        found = evaluate(problem.models[self.unseen], rows, method=self.method)
        return found, kept | (problem.counts.pairs == 0)

    def choose(self, problem: Problem, sweep: Sequence[Candidate]) -> Candidate | None:
        """The candidate that the criterion takes; None keeps the baseline."""
        if telling_rewards(problem.counts) < FEWEST_REWARDS:
            return None
        moving = [candidate for candidate in sweep if candidate.states_changed]
        best = surest(moving)
        return best if best is not None and self._allowed(best) else None

    def _allowed(self, candidate: Candidate) -> bool:
        return candidate.gain > 0 and candidate.lower > -self.zeta

    def _judged(
        self, problem: Problem, ordered: OrderedProblem, named: Sequence[tuple[str, float]],
        policies: np.ndarray,
    ) -> tuple[tuple[Candidate, ...], np.ndarray]:  # fmt: skip
        """Evaluate all distinct policies, and the baseline, in the same models.

        Returns the candidates, and ρ of the baseline and of each candidate in each model.
        """
        baseline = problem.baseline
        flat, where = np.unique(policies.reshape(len(policies), -1), axis=0, return_inverse=True)
        distinct = flat.reshape(-1, *baseline.probs.shape)
        changed = changed_states(distinct, baseline.probs).sum(axis=1)
        moves = changed > 0
        delta = self.delta / (FEARED_SHARES if ordered.belief.disasters.size else 1)
        least = delta / max(int(moves.sum()), FEWEST_SHARES)
        rho = self._drawn(ordered, distinct, draws_for(least, self.draws))
        gains = gains_over(rho[:, 1:], rho[:, 0])
        level = self._level(gains[:, moves], delta)
        tail = (1 - INTERVAL) / 2
        lower = sure_gain(gains, level).tolist()
        low, high = np.quantile(gains, [tail, 1 - tail], axis=0).tolist()
        mean = gains.mean(axis=0).tolist()
        probability = (gains >= -self.zeta).mean(axis=0).tolist()
        if problem.n_episodes < JUDGED_FROM:
            probability = [None] * len(distinct)
        value = _values(problem.model, distinct)
        off_policy = _off_policy(problem, distinct)
        where = where.reshape(-1)
        candidates = tuple(
            Candidate(
                kind, n_wedge, value[k], probability[k], mean[k], (low[k], high[k]),
                lower[k], int(changed[k]), off_policy[k], level,
            )
            for (kind, n_wedge), k in zip(named, where.tolist())
        )  # fmt: skip
        return candidates, rho[:, np.append(0, where + 1)]

    def _level(self, gains: np.ndarray, delta: float) -> float:
        """ℓ for gains [D, M]: what cannot be chosen at the largest level need not hold."""
        largest = delta / FEWEST_SHARES
        hopeful = sure_gain(gains, largest) > -self.zeta
        return min(joint_level(gains[:, hopeful], delta), largest)

    def _drawn(self, ordered: OrderedProblem, policies: np.ndarray, draws: int) -> np.ndarray:
        """ρ(π_b, M) and ρ(π, M) of policies [M, S, A] in every drawn model [D, 1 + M]."""
        stacked = np.concatenate([ordered.baseline[None], ordered.sorted(policies)])
        return ordered.belief.values(stacked, draws, np.random.default_rng(self.seed))

    def _reason(
        self, problem: Problem, chosen: Candidate | None, sweep: tuple[Candidate, ...]
    ) -> str:
        """Why the candidate was chosen, or the baseline kept."""
        moving = [candidate for candidate in sweep if candidate.states_changed]
        if not moving:
            return "no candidate differs from the baseline: it is kept"
        if telling_rewards(problem.counts) < FEWEST_REWARDS:
            return (
                f"fewer than {FEWEST_REWARDS} rewards of the log differ from the usual one, which "
                "is too few to learn from: the baseline is kept"
            )
        models = (
            "in nearly all models drawn given the log (delta = "
            f"{self.delta:g}, shared among the candidates)"
        )
        if problem.varying:
            models += ", which the verdict does not trust alone: recorded probabilities vary"
        if chosen is not None:
            return (
                f"{chosen.title} was chosen: it gains at least {at_least(chosen.lower)} "
                f"{models}, and {number(chosen.gain)} on average"
            )
        best = max(moving, key=lambda candidate: candidate.lower)
        return (
            f"no candidate is sure enough to gain: the best, {best.title}, gains at least "
            f"{at_least(best.lower)} {models}; the baseline is kept"
        )


def telling_rewards(counts: Counts) -> float:
    """How many rewards carry the difference between the log's rewards and a constant one.

    (Σd)²/Σd² of the distances d to the lowest reward, or to the highest, whichever is less: the
    number of successes or of failures, if rewards are 0 and 1. Sums are those of the steps whose
    successor is known; none is telling if all of these have the same of the two.
    """
    if counts.reward_range[0] == counts.reward_range[1]:
        return float(counts.n.sum())
    n, squares = float(counts.n.sum()), float(counts.reward_sq.sum())
    total = float(((counts.reward_sum - counts.n * counts.centre) / counts.unit).sum())
    ends = [(end - counts.centre) / counts.unit for end in counts.reward_range]
    sums = [(total - n * e, squares - 2 * e * total + n * e**2) for e in ends]
    found = min(d**2 / square if square > 0 else 0.0 for d, square in sums)
    return round(found, DIGITS)


def _values(model: MDP, policies: np.ndarray) -> list[float]:
    """ρ(π, M̂) of each policy [M, S, A]."""
    wrapped = [Policy.trusted(rows, model.states, model.actions) for rows in policies]
    return [exact_value(model, policy) for policy in wrapped]


def _off_policy(problem: Problem, policies: np.ndarray) -> list[OffPolicyValue | None]:
    """What the log's own episodes say of each policy [M, S, A], in one pass over them."""
    log = problem.log
    if log is None or log.n_episodes < 2 or (log.action_prob is None and problem.contradictions):
        return [None] * len(policies)
    found = contributions(
        log, Candidates.of(*policies), log.taken_probs(problem.baseline.probs), problem.discount,
        names=(ESTIMATOR,),
    )  # fmt: skip
    return [_with_interval(found.estimate(ESTIMATOR, lane)) for lane in range(len(policies))]


def _with_interval(estimate: Estimate) -> OffPolicyValue | None:
    """The estimate with Student's interval; None where less than two episodes have weight."""
    if estimate.effective_sample_size < 2 or not np.isfinite(estimate.contributions).all():
        return None
    low = student_t_bound(estimate.contributions, (1 - INTERVAL) / 2)
    interval = low, 2 * estimate.value - low
    return OffPolicyValue(estimate.value, interval, estimate.effective_sample_size)
