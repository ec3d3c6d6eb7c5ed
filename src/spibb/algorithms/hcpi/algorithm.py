"""HCPI: high-confidence policy improvement (Thomas, Theocharous & Ghavamzadeh 2015)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from spibb import checks, ope
from spibb.algorithms.base import Algorithm, Truth, floats
from spibb.algorithms.coded_log import fits_tables
from spibb.algorithms.hcpi.candidate_tests import (
    by_contributions,
    by_tables,
    log_of,
    replay_uniforms,
    t_limit,
)
from spibb.algorithms.hcpi.result import ALPHAS, HCPIImprovement, Tests, reason_for
from spibb.algorithms.problem import Circumstances, Problem
from spibb.algorithms.released import only_the_end_pays
from spibb.episodes.conformity import contradiction
from spibb.episodes.propensities import behaviour_probs
from spibb.errors import InputError
from spibb.kernels import hcpi as kernels
from spibb.kernels import hcpi_released as released_code
from spibb.kernels.mixtures import LAST
from spibb.policy import Policy
from spibb.solve import evaluate

SOURCES = ("baseline", "action-prob")


@dataclass(frozen=True)
class HCPI(Algorithm):
    """The mixture of a trained policy and the baseline with the highest lower bound (B.2, HCPI).

    The first `train_share` of the episodes train π_t; the rest tests the candidates
    (1 − α)π_t + απ_b, α ∈ {0, 0.1, …, 1}, by an off-policy `estimator` and a lower `bound` that
    fails with probability `delta`. The best candidate is returned if its bound exceeds the
    baseline's performance, otherwise the baseline.

    1. π_t is greedy on offline Q-learning: `updates` transitions drawn uniformly from the training
       episodes, step size `step_size`, Q = 0 at the start, as released. Only actions that the
       baseline plays or the log contains are considered; where Q tells none of them apart, the
       baseline's row stays. Or π_t is the policy that `trainer`, any algorithm, finds there.
    2. The baseline's performance is estimated on the test episodes by per-decision importance
       sampling, which is the mean return if the baseline made the log; or it is `baseline_value`.
       The released code uses the true one.
    3. Importance ratios divide by `behaviour`: the baseline, a Policy, or the log's column
       ("action-prob").
    4. dr and wdr use the model of the training episodes, so that the test episodes stay unseen.
    5. What the log does not show of a candidate counts as `lowest_return` (see `ope`), which is the
       lowest recorded return if that is negative, otherwise 0; exact bounds need it declared. With
       negative returns, 0 would make every policy that the log lacks look like an improvement.
    6. A candidate under which no test episode is possible, or whose bound does not apply, has the
       bound −∞. Ties go to the candidate nearest to the baseline, except at δ = 1, where all bounds
       are infinite and nothing is asked, to the trained policy.
    7. The paper retains δ = 0.9 (10 % confidence) for its benchmark; the default here is 0.1.
    8. δ is that of each candidate alone, as in the paper: the best of eleven bounds fails more
       often, at most 11δ.
    9. `released=True` is for the reproduction of the paper's curves only, on tasks where only
       a goal pays, 1, and ends the episode. It repeats the released code: π_t plays the first
       action where nothing was learnt; the candidates stop at α = 0.9; dr cuts V̂ and Q̂ to whole
       numbers, which leaves per-decision importance sampling except for pairs that always ended in
       the goal; Student's t divides by √(n − 1); ratios divide by the baseline even if another
       policy made the log; and the true performance of the baseline must be beaten, which
       `baseline_value` must give. Not known: the draws of its Q-learning, which has no seed of
       its own.

    **Guarantee.** The bound of each candidate, at δ; exact for "bernstein" and "betting" only.

    Parameters:
        estimator: "is", "pdis", "dr", "wis", "wpdis" or "wdr".
        bound: "bernstein", "betting", "student-t" or "bca".
        delta: δ, failure probability of each bound.
        train_share: share of the episodes that train.
        baseline_value: performance of the baseline; estimated if None.
        behaviour: "baseline", a Policy, or "action-prob" for the log's column.
        trainer: algorithm that makes π_t; offline Q-learning if None.
        updates: updates of the Q-learning.
        step_size: step size of the Q-learning.
        seed: seed of the Q-learning and of the bootstrap.
        truncated: what a cut episode counts: "recorded" or "model".
        lowest_return: no return is below it; see 5.
        released: repeat the released code; see 9.

    >>> result = spibb.HCPI().improve(problem)
    >>> round(result.policy.row("severe")["treat"], 9)
    0.96
    """

    name: ClassVar[str] = "hcpi"
    needs_log: ClassVar[bool] = True
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 is about SPIBB; HCPI's own bound is the result's `lower_bound`"
    )

    estimator: str = "dr"
    bound: str = "student-t"
    delta: float = 0.1
    train_share: float = 0.2
    baseline_value: float | None = None
    behaviour: Policy | str = "baseline"
    trainer: Algorithm | None = None
    updates: int = 5_000
    step_size: float = 0.1
    seed: int = 0
    truncated: str = "recorded"
    lowest_return: float | None = None
    released: bool = False

    def __post_init__(self) -> None:
        checks.choice("estimator", self.estimator, ope.ESTIMATORS)
        checks.choice("bound", self.bound, ope.BOUNDS)
        if self.bound in ope.EXACT and self.estimator not in ope.LIMITED:
            raise InputError(
                f"bound {self.bound!r} does not apply to estimator {self.estimator!r}, whose "
                "contributions have no lower limit: use is or pdis, or another bound"
            )
        checks.delta_or_one(self.delta)
        checks.number("train_share", self.train_share, 0, 1, "()")
        checks.positive_field(self, "updates")
        checks.seed(self.seed)
        if self.baseline_value is not None:
            checks.number("baseline_value", self.baseline_value, -math.inf, math.inf, "()")
        if self.trainer is not None:
            checks.instance("trainer", self.trainer, Algorithm, "give one, such as BasicRL()")
        checks.number("step_size", self.step_size, 0, 1, "(]")
        checks.choice("truncated", self.truncated, ope.TRUNCATED)
        checks.limit("lowest_return", self.lowest_return)
        if isinstance(self.behaviour, str):
            checks.choice("behaviour", self.behaviour, SOURCES)
        elif not isinstance(self.behaviour, Policy):
            raise InputError(
                f"behaviour is {checks.shown(self.behaviour)}, expected a Policy, or one of "
                f"{', '.join(SOURCES)}"
            )
        checks.flags(self)
        if self.released and not self._has_released_form:
            raise InputError(
                "hcpi with released=True has only is, pdis and dr with Student's t: leave out "
                "bound, trainer, behaviour, truncated and lowest_return"
            )

    def check(self, problem: Problem) -> None:
        """Episodes are needed; as released, a task like the paper's and the true performance."""
        if problem.log is None:
            raise InputError(
                "hcpi needs the episodes, and this problem holds only counts: build it from a log"
            )
        if self.released:
            only_the_end_pays(problem, self.name)
            if self.baseline_value is None:
                raise InputError(
                    "hcpi with released=True needs the true performance: give baseline_value"
                )

    def improve(self, problem: Problem) -> HCPIImprovement:
        """Train on the first episodes, test on the rest."""
        self.check(problem)
        log = log_of(problem)
        propensities = np.ones(len(log))  # as released, ratios divide by the baseline
        if not self.released:
            propensities = behaviour_probs(log, self._behaviour(problem))
        n_test = log.n_episodes - self.n_train(log.n_episodes)
        if n_test < 2:
            return self._keep(problem, f"{n_test} test episodes, and a bound needs at least 2")
        if self._in_tables and fits_tables(log):
            return self._choose(problem, by_tables(self, problem, propensities))
        return self._choose(problem, by_contributions(self, problem, propensities))

    def told(self, truth: Truth) -> Self:
        """This configuration with the true performance and, unless as released, the behaviour."""
        if truth.baseline_value is None or truth.behaviour is None:
            return self
        made = self.behaviour if self.released else truth.behaviour
        return replace(self, baseline_value=truth.baseline_value, behaviour=made)

    def compiles(self, known: Circumstances) -> bool:
        """The study's test, with the usual training and a known rival."""
        return (
            self._in_tables
            and self.baseline_value is not None
            and self._training == HCPI()._training
            and (self.released or self._made(known))
        )

    @property
    def _in_tables(self) -> bool:
        """Whether the kernels have its test: Student's t on is, pdis or dr of its own training."""
        usual = (self.bound, self.trainer, self.truncated) == ("student-t", None, "recorded")
        return self.estimator in kernels.ESTIMATORS and usual

    @property
    def _has_released_form(self) -> bool:
        return self._in_tables and (self.behaviour, self.lowest_return) == ("baseline", None)

    @property
    def _training(self) -> tuple[float, ...]:
        return self.train_share, self.updates, self.step_size, self.seed

    def _made(self, known: Circumstances) -> bool:
        """Whether the behaviour that the ratios divide by is the one that made the episodes."""
        behaviour = known.baseline if self.behaviour == "baseline" else self.behaviour
        made = known.behaviour
        if not isinstance(behaviour, Policy):
            return False
        same = behaviour.states == made.states and behaviour.actions == made.actions
        return behaviour is made or (same and np.array_equal(behaviour.probs, made.probs))

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> kernels.Grid:
        """Estimators, quantiles, rivals and lowest returns; all train alike."""
        unit = known.unit
        like = algorithms[0] if algorithms else cls()
        n_train = like.n_train(known.n_episodes)
        freedom = known.n_episodes - n_train - 1
        return kernels.Grid(
            floats(kernels.ESTIMATORS.index(a.estimator) for a in algorithms),
            floats(t_limit(freedom, a.delta) for a in algorithms),
            floats((a.baseline_value or 0.0) / unit for a in algorithms),
            floats(
                math.nan if a.lowest_return is None else a.lowest_return / unit for a in algorithms
            ),
            floats(a.released for a in algorithms),
            ALPHAS, replay_uniforms(like.seed, like.updates), like.step_size, n_train,
        )  # fmt: skip

    def n_train(self, n_episodes: int) -> int:
        """How many episodes train."""
        return max(1, int(self.train_share * n_episodes))

    def _behaviour(self, problem: Problem) -> np.ndarray | None:
        """The rows [S, A] of the policy that made the log; None for the log's own column."""
        if isinstance(self.behaviour, Policy):
            made = self.behaviour.aligned(problem.states, problem.actions, "behaviour").probs
            wrong = contradiction(problem.decisions, made, problem.states, problem.actions)
            if wrong and not (made[problem.decisions > 0] == 0).any():  # which has its own message
                raise InputError(
                    f"behaviour cannot have made the log: {wrong}; give the policy that did"
                )
            return made
        return problem.behaviour_rows if self.behaviour == "baseline" else None

    def _choose(self, problem: Problem, tests: Tests) -> HCPIImprovement:
        """The candidate of the highest lower bound, if it beats the baseline."""
        choose = released_code.choose if self.released else kernels.choose
        best, reason = choose(tests.bounds, tests.rival), reason_for(tests)
        if self.released:
            kept = ": the baseline is kept" if best == LAST else ""
            reason = f"as released, alpha = {ALPHAS[best]:g}{kept}"
        if best == LAST:
            return self._keep(problem, reason, tests.bounds, tests.rival)
        policy = Policy.trusted(tests.probs(best), problem.states, problem.actions)
        return self._result(problem, policy, best, reason, tests.bounds, tests.rival)

    def _keep(
        self,
        problem: Problem,
        reason: str,
        bounds: np.ndarray | None = None,
        rival: float = math.nan,
    ) -> HCPIImprovement:
        """Return the baseline."""
        bounds = np.full(len(ALPHAS), -math.inf) if bounds is None else bounds
        return self._result(problem, problem.baseline, LAST, reason, bounds, rival)

    def _result(
        self,
        problem: Problem,
        policy: Policy,
        lane: int,
        reason: str,
        bounds: np.ndarray,
        rival: float,
    ) -> HCPIImprovement:
        solution = evaluate(self.model(problem), policy.probs)
        return HCPIImprovement(
            policy=policy,
            q=solution.q,
            v=solution.v,
            bootstrapped=np.full(solution.q.shape, lane == LAST),
            iterations=int(np.isfinite(bounds).sum()),
            converged=solution.converged,
            problem=problem,
            algorithm=self,
            alpha=float(ALPHAS[lane]),
            lower_bound=float(bounds[lane]),
            baseline_estimate=rival,
            reason=reason,
            alphas=ALPHAS,
            lower_bounds=bounds,
        )
