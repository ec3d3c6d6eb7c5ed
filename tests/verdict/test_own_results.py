"""What verdict and report ask of a result, a result of any algorithm can answer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from spibb import Auto, Certified, Improvement, InputError, PiBSpibb, Problem, Sampler
from spibb.change_certificate import ChangeCertificate, ChangeTest, certify_changes
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.report.assessment import assess
from spibb.report.origin import Origin
from spibb.verdict import gather_for, judge
from spibb.verdict.remedies import WhyUnchanged


@pytest.fixture(scope="module")
def problem():
    mdp = gridworld_mdp()
    baseline = gridworld_baseline()
    log = Sampler(mdp, baseline).log(300, rng=np.random.default_rng(2))
    return Problem.from_log(log, baseline, discount=mdp.discount)


def as_plain(result: Improvement, kind: type[Improvement] = Improvement) -> Improvement:
    """The same as a result that is of no algorithm's own class."""
    names = [field.name for field in dataclasses.fields(Improvement)]
    return kind(**{name: getattr(result, name) for name in names})


def test_a_policy_chosen_from_a_sweep_is_judged_by_the_quantile_that_chose_it(problem):
    result = Auto().improve(problem)
    assert result.chosen is not None
    found, own = gather_for(as_plain(result)), gather_for(result)
    assert (found.lower, found.shared, found.share) == (own.lower, own.shared, own.share)
    assert found.searched
    with pytest.raises(InputError, match="chose the policy at that level"):
        gather_for(as_plain(result), delta=0.2)


def test_any_result_may_rest_on_tests_and_declared_limits(problem):
    @dataclass(frozen=True, eq=False)
    class Tested(Improvement):
        return_limits: ClassVar[tuple[float, float]] = (0.0, 1.0)

        def tested(self, *_: object) -> ChangeCertificate:
            failed = ChangeTest((), False, 0.2, 0.4, 0.1, -0.1, 10, 100, 40)
            return certify_changes(
                (failed,), 0.05, "none passed", return_range=1.0, assumptions=(),
                episodes=(30, 100),
            )  # fmt: skip

    result = as_plain(PiBSpibb(n_wedge=1e9).improve(problem), Tested)
    found = gather_for(result)
    assert found.certified and found.searched
    assert result.estimate_limits == (0.0, 1.0)
    assert WhyUnchanged.of(result).remedy.endswith(
        "About 40 more episodes, if they are like these."
    )


def test_configurations_of_certified_are_improved_together_as_alone(problem):
    several = [
        Certified(delta, lowest_return=0, highest_return=1, seed=seed)
        for seed in (0, 1)
        for delta in (0.05, 0.2)
    ]
    for one, result in zip(several, Certified.improve_each(several, problem)):
        alone = one.improve(problem)
        assert result.algorithm == one
        assert result.tests == alone.tests
        np.testing.assert_array_equal(result.policy.probs, alone.policy.probs)


def test_values_that_have_not_settled_are_a_doubt_beside_the_verdict_and_in_the_report(problem):
    result = PiBSpibb(n_wedge=10).improve(problem)
    unsettled = dataclasses.replace(result, converged=False)
    assert result.converged and judge(result).doubts == ()
    (doubt,) = judge(unsettled).doubts
    assert doubt.startswith("the solver stopped before the values in the model had settled")
    assert assess(unsettled, Origin.of("test", 0)).verdict.doubts == (doubt,)
    assert judge(unsettled).headline.endswith(", with a doubt")
