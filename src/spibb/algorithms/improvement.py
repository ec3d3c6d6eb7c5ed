"""What every algorithm returns: a policy, its values, and ways to ask how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import spibb
from spibb import checks
from spibb.algorithms.candidate import Candidate
from spibb.algorithms.problem import V_MAX_ROUNDING, Problem
from spibb.assurance.posterior import Posterior, posterior_improvement
from spibb.behaviour import Provenance
from spibb.certificate import Certificate, Premises, certify, refuse
from spibb.change_certificate import ChangeCertificate
from spibb.episodes.departures import changed_states
from spibb.errors import InputError
from spibb.evaluate import monte_carlo_value
from spibb.frozen import Frozen
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.showing import main_options
from spibb.solve import Solution, evaluate
from spibb.words import apart

if TYPE_CHECKING:
    from spibb.algorithms.base import Algorithm
    from spibb.verdict import Verdict

ESTIMATED = (
    "the baseline collected the log; it was estimated from that log, and the bound compares with "
    "the estimate: how far this lies from the policy that really acted is not counted"
)
RECORDED = (
    "the baseline collected the log; it is taken from action_prob, and actions never "
    "taken in a state share what is left of 1 there"
)
VARIES = (
    "the recorded probabilities vary within a state: the current policy looked at more than the "
    "state, and the bounds hold only where it did not"
)


@dataclass(frozen=True, eq=False)
class Improvement(Frozen):
    """A trained policy and what the estimated model M̂ says about it.

    All arrays are read-only.

    Attributes:
        policy: the new policy π.
        q: its action values in `model`, the one that the algorithm solved [S, A].
        v: its state values in `model` [S]; `values` are those in M̂.
        bootstrapped: True where the baseline was copied as there is too little evidence [S, A].
        iterations: steps of the solver; what they are depends on the algorithm.
        converged: whether the solver reached its tolerance.
        problem: what was improved.
        algorithm: what improved it, with its options.
        reason: why this policy, or why the baseline, in one line; None where the algorithm gives
            no reason.
        sweep: the candidates that the log chose from; empty where it chose nothing.
        chosen: the candidate of the sweep that is the policy; None where the baseline was kept.
        policies: the policies of the sweep [M, S, A]; None without a sweep.

    >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
    >>> result
    Improvement(algorithm=PiBSpibb(n_wedge=1), mean_return_in_log=0.6, value_in_model=0.9,
    baseline_value_in_model=0.54, states_changed=1 of 2, pairs_copied=0%)
    >>> result.verdict.grade
    <Grade.NOT_SUPPORTED: 'not supported'>
    """

    policy: Policy
    q: np.ndarray
    v: np.ndarray
    bootstrapped: np.ndarray
    iterations: int
    converged: bool
    problem: Problem
    algorithm: Algorithm
    reason: str | None = field(default=None, kw_only=True)
    sweep: tuple[Candidate, ...] = field(default=(), kw_only=True)
    chosen: Candidate | None = field(default=None, kw_only=True)
    policies: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def considered(self) -> np.ndarray:
        """bool [S]: where outcomes decided whether the state changes; counts decided elsewhere."""
        return np.asarray(~self.bootstrapped.all(axis=1))

    @property
    def return_limits(self) -> tuple[float, float] | None:
        """The limits of every return that were declared to the algorithm; None without."""
        return None

    @property
    def estimate_limits(self) -> tuple[float, float] | None:
        """`return_limits`, as off-policy estimators take them."""
        return self.return_limits

    def rows_of(self, candidate: Candidate) -> np.ndarray:
        """The policy [S, A] of a candidate of the sweep.

        Parameters:
            candidate: one of `sweep`.

        >>> result = spibb.Auto().improve(problem)
        >>> result.rows_of(result.sweep[0]).shape
        (2, 2)
        """
        checks.instance("candidate", candidate, Candidate, "take one of the sweep")
        wanted = candidate.algorithm, repr(candidate.n_wedge)  # no NaN equals another
        for one, rows in zip(self.sweep, () if self.policies is None else self.policies):
            if (one.algorithm, repr(one.n_wedge)) == wanted:
                return np.asarray(rows)
        raise InputError(f"candidate is {candidate.title}, which is not in the sweep: choose one")

    def _facts(self) -> Mapping[str, Any]:
        """What was done, what the log earned, the values in the model, how much changed, and why
        if that is said."""
        moved = changed_states(self.policy.probs, self.problem.baseline.probs)
        log = self.problem.log
        earned = None if log is None else monte_carlo_value(log, self.problem.discount).value
        return {
            "algorithm": main_options(self.algorithm),
            **({} if earned is None else {"mean_return_in_log": earned}),
            "value_in_model": self.value, "baseline_value_in_model": self.baseline_value,
            "states_changed": f"{int(moved.sum())} of {len(moved)}",
            "pairs_copied": f"{self.bootstrapped.mean():.0%}",
            **({"reason": self.reason} if self.reason else {}),
            **({"verdict": str(self.verdict.grade)} if "verdict" in vars(self) else {}),
            **({} if self.converged else {"converged": False}),
        }  # fmt: skip

    def save(
        self,
        folder: str | Path,
        *,
        delta: float | None = None,
        seed: int = 0,
        force: bool = False,
        spreadsheet_safe: bool = False,
    ) -> Path:
        """Write what ``spibb improve`` writes: the policy with policy.json, summary and report.

        Parameters:
            folder: must be empty, or `force` given; the files appear all at once.
            delta: failure probability of certificate and verdict; the algorithm's own, or 0.05.
            seed: seed of the posterior draws.
            force: write into a folder that is not empty.
            spreadsheet_safe: put an apostrophe before labels that a spreadsheet might execute.

        Returns:
            The folder.

        >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
        >>> sorted(path.name for path in result.save("saved", force=True).iterdir())
        ['manifest.sha256', 'policy.csv', 'policy.json', 'policy.parquet', 'report.html',
        'returns.parquet', 'summary.json']
        """
        return spibb.save_result(self, folder, delta, seed, force, spreadsheet_safe)

    def report(self, path: str | Path, *, delta: float | None = None, seed: int = 0) -> Path:
        """Write the report, one HTML file that needs nothing else.

        Parameters:
            path: a name that ends in .html.
            delta: failure probability of certificate and verdict; the algorithm's own, or 0.05.
            seed: seed of the posterior draws.

        Returns:
            The path of the file.

        >>> spibb.PiBSpibb(n_wedge=1).improve(problem).report("report.html").name
        'report.html'
        """
        return spibb.save_report(self, path, delta, seed)

    def __post_init__(self) -> None:
        super().__post_init__()
        theirs = self.problem.states, self.problem.actions
        if (self.policy.states, self.policy.actions) != theirs:
            raise InputError(
                f"algorithm {self.algorithm.name!r} returned a policy whose labels are not those "
                "of the problem: make it with problem.states and problem.actions"
            )
        states, actions = (vocabulary.labels for vocabulary in theirs)
        what = f"algorithm {self.algorithm.name!r} returned a policy whose"
        checks.probability_rows(self.policy.probs, states, actions, what)

    @classmethod
    def from_solution(
        cls,
        solution: Solution,
        bootstrapped: np.ndarray,
        problem: Problem,
        algorithm: Algorithm,
        **found: Any,
    ) -> Self:
        """Label a solution.

        Parameters:
            solution: policy and values, from `spibb.solve`.
            bootstrapped: where the baseline was copied [S, A].
            problem: what was solved.
            algorithm: what solved it.
            found: the fields that a subclass adds.

        >>> from spibb.solve import evaluate
        >>> kept = evaluate(problem.model, problem.baseline.probs)
        >>> everywhere = np.ones_like(kept.probs, dtype=bool)
        >>> algorithm = spibb.PiBSpibb(n_wedge=1e9)
        >>> round(spibb.Improvement.from_solution(kept, everywhere, problem, algorithm).value, 4)
        0.54
        """
        policy = Policy.trusted(solution.probs, problem.states, problem.actions)
        return cls(policy, solution.q, solution.v, bootstrapped, solution.iterations,
                   solution.converged, problem, algorithm, **found)  # fmt: skip

    @cached_property
    def model(self) -> MDP:
        """The estimated model that `q` and `v` refer to."""
        return self.algorithm.model(self.problem)

    @cached_property
    def values(self) -> np.ndarray:
        """V^π in M̂ = `problem.model` [S], which fits the log best, with unseen pairs worth 0.

        It is `v` where the algorithm solved that model, and not where it took another: unseen
        pairs worth −V_max (Basic RL), penalised rewards (RaMDP), the worst case (Robust MDP).
        """
        return self.v if self.model is self.problem.model else self._in_model(self.policy)

    @cached_property
    def baseline_values(self) -> np.ndarray:
        """V^{π_b} in M̂ = `problem.model` [S], as `values`."""
        return self._in_model(self.problem.baseline)

    def _in_model(self, policy: Policy) -> np.ndarray:
        return evaluate(self.problem.model, policy.probs).v

    @cached_property
    def value(self) -> float:
        """ρ(π, M̂) in M̂ = `problem.model`; too high for a policy trained on the same log."""
        return float(self.problem.model.initial @ self.values)

    @cached_property
    def baseline_value(self) -> float:
        """ρ(π_b, M̂) in M̂ = `problem.model`, as `value`."""
        return float(self.problem.model.initial @ self.baseline_values)

    @cached_property
    def objective(self) -> float:
        """ρ(π, M) in M = `model`: what the algorithm maximised, such as the worst-case value."""
        return float(self.model.initial @ self.v)

    @cached_property
    def verdict(self) -> Verdict:
        """How sure the log is: certified, supported, or not supported (`spibb.judge`)."""
        return spibb.judge(self)

    def posterior(self, *, draws: int = 1000, seed: int = 0) -> Posterior:
        """The gain in models drawn given the log (`spibb.posterior_improvement`).

        Its probability is over-confident, because one log trained and judged the policy
        (docs/choosing.md). `verdict` says what to make of it.

        Parameters:
            draws: number of models.
            seed: seed of the draws.

        Returns:
            The gains and values in all models, with their means and intervals.

        >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
        >>> len(result.posterior(draws=50).gains)
        50
        """
        problem = self.problem
        return posterior_improvement(
            problem.counts, self.policy, problem.baseline, problem.discount,
            rng=np.random.default_rng(checks.seed(seed)), draws=draws,
        )  # fmt: skip

    def tested(self, delta: float | None = None) -> ChangeCertificate | None:
        """What the algorithm's own tests prove; None if it made none.

        They judge changes on episodes that chose nothing, and use no model. The verdict checks
        their assumptions.

        Parameters:
            delta: failure probability; None takes that of the algorithm.

        >>> spibb.PiBSpibb(n_wedge=1).improve(problem).tested() is None
        True
        """
        return None

    def certificate(self, delta: float = 0.05) -> Certificate:
        """Theorem 2 and tighter bounds on the loss, or the reason why there is none.

        Parameters:
            delta: failure probability, at most 0.5.

        Returns:
            `bounds` with their ζ: ρ(π, M) ≥ ρ(π_b, M) − ζ with probability 1 − δ; or a `refusal`.

        >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
        >>> result.certificate(delta=0.1).best.vacuous
        True
        """
        problem = self.problem
        n_wedge = getattr(self.algorithm, "n_wedge", math.nan)
        checks.delta(delta)
        refusal = self.algorithm.no_certificate or _refusal(self, n_wedge)
        if refusal is not None:
            return refuse(n_wedge, delta, refusal)
        n_states, n_actions = problem.baseline.probs.shape
        premises = Premises(n_states, n_actions, problem.discount, problem.v_max, delta)
        return certify(
            n_wedge,
            premises,
            gain=self.value - self.baseline_value,
            return_range=problem.return_range,
            assumptions=_assumptions(problem),
        )


def _refusal(result: Improvement, n_wedge: float) -> str | None:
    problem = result.problem
    if problem.contradictions:
        return (
            f"the log contradicts the baseline: {problem.contradictions} transitions take an "
            "action that the baseline never plays, so the baseline did not collect them"
        )
    if n_wedge == 0:
        return "n_wedge = 0 trusts every pair, and the bounds are infinite"
    if problem.misreported:
        return f"the log contradicts the baseline: {problem.misreported}"
    if problem.varying:
        return VARIES
    largest = max(float(np.abs(v).max()) for v in (result.values, result.baseline_values))
    if largest > problem.v_max * (1 + V_MAX_ROUNDING):
        worth, limit = apart(largest, problem.v_max)
        return (
            f"a state is worth {worth} in the model, and the theorem takes v_max = "
            f"{limit} as the limit of all values: give a larger v_max, or leave it out"
        )
    return None


def _assumptions(problem: Problem) -> tuple[str, ...]:
    source = "given" if problem.v_max_given else "derived from the rewards in the log"
    collected = {
        Provenance.GIVEN: "the baseline collected the log",
        Provenance.RECORDED: RECORDED,
        Provenance.ESTIMATED: ESTIMATED,
    }[problem.baseline_source]
    return (
        collected,
        "episodes are independent and identically distributed",
        "the process is Markov in the states given",
        f"no return exceeds v_max = {problem.v_max:g} in absolute value ({source})",
    )
