"""HCPI's test of its candidates: a lower bound of each on the episodes that trained nothing.

The kernels of the studies have the usual test (`by_tables`); `ope` has every estimator and bound
(`by_contributions`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spibb import ope
from spibb.algorithms.coded_log import coded, distinct
from spibb.algorithms.hcpi.result import ALPHAS, Tests
from spibb.algorithms.problem import Problem
from spibb.bounds.means import t_quantile
from spibb.errors import InputError
from spibb.estimate import pessimistic_model
from spibb.kernels import hcpi as kernels
from spibb.kernels.mixtures import LAST, Mixtures
from spibb.kernels.tuples import Record
from spibb.log import Log
from spibb.ope.estimate import no_evidence

if TYPE_CHECKING:
    from spibb.algorithms.hcpi.algorithm import HCPI


def by_tables(options: HCPI, problem: Problem, propensities: np.ndarray) -> Tests:
    """The test by the kernels of the studies."""
    data, unit, grid = problem.data, problem.unit, options.columns([options], problem.circumstances)
    record = distinct(coded(log_of(problem), propensities, unit))
    discount, old = problem.discount, options.released
    model, trained, testing = kernels.prepare(record, data.baseline, discount, grid)
    mixtures = Mixtures(trained[1] if old else trained[0], data.baseline, ALPHAS)
    lowest = _lowest_return(options, record, data.r_low, discount, unit)
    code = kernels.ESTIMATORS.index
    found = kernels.test(record, testing, mixtures, model, code(options.estimator), lowest, old)
    rival = options.baseline_value
    if rival is None:
        pdis = kernels.test(record, testing, mixtures, model, code("pdis"), lowest, False)
        rival = float(pdis.mean[LAST]) * unit
    bounds = np.empty(len(ALPHAS))
    kernels.decide(found, float(grid.quantile[0]), rival / unit, old, bounds)
    return Tests(mixtures, bounds * unit, [no_evidence(found.n)] * len(bounds), rival)


def by_contributions(options: HCPI, problem: Problem, propensities: np.ndarray) -> Tests:
    """The test by `ope`, for any estimator, bound and log."""
    log, discount = log_of(problem), problem.discount
    training = _training(problem, options.n_train(log.n_episodes))
    mixtures = Mixtures(_train(options, training), problem.baseline.probs, ALPHAS)
    if options.bound in ope.EXACT:
        _check_limits(options, log, discount)
    record = coded(log, propensities)
    lowest = _lowest_return(options, record, problem.counts.reward_range[0], discount)
    found = _contributions(options, log, propensities, training, mixtures, lowest)
    rng = np.random.default_rng(options.seed)
    estimates = [found.estimate(options.estimator, k).pessimistic for k in range(len(ALPHAS))]
    tests = [_bound(options, estimate, rng) for estimate in estimates]
    bounds, refusals = np.array([t.value for t in tests]), [t.refusal for t in tests]
    estimated = found.estimate("pdis", LAST).pessimistic.value
    rival = estimated if options.baseline_value is None else options.baseline_value
    return Tests(mixtures, bounds, refusals, rival)


def _lowest_return(
    options: HCPI, record: Record, low: float, discount: float, unit: float = 1.0
) -> float:
    """The limit given, or the lowest recorded return if it is negative, else 0."""
    if options.lowest_return is not None:
        return options.lowest_return / unit
    return kernels.lowest_return(record, low, discount)


def _check_limits(options: HCPI, log: Log, discount: float) -> None:
    """Refuse an exact bound whose limit the log contradicts."""
    reasons = ope.no_limits(log, discount, options.lowest_return or 0.0)
    if options.estimator in reasons:
        reason = reasons[options.estimator]
        raise InputError(f"{options.bound}: {reason}: give a lower lowest_return")


def _train(options: HCPI, training: Problem) -> np.ndarray:
    """π_t [S, A]."""
    if options.trainer is not None:
        return options.trainer.improve(training).policy.probs
    log, data = log_of(training), training.data
    record = coded(log, np.ones(len(log)))
    codes = record.episodes.codes[log.known]
    uniforms = replay_uniforms(options.seed, options.updates)
    trained = kernels.train(
        codes, record.codebook, data.model, data.baseline, uniforms, options.step_size
    )
    return np.asarray(trained[0])


def _contributions(
    options: HCPI,
    log: Log,
    propensities: np.ndarray,
    training: Problem,
    mixtures: Mixtures,
    lowest: float,
) -> ope.Contributions:
    """Off-policy evaluation of the candidates on the episodes after the training ones."""
    n_train = log_of(training).n_episodes
    return ope.contributions(
        log.episodes(np.arange(n_train, log.n_episodes)),
        ope.Candidates.mixtures(*mixtures),
        propensities[log.episode_starts[n_train] :],
        training.discount,
        names=tuple({options.estimator, "pdis"}),
        model=pessimistic_model(training.counts, training.discount, lowest),
        truncated=options.truncated,
        lowest_return=lowest,
    )


def _bound(options: HCPI, estimate: ope.Estimate, rng: np.random.Generator) -> ope.LowerBound:
    """The lower bound of one candidate, −∞ where there is no evidence or it does not apply.

    As in the paper, few effective episodes do not lead to a refusal: what they lack counts as the
    lowest return.
    """
    refusal = estimate.warning if estimate.effective_sample_size == 0 else None
    if refusal is None:
        try:
            return ope.lower_bound(
                estimate, options.bound, options.delta, rng=rng, despite_warning=True
            )
        except InputError as error:
            refusal = str(error)
    return ope.LowerBound(options.bound, -math.inf, options.delta, refusal)


def _training(problem: Problem, n_train: int) -> Problem:
    """The problem of the first episodes only."""
    log = log_of(problem).episodes(np.arange(n_train))
    given = problem.v_max if problem.v_max > 0 else None
    return Problem.from_log(log, problem.baseline, discount=problem.discount, v_max=given)


def log_of(problem: Problem) -> Log:
    """The episodes, which HCPI needs."""
    assert problem.log is not None  # `improve` has checked it
    return problem.log


@lru_cache(maxsize=1024)
def t_limit(freedom: int, delta: float) -> float:
    """Student's t at 1 − δ; nothing is asked at δ = 1, and a bound needs a degree of freedom."""
    return t_quantile(freedom, delta) if freedom > 0 and delta < 1 else -math.inf


@lru_cache(maxsize=8)
def replay_uniforms(seed: int, size: int) -> np.ndarray:
    """The uniforms in [0, 1) behind the rows that Q-learning replays [size]."""
    return np.random.default_rng(seed).random(size)
