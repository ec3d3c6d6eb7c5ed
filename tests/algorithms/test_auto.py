"""N∧ by the percentile of the gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.auto.algorithm import SWEPT_N_WEDGES, Auto, telling_rewards
from spibb.algorithms.auto.own_order import OrderedProblem
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.assurance.posterior import posterior_improvement
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.small import SMALL
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.log import Log
from spibb.ope import off_policy_estimates
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.solve import evaluate


def gridworld_problem(n_episodes: int, seed: int) -> Problem:
    sampler = Sampler(gridworld_mdp(), gridworld_baseline())
    counts = sampler.counts(n_episodes, rng=np.random.default_rng(seed))
    return Problem.from_counts(counts, gridworld_baseline(), discount=0.95, v_max=1.0)


def test_the_choice_has_the_largest_gain_that_is_sure():
    result = Auto.over_thresholds().improve(gridworld_problem(50, 0))
    assert result.chosen.lower == max(c.lower for c in result.sweep)
    assert 0 < result.chosen.lower < result.chosen.gain
    assert len(result.sweep) == 20
    assert f"n_wedge = {result.chosen.n_wedge:g}" in result.reason


def test_the_policy_is_that_of_the_algorithm_chosen():
    problem = gridworld_problem(50, 1)
    result = Auto.over_thresholds().improve(problem)
    kind = {"pi-b": PiBSpibb, "pi-leq-b": PiLeqBSpibb}[result.chosen.algorithm]
    single = kind(result.chosen.n_wedge, result.algorithm.unseen).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, single.policy.probs)
    np.testing.assert_array_equal(result.bootstrapped, single.bootstrapped)
    changed = (single.policy.probs != problem.baseline.probs).any(axis=1).sum()
    assert result.chosen.states_changed == changed


def test_the_probabilities_are_those_of_the_posterior():
    problem = gridworld_problem(30, 2)
    result = Auto(draws=4000, kinds=("pi-b",), n_wedges=(3, 10)).improve(problem)
    assert [candidate.n_wedge for candidate in result.sweep] == [3, 10]
    for candidate in result.sweep:
        belief = PiBSpibb(candidate.n_wedge).improve(problem).posterior(draws=4000, seed=5)
        assert candidate.probability == pytest.approx(belief.probability, abs=0.06)
        assert candidate.gain == pytest.approx(belief.gain, abs=0.02)
        shared = np.quantile(belief.gains, candidate.level)
        assert candidate.lower == pytest.approx(shared, abs=0.02)


def falling(falls: int) -> Problem:
    """One state; both actions pay 1 to 3 on average, and one falls sometimes."""
    reward = np.tile([1.0, 2.0, 3.0, 2.0], 40)
    action = np.arange(160) // 4 % 2
    reward[:falls] = -200.0
    log = Log.from_arrays([0] * 160, action, reward + 0.5 * action, terminated=[True] * 160)
    return Problem.from_log(log, Policy(np.full((1, 2), 0.5)), discount=0.0)


@pytest.mark.parametrize(("falls", "delta"), [(0, 0.05), (2, 0.05 / 3)])
def test_candidates_share_delta_and_a_third_of_it_where_there_were_disasters(falls, delta):
    problem = falling(falls)
    assert bool(OrderedProblem.of(problem).belief.disasters.size) == bool(falls)
    one = Auto(kinds=("cautious",)).sweep(problem)
    assert [c.level for c in one] == [pytest.approx(delta / 2)]
    several = Auto(n_wedges=SWEPT_N_WEDGES, kinds=("cautious", "pi-b", "pi-leq-b")).sweep(problem)
    assert len({c.level for c in several}) == 1
    assert delta / len(several) - 1e-3 <= several[0].level <= delta / 2


@pytest.mark.parametrize("kind", [PiBSpibb, PiLeqBSpibb])
def test_auto_as_a_threshold_sweeps_one_kind(kind):
    problem = gridworld_problem(50, 1)
    result = kind(n_wedge="auto").improve(problem)
    assert {candidate.algorithm for candidate in result.sweep} == {kind.name}
    wanted = Auto(n_wedges=SWEPT_N_WEDGES, kinds=(kind.name,)).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, wanted.policy.probs)
    assert "here the log chose the policy" in str(result.certificate())
    (rows,) = kind.policies([kind(n_wedge="auto")], problem)
    np.testing.assert_array_equal(rows, result.policy.probs)


def test_a_threshold_is_a_number_or_auto():
    with pytest.raises(InputError, match="n_wedge is 'atuo', expected a number, or 'auto'"):
        PiBSpibb(n_wedge="atuo")


def test_the_sweep_holds_values_intervals_and_off_policy_estimates():
    counted = gridworld_problem(50, 1)
    log = Sampler(gridworld_mdp(), gridworld_baseline()).log(50, rng=np.random.default_rng(1))
    problem = Problem.from_log(log, gridworld_baseline(), discount=0.95, v_max=1.0)
    for bare, full in zip(Auto().sweep(counted), Auto().sweep(problem), strict=True):
        assert bare.off_policy is None
        assert (bare.value, bare.gain) == (full.value, full.gain)
        assert full.interval[0] <= full.gain <= full.interval[1]
    last = Auto(kinds=("pi-b",), n_wedges=(30,)).sweep(problem)[0]
    fit = PiBSpibb(30).improve(problem)
    assert last.value == pytest.approx(fit.value)
    report = off_policy_estimates(
        log, fit.policy, gridworld_baseline(), 0.95, rng=np.random.default_rng(0)
    )
    assert last.off_policy.value == pytest.approx(report["wpdis"].estimate.value)
    assert last.off_policy.effective_sample_size == pytest.approx(report.effective_sample_size)
    low, high = last.off_policy.interval
    assert low < last.off_policy.value < high


def test_without_a_safe_candidate_the_baseline_is_kept_with_the_reason():
    """One lucky win of b in three tries is no evidence against a's nine of twelve."""
    log = Log.from_arrays(
        ["s"] * 15, ["a"] * 12 + ["b"] * 3, [1.0] * 9 + [0.0] * 3 + [1.0, 1.0, 1.0],
        terminated=[True] * 15,
    )  # fmt: skip
    problem = Problem.from_log(log, Policy([[0.8, 0.2]], ["s"], ["a", "b"]), discount=0.0)
    result = Auto(n_wedges=(1,), delta=0.01, draws=1000).improve(problem)
    assert result.chosen is None
    np.testing.assert_array_equal(result.policy.probs, problem.baseline.probs)
    assert "the baseline is kept" in result.reason


