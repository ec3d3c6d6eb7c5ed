"""HCPI: high-confidence policy improvement (Thomas, Theocharous & Ghavamzadeh 2015)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from spibb import checks, ope
from spibb.algorithms.base import Algorithm, Circumstances, Problem, floats
from spibb.algorithms.hcpi_result import ALPHAS, HCPIImprovement, Tests, reason_for
from spibb.algorithms.records import coded, distinct, fits_tables
from spibb.algorithms.released import only_the_end_pays
from spibb.bounds.means import t_quantile
from spibb.episodes.conformity import contradiction
from spibb.episodes.propensities import behaviour_probs
from spibb.errors import InputError
from spibb.estimate import pessimistic_model
from spibb.kernels import hcpi as kernels
from spibb.kernels import hcpi_released as released_code
from spibb.kernels.mixtures import LAST, Mixtures
from spibb.kernels.tuples import Record
from spibb.log import Log
from spibb.ope.estimate import NO_EVIDENCE
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
       baseline's row stays. Or π_t is what `trainer`, any algorithm, makes of those episodes.
    2. The baseline's performance is estimated on the test episodes by per-decision importance
       sampling, which is the mean return if the baseline made the log; or it is `baseline_value`.
       The released code uses the true one.
    3. Importance ratios divide by `behaviour`: the baseline, a Policy, or the log's column
       ("action-prob").
    4. dr and wdr use the model of the training episodes, so that the test episodes stay unseen.
    5. What the log does not show of a candidate counts as `lowest_return` (see `ope`), which is the
       lowest recorded return if that is negative, otherwise 0; exact bounds want it declared. With
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
       policy made the log; and the true performance of the baseline is to be beaten, which
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
        checks.positive("updates", self.updates)
        checks.seed(self.seed)
        if self.baseline_value is not None:
            checks.number("baseline_value", self.baseline_value, -math.inf, math.inf, "()")
        if self.trainer is not None:
            checks.instance("trainer", self.trainer, Algorithm, "give one, such as BasicRL()")
        checks.number("step_size", self.step_size, 0, 1, "(]")
        checks.choice("truncated", self.truncated, ope.TRUNCATED)
        if self.lowest_return is not None:
            checks.number("lowest_return", self.lowest_return, -math.inf, math.inf, "()")
        if not isinstance(self.behaviour, Policy):
            checks.choice("behaviour", self.behaviour, SOURCES)
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
        log = _log_of(problem)
        propensities = np.ones(len(log))  # as released, ratios divide by the baseline
        if not self.released:
            propensities = behaviour_probs(log, self._behaviour(problem))
        n_test = log.n_episodes - self._n_train(log.n_episodes)
        if n_test < 2:
            return self._keep(problem, f"{n_test} test episodes, and a bound needs at least 2")
        if self._in_tables and fits_tables(log):
            return self._choose(problem, self._by_tables(problem, propensities))
        return self._choose(problem, self._by_contributions(problem, propensities))

    def told_truth(self, baseline_value: float, behaviour: Policy) -> Self:
        """The same with the true performance and, unless as released, the true behaviour."""
        made = self.behaviour if self.released else behaviour
        return replace(self, baseline_value=baseline_value, behaviour=made)

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

    def _by_tables(self, problem: Problem, propensities: np.ndarray) -> Tests:
        """The test by the kernels of the studies."""
        data, unit, grid = problem.data, problem.unit, self.columns([self], problem.circumstances)
        record = distinct(coded(_log_of(problem), propensities, unit))
        discount, old = problem.discount, self.released
        model, trained, testing = kernels.prepare(record, data.baseline, discount, grid)
        mixtures = Mixtures(trained[1] if old else trained[0], data.baseline, ALPHAS)
        lowest = self._lowest_return(record, data.r_low, discount, unit)
        code = kernels.ESTIMATORS.index
        found = kernels.test(record, testing, mixtures, model, code(self.estimator), lowest, old)
        rival = self.baseline_value
        if rival is None:
            pdis = kernels.test(record, testing, mixtures, model, code("pdis"), lowest, False)
            rival = float(pdis.mean[LAST]) * unit
        bounds = np.empty(len(ALPHAS))
        kernels.decide(found, float(grid.quantile[0]), rival / unit, old, bounds)
        return Tests(mixtures, bounds * unit, [NO_EVIDENCE.format(found.n)] * len(bounds), rival)

    def _by_contributions(self, problem: Problem, propensities: np.ndarray) -> Tests:
        """The test by `ope`, for any estimator, bound and log."""
        log, discount = _log_of(problem), problem.discount
        training = _training(problem, self._n_train(log.n_episodes))
        mixtures = Mixtures(self._train(training), problem.baseline.probs, ALPHAS)
        if self.bound in ope.EXACT:
            self._check_limits(log, discount)
        record = coded(log, propensities)
        lowest = self._lowest_return(record, problem.counts.reward_range[0], discount)
        found = self._contributions(log, propensities, training, mixtures, lowest)
        rng = np.random.default_rng(self.seed)
        estimates = [found.estimate(self.estimator, k).pessimistic for k in range(len(ALPHAS))]
        tests = [self._bound(estimate, rng) for estimate in estimates]
        bounds, refusals = np.array([t.value for t in tests]), [t.refusal for t in tests]
        estimated = found.estimate("pdis", LAST).pessimistic.value
        rival = estimated if self.baseline_value is None else self.baseline_value
        return Tests(mixtures, bounds, refusals, rival)

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
        n_train = like._n_train(known.n_episodes)
        freedom = known.n_episodes - n_train - 1
        return kernels.Grid(
            floats(kernels.ESTIMATORS.index(a.estimator) for a in algorithms),
            floats(_quantile(freedom, a.delta) for a in algorithms),
            floats((a.baseline_value or 0.0) / unit for a in algorithms),
            floats(
                math.nan if a.lowest_return is None else a.lowest_return / unit for a in algorithms
            ),
            floats(a.released for a in algorithms),
            ALPHAS, replay_uniforms(like.seed, like.updates), like.step_size, n_train,
        )  # fmt: skip

    def _n_train(self, n_episodes: int) -> int:
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

    def _lowest_return(
        self, record: Record, low: float, discount: float, unit: float = 1.0
    ) -> float:
        """The limit given, or the lowest recorded return if it is negative, else 0."""
        if self.lowest_return is not None:
            return self.lowest_return / unit
        return kernels.lowest_return(record, low, discount)

    def _check_limits(self, log: Log, discount: float) -> None:
        """Exact bounds want a limit that the log does not contradict."""
        reasons = ope.no_limits(log, discount, self.lowest_return or 0.0)
        if self.estimator in reasons:
            raise InputError(f"{self.bound}: {reasons[self.estimator]}: give a lower lowest_return")

    def _train(self, training: Problem) -> np.ndarray:
        """π_t [S, A]."""
        if self.trainer is not None:
            return self.trainer.improve(training).policy.probs
        log, data = _log_of(training), training.data
        record = coded(log, np.ones(len(log)))
        codes, uniforms = record.episodes.codes[log.known], replay_uniforms(self.seed, self.updates)
        trained = kernels.train(
            codes, record.codebook, data.model, data.baseline, uniforms, self.step_size
        )
        return np.asarray(trained[0])

    def _contributions(
        self,
        log: Log,
        propensities: np.ndarray,
        training: Problem,
        mixtures: Mixtures,
        lowest: float,
    ) -> ope.Contributions:
        """Off-policy evaluation of the candidates on the episodes after the training ones."""
        n_train = _log_of(training).n_episodes
        return ope.contributions(
            log.episodes(np.arange(n_train, log.n_episodes)),
            ope.Candidates.mixtures(*mixtures),
            propensities[log.episode_starts[n_train] :],
            training.discount,
            names=tuple({self.estimator, "pdis"}),
            model=pessimistic_model(training.counts, training.discount, lowest),
            truncated=self.truncated,
            lowest_return=lowest,
        )

    def _bound(self, estimate: ope.Estimate, rng: np.random.Generator) -> ope.LowerBound:
        """The lower bound of one candidate, −∞ where there is no evidence or it does not apply."""
        refusal = estimate.warning if estimate.effective_sample_size == 0 else None
        if refusal is None:
            try:
                return ope.lower_bound(estimate, self.bound, self.delta, rng=rng)
            except InputError as error:
                refusal = str(error)
        return ope.LowerBound(self.bound, -math.inf, self.delta, "", refusal)

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


def _training(problem: Problem, n_train: int) -> Problem:
    """The problem of the first episodes only."""
    log = _log_of(problem).episodes(np.arange(n_train))
    given = problem.v_max if problem.v_max > 0 else None
    return Problem.from_log(log, problem.baseline, discount=problem.discount, v_max=given)


def _log_of(problem: Problem) -> Log:
    assert problem.log is not None  # `improve` has checked it
    return problem.log


@lru_cache(maxsize=1024)
def _quantile(freedom: int, delta: float) -> float:
    """Of Student's t at 1 − δ; nothing is asked at δ = 1, and a bound needs a degree of freedom."""
    return t_quantile(freedom, delta) if freedom > 0 and delta < 1 else -math.inf


@lru_cache(maxsize=8)
def replay_uniforms(seed: int, size: int) -> np.ndarray:
    """The uniforms in [0, 1) behind the rows that Q-learning replays [size]."""
    return np.random.default_rng(seed).random(size)
