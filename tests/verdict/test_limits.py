"""Limits that were declared reach the exact bounds of the report, and no others do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spibb import Certified, Log, PiBSpibb, Policy, Problem
from spibb.ope import off_policy_estimates
from spibb.verdict.evidence import gather_for

BOUNDS = ("bernstein", "betting")


def problem(low=0.0, discount=0.0, n=400):
    rng = np.random.default_rng(3)
    action = rng.integers(0, 2, n)
    reward = np.where(rng.random(n) < 0.3 + 0.4 * action, 1.0, low)
    log = Log.from_arrays(["s"] * n, action, reward, terminated=np.ones(n, bool))
    baseline = Policy([[0.5, 0.5]], ["s"], [0, 1])
    return Problem.from_log(log, baseline, discount=discount)


@pytest.mark.parametrize(
    "declared",
    [{"lowest_return": 0, "highest_return": 1}, {"lowest_reward": 0, "highest_reward": 1}],
)
def test_limits_declared_to_certified_give_exact_bounds(declared):
    result = Certified(**declared).improve(problem())
    assert result.certificate().refusal is None
    found = gather_for(result, bounds=BOUNDS).estimates
    wanted = off_policy_estimates(
        result.problem.log, result.policy, result.problem.baseline, 0.0,
        lowest_return=0, highest_return=1, bounds=BOUNDS, rng=np.random.default_rng(0),
    )  # fmt: skip
    for rows, others in ((found.rows, wanted.rows), (found.differences, wanted.differences)):
        for row, other in zip(rows, others):
            for mine, theirs in zip(row.bounds, other.bounds):
                assert mine.refusal == theirs.refusal
                assert mine.value == theirs.value or math.isnan(theirs.value)
    assert all(bound.refusal is None for bound in found["is"].bounds)


def test_what_the_log_shows_is_no_limit():
    found = gather_for(PiBSpibb(5).improve(problem()), bounds=BOUNDS).estimates
    assert all("was not declared" in bound.refusal for bound in found["is"].bounds)


def test_a_lowest_reward_over_few_steps_is_not_taken_for_a_higher_one():
    """Over one step a return of −1 is the lowest; pdis needs the lowest reward, −1, as well."""
    algorithm = Certified(lowest_reward=-1, highest_reward=1, horizon=1)
    result = algorithm.improve(problem(low=-1.0, discount=0.5))
    found = gather_for(result, bounds=BOUNDS).estimates
    assert result.grounds.bounds.low == -1
    assert [found[name].estimate.limit for name in ("is", "pdis")] == [-2, -2]