def test_no_gain_keeps_the_baseline():
    log = Log.from_arrays(["s"] * 4, ["a", "b"] * 2, [0.0] * 4, terminated=[True] * 4)
    result = Auto().improve(Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"])))
    assert result.chosen is None
    assert result.reason == "no candidate differs from the baseline: it is kept"


def test_a_tolerated_loss_admits_more_candidates():
    problem = gridworld_problem(30, 7)  # where not all are sure
    swept = Auto.over_thresholds()
    strict, loose = (replace(swept, zeta=zeta).improve(problem) for zeta in (0.0, 0.2))
    for one, other in zip(strict.sweep, loose.sweep, strict=True):
        assert other.probability >= one.probability
    assert sum(c.probability for c in loose.sweep) > sum(c.probability for c in strict.sweep)


def test_in_simulation_it_gains_more_than_a_fixed_threshold_and_is_seldom_worse():
    """60 gridworld logs of 30 and of 50 trajectories; a fixed N∧ = 5 beside it."""
    mdp = gridworld_mdp()
    truth = exact_value(mdp, gridworld_baseline())
    for size, worst_share in ((30, 0.05), (50, 0.02)):
        gains, fixed = [], []
        for seed in range(60):
            problem = gridworld_problem(size, 1000 + seed)
            gains.append(exact_value(mdp, Auto(draws=400).improve(problem).policy) - truth)
            fixed.append(exact_value(mdp, PiBSpibb(5).improve(problem).policy) - truth)
        assert np.mean(np.array(gains) < -1e-9) <= worst_share
        assert np.mean(gains) > np.mean(fixed)


def clicks(n_clicks: int, n_rows: int, scale: float = 1.0, shift: float = 0.0) -> Problem:
    """Two arms in turn; all clicks are on the second."""
    reward = np.zeros(n_rows)
    reward[1 : 2 * n_clicks : 2] = 1.0
    log = Log.from_arrays(
        ["s"] * n_rows, ["a", "b"] * (n_rows // 2), reward * scale + shift,
        terminated=[True] * n_rows,
    )  # fmt: skip
    return Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"]), discount=0.0)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (-3.0, 7.0), (1e6, 3.0)])
def test_a_handful_of_rewards_that_stand_out_is_counted_in_any_unit(scale, shift):
    assert telling_rewards(clicks(4, 100, scale, shift).counts) == pytest.approx(4, rel=1e-3)


def test_too_few_clicks_keep_the_baseline():
    few, enough = (Auto().improve(clicks(n, 40)) for n in (4, 15))
    assert few.chosen is None
    assert "differ from the usual one, which is too few to learn from" in few.reason
    assert enough.chosen is not None


def test_few_episodes_give_no_probability():
    few, enough = (Auto().sweep(gridworld_problem(n, 0)) for n in (24, 25))
    assert {candidate.probability for candidate in few} == {None}
    assert None not in {candidate.probability for candidate in enough}


def share_worse(world: str, kind: str, size: int, logs: int = 40) -> float:
    """How often the choice is truly worse than the baseline."""
    worse = 0
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        mdp = SMALL[world].make(rng)
        baseline = SMALL[world].baseline(mdp, kind, rng)
        log = Sampler(mdp, baseline, SMALL[world].max_steps).log(size, rng=rng)
        problem = Problem.from_log(log, baseline, discount=mdp.discount)
        policy = Auto(draws=400).improve(problem).policy
        worse += exact_value(mdp, policy) < exact_value(mdp, baseline) - 1e-9
    return worse / logs


def almost_equal_arms(size: int, seed: int, n_states: int = 4, n_arms: int = 2) -> float:
    """The true gain of the choice where arms succeed in 48.5 and 51.5 % of the cases."""
    rng = np.random.default_rng(seed)
    rate = 0.5 + 0.015 * rng.permuted(np.tile(np.linspace(-1, 1, n_arms), (n_states, 1)), axis=1)
    state, arm = rng.integers(n_states, size=size), rng.integers(n_arms, size=size)
    reward = (rng.random(size) < rate[state, arm]).astype(float)
    log = Log.from_arrays(state, arm, reward, terminated=[True] * size)
    baseline = Policy.uniform(log.states, log.actions)
    problem = Problem.from_log(log, baseline, discount=0.0)
    moved = Auto().improve(problem).policy.probs - baseline.probs
    names = np.ix_([int(s) for s in log.states.labels], [int(a) for a in log.actions.labels])
    return float((moved * rate[names]).sum())


def test_the_best_of_almost_equal_arms_is_not_believed():
    """Eight arms, hardly different: whichever looks best does so by luck."""
    gains = np.array([almost_equal_arms(500, seed) for seed in range(150)])
    assert np.mean(gains < -1e-9) <= 0.02


@pytest.mark.parametrize("world", ["dense-rewards", "dense-costs"])
@pytest.mark.parametrize("kind", ["good", "uniform"])
def test_costs_make_it_no_less_safe_than_rewards(world, kind):
    """The same worlds with 1 taken off every reward, each step being the last as often."""
    assert share_worse(world, kind, 30) <= 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0"),
        ({"n_wedges": (0,)}, "n_wedges is 0"),
        ({"kinds": ("pi-c",)}, "did you mean 'pi-b'"),
        ({"draws": 0}, "draws is 0"),
        ({"zeta": -1.0}, "zeta is -1.0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Auto(**options)


def test_counts_are_enough():
    problem = random_problem(0, 6, 3, 200, 0.9)
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    np.testing.assert_array_equal(
        Auto().improve(bare).policy.probs, Auto().improve(problem).policy.probs
    )


@pytest.mark.parametrize("unseen", ["zero", "pessimistic", "optimistic"])
def test_values_refer_to_the_model_that_is_named_also_where_the_baseline_is_kept(unseen):
    result = Auto(unseen=unseen).improve(gridworld_problem(3, 0))
    assert result.chosen is None
    kept = evaluate(result.model, result.problem.baseline.probs)
    np.testing.assert_allclose(result.v, kept.v, atol=1e-9)


def test_models_that_chose_are_those_that_judge():
    """The posterior of the choice is not drawn again, and is what drawing it again would give."""
    problem = gridworld_problem(50, 0)
    result = Auto().improve(problem)
    kept = result.posterior()
    again = posterior_improvement(
        problem.counts, result.policy, problem.baseline, 0.95, rng=np.random.default_rng(0)
    )
    assert kept.values is result.values_in_models
    assert np.abs(kept.values - again.values).max() < 0.03 * again.values.std()
    assert kept.gain == pytest.approx(result.chosen.gain)
    assert kept.interval == pytest.approx(result.chosen.interval)
    assert len(result.posterior(draws=50).gains) == 50
    assert not np.array_equal(result.posterior(seed=1).values, kept.values)


def test_thresholds_are_solved_without_asking_what_else_the_log_says(monkeypatch):
    monkeypatch.setattr("spibb.algorithms.auto.own_order.Belief.of", None)
    assert len(Auto.over_thresholds().candidates(gridworld_problem(20, 0))[1]) == 20
