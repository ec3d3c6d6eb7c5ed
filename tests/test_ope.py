"""Off-policy estimators and their lower bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import oracles_ope as slow
import pytest

from spibb import ope
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.problem import Problem
from spibb.bounds import means as mean_bounds
from spibb.episodes.propensities import behaviour_probs, disagreement
from spibb.errors import InputError
from spibb.evaluate import returns
from spibb.log import Log
from spibb.mdp import MDP
from spibb.ope.estimate import warning_of
from spibb.policy import Policy

N_LOGS = 2_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixed(mdp: MDP, seed: int, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A behaviour policy, and a target that shares some of its mass."""
    n_states, n_actions = mdp.shape
    mu = rng(seed).dirichlet(3 * np.ones(n_actions), n_states)
    other = rng(seed + 1).dirichlet(np.ones(n_actions), n_states)
    return mu, share * mu + (1 - share) * other


def compute(log, pi, mu, discount, **options) -> ope.Contributions:
    return ope.contributions(
        log, ope.Candidates.of(pi), behaviour_probs(log, mu), discount, **options
    )


# ---- closed forms -------------------------------------------------------------------------------

MU = Policy([[0.5, 0.5]], ["x"], ["a", "b"])
PI = Policy([[0.75, 0.25]], ["x"], ["a", "b"])


def hand_log(**options) -> Log:
    """Two episodes: (a, 1), (b, 3) and (b, 4)."""
    return Log.from_arrays(["x"] * 3, ["a", "b", "b"], [1, 3, 4], terminated=[0, 1, 1], **options)


def hand_model() -> MDP:
    """a pays 1, b pays 2, and both end: Q = (1, 2), V(π) = 1.25."""
    one = np.ones(2)
    return MDP.from_outcomes(
        np.zeros(2, dtype=int), np.arange(2), one, np.zeros(2, dtype=int), np.array([1.0, 2.0]),
        one.astype(bool), initial=np.ones(1), n_actions=2, discount=0.5,
        states=MU.states, actions=MU.actions,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("is", (0.75 * 2.5 + 0.5 * 4) / 2),
        ("wis", (0.75 * 2.5 + 0.5 * 4) / 1.25),
        ("pdis", (1.5 * 1 + 0.5 * 0.75 * 3 + 0.5 * 4) / 2),
        ("wpdis", (1.5 * 1 + 0.5 * 4) / 2 + 0.5 * (0.75 * 3) / (0.75 + 0.5)),
        ("dr", ((1.25 + 1.5 * 0.625 + 0.5 * 0.75 * 1) + (1.25 + 0.5 * 2)) / 2),
        ("wdr", 1.25 + (1.5 * 0.625 + 0.5 * 2) / 2 + 0.5 * (0.75 * 1) / (0.75 + 0.5)),
    ],
)
def test_hand_worked(name, value):
    report = ope.off_policy_estimates(hand_log(), PI, MU, 0.5, model=hand_model(), rng=rng())
    estimate = report[name].estimate
    assert estimate.value == pytest.approx(value, abs=1e-12)
    assert estimate.contributions.mean() == pytest.approx(value, abs=1e-12)
    assert estimate.weights == pytest.approx([0.75, 0.5])
    assert estimate.effective_sample_size == pytest.approx(1.25**2 / (0.75**2 + 0.5**2))
    assert "of 2 episodes" in estimate.warning or "one of the 2" in estimate.warning


def test_contributions_of_unweighted_estimators_by_hand():
    found = compute(hand_log(), PI.probs, MU.probs, 0.5, model=hand_model())
    assert found.terms["is"][:, 0] == pytest.approx([1.875, 2])
    assert found.terms["pdis"][:, 0] == pytest.approx([2.625, 2])
    assert found.terms["dr"][:, 0] == pytest.approx([2.5625, 2.25])


def test_on_policy_estimates_are_the_mean_return():
    log = hand_log()
    found = compute(log, MU.probs, MU.probs, 0.5, names=("is", "wis", "pdis"))
    for name in ("is", "wis", "pdis"):
        assert found.estimate(name).value == pytest.approx(3.25)


def test_logged_propensities_replace_the_behaviour_policy():
    log = hand_log(action_prob=[0.5, 0.5, 0.5])
    ours = ope.off_policy_estimates(log, PI, None, 0.5, rng=rng())
    theirs = ope.off_policy_estimates(log, PI, MU, 0.5, rng=rng())
    assert [row.estimate.name for row in ours.rows] == [*ope.ESTIMATORS]
    for a, b in zip(ours.rows, theirs.rows, strict=True):
        assert a.estimate.value == b.estimate.value


def cut_log() -> Log:
    """One step, then the record stops in x."""
    return Log.from_arrays(["x"], ["a"], [1], ["x"], [0], [1], action_labels=["a", "b"])


@pytest.mark.parametrize("name", ope.ESTIMATORS)
def test_truncated_episodes(name):
    """Recorded: only the reward 1 counts. Model: γ V̂(x) = 0.5 · 1.25 is added to it."""
    cut = {
        rule: compute(cut_log(), PI.probs, MU.probs, 0.5, model=hand_model(), truncated=rule)
        for rule in ope.TRUNCATED
    }
    weight = 1 if name in ("wis", "wpdis", "wdr") else 1.5
    start, control = (1.25, -1) if name in ("dr", "wdr") else (0, 0)
    recorded = start + weight * (1 + control)
    assert cut["recorded"].estimate(name).value == pytest.approx(recorded)
    assert cut["model"].estimate(name).value == pytest.approx(recorded + weight * 0.625)


def test_what_was_recorded_and_what_a_model_adds_may_be_below_a_limit_together():
    """-3 and V̂(x) = -1.25 are above -3.2; -3 - 0.5 · 1.25 is not, and a weight multiplies that."""
    log = Log.from_arrays(["x"], ["a"], [-3], ["x"], [0], [1], action_labels=["a", "b"])
    model = replace(hand_model(), rewards=-hand_model().rewards, outcomes=None)
    for limit, holds in ((-3.2, False), (-3.625, True), (-4.0, True)):
        found = compute(
            log, PI.probs, MU.probs, 0.5, model=model, truncated="model", lowest_return=limit
        ).estimate("is")
        assert bool(found.limited.min() >= limit - 1e-12) is holds
        assert found.limit == (limit if holds else -np.inf)
        assert ("completed by the model, below lowest_return" in found.no_limit) is not holds


def test_unknown_successor_of_a_cut_is_not_completed():
    log = Log.from_arrays(["x"], ["a"], [1], None, [0], [1], action_labels=["a", "b"])
    found = compute(log, PI.probs, MU.probs, 0.5, model=hand_model(), truncated="model")
    assert found.estimate("pdis").value == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["is", "pdis"])
def test_missing_mass_counts_as_the_lowest_return(name):
    """w = 0.5 in every episode: half of what π does is not in the log, and returns L = −4."""
    log = Log.from_arrays(["x"] * 2, ["b"] * 2, [-1, -1], terminated=[1, 1],
                          action_labels=["a", "b"])  # fmt: skip
    found = compute(log, PI.probs, MU.probs, 0.5, names=(name,), lowest_return=-4)
    assert found.estimate(name).pessimistic.value == pytest.approx(0.5 * -1 + 0.5 * -4)
    assert found.estimate(name).value == pytest.approx(0.5 * -1)


def test_shifted_contributions_by_hand():
    """L = −1, γ = 0.5: weights 1.5, 0.75 and 0.5; the end of the process pays 0 for ever."""
    found = compute(hand_log(), PI.probs, MU.probs, 0.5, names=("is", "pdis"), lowest_return=-1)
    assert found.limited["is"][:, 0] == pytest.approx([1.875 - 0.25, 2 - 0.5])
    first = 2.625 - (1 - 0.5 * (1.5 + 0.5 * 0.75) - 0.25 * 0.75)
    second = 2 - (1 - 0.5 * 0.5 - 0.5 * 0.5)
    assert found.limited["pdis"][:, 0] == pytest.approx([first, second])
    assert found.terms["is"][:, 0] == pytest.approx([1.875, 2])
    assert found.terms["pdis"][:, 0] == pytest.approx([2.625, 2])


def test_neither_estimates_nor_their_approximate_bounds_depend_on_the_limit():
    """Returns of −63 to −48: with L = −1,000, is was +359, and Student's bound above the truth."""
    n, draws = 200, rng(7)
    action = np.where(draws.random(n) < 0.5, "a", "b")
    log = Log.from_arrays(["x"] * n, action, draws.uniform(-63, -48, n), terminated=[True] * n)
    found = [
        ope.off_policy_estimates(
            log, PI, MU, 0.5, model=hand_model(), lowest_return=low, rng=rng(), highest_return=0
        )
        for low in (-64.0, -1000.0)
    ]
    for near, far in zip(*((*report.rows, *report.differences) for report in found), strict=True):
        assert near.estimate.value == far.estimate.value
        bounds = [{bound.name: bound for bound in row.bounds} for row in (near, far)]
        for name in ("student-t", "bca"):
            assert bounds[0][name].value == bounds[1][name].value
    weights = np.where(action == "a", 1.5, 0.5)
    limited = -1000 + weights * (log.reward + 1000)
    for bound, of in (("betting", mean_bounds.betting_bound),
                      ("bernstein", mean_bounds.bernstein_bound)):  # fmt: skip
        exact = next(b for b in found[1]["is"].bounds if b.name == bound)
        assert exact.value == pytest.approx(max(of(limited, 0.05, lowest=-1000.0), -1000.0))


def test_bernstein_is_never_below_the_limit():
    report = ope.off_policy_estimates(
        Log.from_arrays(["x"] * 5, list("aabba"), [1.0] * 5, terminated=[True] * 5), PI, MU, 0.5,
        lowest_return=0, rng=rng(), bounds=("bernstein",),
    )  # fmt: skip
    assert report["is"].bounds[0].value == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_limit_that_nobody_declared_gives_no_exact_bound(sign):
    """A log proves no limit: neither 0 nor the lowest return that happens to be in it."""
    log = Log.from_arrays(["x"] * 40, list("aabb") * 10, sign * np.arange(40.0),
                          terminated=[True] * 40)  # fmt: skip
    report = ope.off_policy_estimates(log, PI, MU, 0.5, rng=rng(), highest_return=100)
    declared = ope.off_policy_estimates(
        log, PI, MU, 0.5, rng=rng(), highest_return=100, lowest_return=-100
    )
    for bare, bound in zip((*report.rows, *report.differences),
                           (*declared.rows, *declared.differences)):  # fmt: skip
        assert bare.estimate.value == bound.estimate.value
        refused = {b.name: b.refusal for b in bare.bounds if b.refusal}
        assert set(refused) == {"bernstein", "betting"}
        assert not any("the declared" in refusal for refusal in refused.values())
    assert "lowest_return was not declared; declare the lowest possible return" in (
        report["is"].bounds[0].refusal
    )


def test_a_log_without_any_possible_episode_says_so():
    log = Log.from_arrays(["x"] * 5, ["a"] * 5, [1.0] * 5, terminated=[True] * 5,
                          action_labels=["a", "b"])  # fmt: skip
    never = Policy([[0.0, 1.0]], ["x"], ["a", "b"])
    report = ope.off_policy_estimates(log, never, MU, 0.5, rng=rng())
    assert {len(row.bounds) for row in report.rows} == {len(ope.BOUNDS)}
    for row in report.rows:
        for bound in row.bounds[2:]:
            assert "none of the 5 episodes is possible under the policy" in bound.refusal


# ---- against slow transcriptions ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rule", ope.TRUNCATED)
def test_all_lanes_equal_the_slow_estimators(seed, rule):
    mdp = slow.random_mdp(rng(seed), end=0.2)
    mu, pi = mixed(mdp, seed)
    log = slow.simulate(mdp, mu, 12, rng(seed), cap=6)
    assert log.truncated.any()
    alphas = np.array([0, 0.3, 1])
    candidates = ope.Candidates.mixtures(pi, mu, alphas)
    model = slow.random_mdp(rng(seed + 50))
    propensities = behaviour_probs(log, mu)
    found = ope.contributions(log, candidates, propensities, 0.9, model=model, truncated=rule)
    for lane, alpha in enumerate(alphas):
        lane_pi = (1 - alpha) * pi + alpha * mu
        q, v = slow.exact_values(model, lane_pi)
        episodes = slow.unroll(log, lane_pi, propensities, 0.9, q, v, rule == "model")
        ones = np.ones(12)
        for name in ("is", "pdis", "dr"):
            terms = getattr(slow, f"slow_{name}")(episodes, 0.9)
            np.testing.assert_allclose(found.terms[name][:, lane], terms, rtol=1e-10)
        for name in ("wis", "wpdis", "wdr"):
            value = getattr(slow, f"slow_{name}")(episodes, 0.9, ones)
            assert found.estimate(name, lane).value == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("name", ["wis", "wpdis", "wdr"])
def test_weighted_contributions_are_the_influence_of_each_episode(name):
    """X_i = θ + E ∂θ/∂m_i, where episode i counts m_i times."""
    mdp = slow.random_mdp(rng(3), end=0.3)
    mu, pi = mixed(mdp, 3)
    log = slow.simulate(mdp, mu, 10, rng(3), cap=5)
    model = slow.random_mdp(rng(9))
    found = compute(log, pi, mu, 0.9, model=model).estimate(name)
    q, v = slow.exact_values(model, pi)
    episodes = slow.unroll(log, pi, behaviour_probs(log, mu), 0.9, q, v)
    for i in range(10):
        up, down = np.ones(10), np.ones(10)
        up[i], down[i] = 1 + 1e-5, 1 - 1e-5
        estimator = getattr(slow, f"slow_{name}")
        slope = (estimator(episodes, 0.9, up) - estimator(episodes, 0.9, down)) / 2e-5
        assert found.contributions[i] == pytest.approx(found.value + 10 * slope, abs=1e-7)


# ---- simulation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_unbiased_over_2000_logs(seed):
    """Means of is, pdis and dr over 2,000 logs of 10 episodes lie within 3 standard errors of ρ."""
    mdp = slow.random_mdp(rng(seed), end=0.4)
    mu, pi = mixed(mdp, seed)
    log = slow.simulate(mdp, mu, N_LOGS * 10, rng(seed + 100))
    wrong_model = slow.random_mdp(rng(seed + 200))
    found = compute(log, pi, mu, 0.9, model=wrong_model)
    truth = slow.rho(mdp, pi)
    for name in ("is", "pdis", "dr"):
        values = found.terms[name][:, 0].reshape(N_LOGS, 10).mean(axis=1)
        error = values.std(ddof=1) / math.sqrt(N_LOGS)
        assert abs(values.mean() - truth) < 3 * error, name
        assert error < 0.02


@pytest.mark.parametrize("seed", [0, 1])
def test_truncated_returns_are_unbiased_for_the_recorded_part(seed):
    """With a cap of 3 steps, is, pdis and dr estimate the 3-step return, whatever the model."""
    mdp = slow.random_mdp(rng(seed), end=0.1)
    mu, pi = mixed(mdp, seed)
    log = slow.simulate(mdp, mu, 20_000, rng(seed), cap=3)
    found = compute(log, pi, mu, 0.9, model=slow.random_mdp(rng(seed + 7)))
    p, v = slow.dense_rows(mdp), np.zeros(len(pi))
    for _ in range(3):
        v = (pi * (mdp.rewards + 0.9 * p @ v)).sum(axis=1)
    for name in ("is", "pdis", "dr"):
        terms = found.terms[name][:, 0]
        error = terms.std(ddof=1) / math.sqrt(len(terms))
        assert abs(terms.mean() - mdp.initial @ v) < 3 * error, name


def test_completed_by_the_true_model_the_full_value_is_unbiased():
    mdp = slow.random_mdp(rng(4), end=0.1)
    mu, pi = mixed(mdp, 4)
    log = slow.simulate(mdp, mu, 20_000, rng(4), cap=3)
    found = compute(log, pi, mu, 0.9, model=mdp, truncated="model")
    for name in ("is", "pdis", "dr"):
        terms = found.terms[name][:, 0]
        error = terms.std(ddof=1) / math.sqrt(len(terms))
        assert abs(terms.mean() - slow.rho(mdp, pi)) < 3 * error, name


@pytest.mark.parametrize("name", ["wis", "wpdis", "wdr"])
def test_weighted_estimators_converge(name):
    mdp = slow.random_mdp(rng(5), end=0.4)
    mu, pi = mixed(mdp, 5)
    truth = slow.rho(mdp, pi)
    errors = []
    for n in (20, 20_000):
        log = slow.simulate(mdp, mu, 20 * n if n == 20 else n, rng(n))
        found = [
            compute(log.episodes(np.arange(i, i + n)), pi, mu, 0.9, model=mdp).estimate(name)
            for i in range(0, log.n_episodes, n)
        ]
        errors.append(np.mean([abs(estimate.value - truth) for estimate in found]))
    assert errors[1] < 0.03
    assert errors[1] < errors[0]


def deterministic_chain(n_states: int = 6) -> MDP:
    """Action 0 walks right, 1 stays; each state pays its own amounts; the last one ends."""
    x, a = (grid.reshape(-1) for grid in np.indices((n_states, 2)))
    return MDP.from_outcomes(
        x, a, np.ones(len(x)), np.minimum(x + (a == 0), n_states - 1), np.sin(1 + x + 2 * a),
        (x == n_states - 1), initial=np.eye(n_states)[0], n_actions=2, discount=0.9,
    )  # fmt: skip


def test_dr_with_a_perfect_model_of_a_deterministic_mdp_has_no_variance():
    mdp = deterministic_chain()
    mu, pi = np.tile([0.5, 0.5], (6, 1)), np.tile([0.8, 0.2], (6, 1))
    log = slow.simulate(mdp, mu, 200, rng(0))
    found = compute(log, pi, mu, 0.9, model=mdp)
    truth = slow.rho(mdp, pi)
    np.testing.assert_allclose(found.terms["dr"], truth, atol=1e-10)
    np.testing.assert_allclose(found.terms["wdr"], truth, atol=1e-10)
    assert found.terms["pdis"].std() > 0.1


def test_pdis_varies_less_than_is_on_long_horizons():
    mdp = slow.random_mdp(rng(6), end=0.02)
    mu, pi = mixed(mdp, 6, share=0.8)
    log = slow.simulate(mdp, mu, 5_000, rng(6), cap=60)
    found = compute(log, pi, mu, 0.9, names=("is", "pdis"))
    assert found.terms["pdis"].var() < 0.5 * found.terms["is"].var()


# ---- effective sample size ----------------------------------------------------------------------


def test_effective_sample_size_and_warnings():
    assert ope.effective_sample_size(np.ones(40)) == pytest.approx(40)
    assert ope.effective_sample_size(np.array([1e200, 0, 0])) == pytest.approx(1)
    assert ope.effective_sample_size(np.zeros(3)) == 0
    warn = warning_of
    assert warn(np.ones(40), 40) is None
    assert "9.0 of 9 episodes" in warn(np.ones(9), 9)
    assert "one of the 100 episodes carries 91%" in warn(np.r_[1000, np.ones(99)], 1.2)
    assert "none of the 3 episodes" in warn(np.zeros(3), 0)
    assert "overflow" in warn(np.array([1, np.inf]), 0)


def test_a_policy_that_no_episode_follows():
    """Weights are all 0: weighted estimates are undefined, and the report says so."""
    only_a = Policy([[1, 0]], ["x"], ["a", "b"])
    log = Log.from_arrays(["x"] * 3, ["b"] * 3, [1, 1, 1], terminated=[1] * 3,
                          action_labels=["a", "b"])  # fmt: skip
    report = ope.off_policy_estimates(log, only_a, MU, 0.5, rng=rng())
    assert "no evidence" in report.warning
    assert report.effective_sample_size == 0
    assert report["is"].estimate.value == 0
    assert math.isnan(report["wis"].estimate.value)
    assert all(bound.refusal for bound in report["wpdis"].bounds)


@pytest.mark.parametrize(("n", "keep"), [(100, 0.05), (8, 0.5), (40, 0.01)])
def test_no_approximate_bound_of_an_estimate_that_is_not_to_be_relied_on(n, keep):
    """One step or five, nearly always another action, or few episodes: no t and no BCa."""
    steps = 5 if n == 100 else 1
    action = np.arange(n * steps) % 2
    log = Log.from_arrays(
        np.zeros(n * steps, int), action, (action == 1).astype(float),
        terminated=np.arange(n * steps) % steps == steps - 1,
    )  # fmt: skip
    target, mu = Policy([[keep, 1 - keep]]), Policy([[0.5, 0.5]])
    if n == 40:
        target, mu = mu, Policy([[0.95, 0.05]])  # a mean weight of 5
    report = ope.off_policy_estimates(log, target, mu, 0.9, lowest_return=0, rng=rng())
    assert report.warning
    for row in (*report.rows, *report.differences):
        found = {bound.name: bound for bound in row.bounds}
        assert found["student-t"].refusal == found["bca"].refusal == row.estimate.warning
    if not report.refuted:
        assert report["is"].bounds[1].refusal is None  # betting is exact


def test_report_carries_every_bound_or_its_refusal():
    mdp = slow.random_mdp(rng(8), end=0.4)
    mu, pi = mixed(mdp, 8)
    log = slow.simulate(mdp, mu, 400, rng(8))
    report = ope.off_policy_estimates(
        log, Policy(pi), Policy(mu), 0.9, delta=0.1, model=mdp, lowest_return=0, rng=rng()
    )
    assert [row.estimate.name for row in report.rows] == list(ope.ESTIMATORS)
    assert report.n_episodes == 400
    assert report.n_truncated == 0
    assert report.warning is None
    for row in report.rows:
        for bound in row.bounds:
            assert (bound.refusal is None) == math.isfinite(bound.value)
            assert bound.refusal is not None or bound.value < row.estimate.value
    assert report["is"].bounds[0].refusal is None
    assert "biased" in report["wis"].bounds[0].refusal


def test_labels_of_policy_and_log_may_differ_in_order():
    backwards = Policy([[0.25, 0.75], [1, 0]], ["x", "never seen"], ["b", "a"])
    ours = ope.off_policy_estimates(hand_log(), backwards, MU, 0.5, rng=rng())
    assert ours["is"].estimate.value == pytest.approx(1.9375)


# ---- lower bounds -------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.05, 0.5, 0.9])
def test_bernstein_is_the_printed_formula(delta):
    x, c = rng(1).exponential(2, 40), rng(2).uniform(0.5, 6, 40)
    expected = slow.slow_bernstein(x, c, delta)
    assert mean_bounds.bernstein_bound(x, delta, thresholds=c) == pytest.approx(expected, rel=1e-12)
    same = slow.slow_bernstein(x, np.full(40, 3.0), delta)
    assert mean_bounds.bernstein_bound(x, delta, thresholds=3.0) == pytest.approx(same, rel=1e-12)


def test_bernstein_by_hand():
    """Equal values: no spread, so 1 − c · 7 ln(2/δ) / (3(n − 1))."""
    bound = mean_bounds.bernstein_bound(np.ones(101), 2 / math.e, thresholds=2.0)
    assert bound == pytest.approx(1 - 2 * 7 / 300)


def test_bernstein_shifts_by_the_declared_limit():
    x = rng(3).normal(0, 1, 500).clip(-3, None)
    shifted = mean_bounds.bernstein_bound(x + 3, 0.1) - 3
    assert mean_bounds.bernstein_bound(x, 0.1, lowest=-3) == pytest.approx(shifted)


def test_bernstein_of_negative_returns():
    """Rewards down to −1: with L = −1/(1 − γ) no contribution of is or pdis is below L."""
    mdp = slow.random_mdp(rng(2), end=0.4)
    mu, pi = mixed(mdp, 2)
    log = slow.simulate(mdp, mu, 4_000, rng(2))
    shifted = replace(log, reward=log.reward - 1)
    found = compute(shifted, pi, mu, 0.9, names=("is", "pdis"), lowest_return=-10)
    truth = slow.rho(replace(mdp, rewards=mdp.rewards - 1, outcomes=None), pi)
    for name in ("is", "pdis"):
        estimate = found.estimate(name)
        bound = ope.lower_bound(estimate, "bernstein", 0.1, rng=rng())
        assert -10 < bound.value < truth
        assert estimate.limited.min() >= -10
        error = estimate.contributions.std() / math.sqrt(4_000)
        assert abs(estimate.value - truth) < 3 * error


def test_student_t_by_hand():
    """n = 2: t_{0.75, 1} = 1, σ = √2, so 1 − √2/√2 · 1 = 0 for the values 0 and 2."""
    assert mean_bounds.student_t_bound(np.array([0.0, 2.0]), 0.25) == pytest.approx(0)
    x = rng(0).normal(size=12)
    t_90_11 = 1.363430318020520
    expected = x.mean() - np.sqrt(((x - x.mean()) ** 2).sum() / 11 / 12) * t_90_11
    assert mean_bounds.student_t_bound(x, 0.1) == pytest.approx(expected, rel=1e-9)
    assert mean_bounds.student_t_bound(x, 0.9) > x.mean() > mean_bounds.student_t_bound(x, 0.1)


@pytest.mark.parametrize("delta", [0.05, 0.5, 0.9])
def test_bca_agrees_with_scipy(delta):
    from scipy.stats import bootstrap

    x = rng(4).exponential(1, 60)
    theirs = bootstrap(
        (x,), np.mean, confidence_level=1 - delta, alternative="greater", method="BCa",
        n_resamples=40_000, rng=rng(5),
    ).confidence_interval.low  # fmt: skip
    ours = mean_bounds.bca_bound(x, delta, rng=rng(6), resamples=40_000)
    assert ours == pytest.approx(theirs, abs=0.006)


@pytest.mark.parametrize("centre", [0.1, 0.3, 1.0, 2.38])
def test_bca_does_not_depend_on_the_unit(centre):
    """Many resampled means are equal to the mean, up to rounding."""
    x = np.full(100, centre)
    x[:2] += 1, -1
    found = [mean_bounds.bca_bound(u * x, 0.05, rng=rng(3)) / u for u in (1, 0.1, 3, 5, 7)]
    assert found == pytest.approx([found[0]] * 5)


@pytest.mark.parametrize("sign", [-1, 1])
def test_bca_never_falls_as_delta_grows(sign):
    """Strong skew: 1 − a z changes its sign at a small δ (left skew) or at a large one."""
    x = np.zeros(50)
    x[0] = sign
    deltas = np.array([1e-12, 1e-10, 1e-8, 1e-4, 0.05, 0.5])
    deltas = np.append(deltas, 1 - deltas[-2::-1])
    found = [mean_bounds.bca_bound(x, delta, rng=rng(4)) for delta in deltas]
    assert (np.diff(found) >= 0).all()
    assert found[0] < found[-1]


def test_bca_is_repeatable_and_survives_equal_values():
    x = rng(0).random(30)
    assert mean_bounds.bca_bound(x, 0.1, rng=rng(1)) == mean_bounds.bca_bound(x, 0.1, rng=rng(1))
    assert mean_bounds.bca_bound(x, 0.1, rng=rng(1)) != mean_bounds.bca_bound(x, 0.1, rng=rng(2))
    assert mean_bounds.bca_bound(np.full(9, 0.1), 0.1, rng=rng(1)) == pytest.approx(0.1)


@pytest.fixture(scope="module")
def well_behaved() -> tuple[np.ndarray, float]:
    """pdis contributions of 2,000 logs of 80 episodes, and the truth."""
    mdp = slow.random_mdp(rng(11), end=0.5)
    mu, pi = mixed(mdp, 11, share=0.9)
    log = slow.simulate(mdp, mu, N_LOGS * 80, rng(12))
    found = compute(log, pi, mu, 0.9, names=("pdis",))
    return found.terms["pdis"][:, 0].reshape(N_LOGS, 80), slow.rho(mdp, pi)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_coverage_over_2000_logs(well_behaved, delta):
    samples, truth = well_behaved
    draws = rng(13)
    bernstein = np.mean([mean_bounds.bernstein_bound(x, delta) <= truth for x in samples])
    student = np.mean([mean_bounds.student_t_bound(x, delta) <= truth for x in samples])
    bca = np.mean(
        [mean_bounds.bca_bound(x, delta, rng=draws, resamples=1_000) <= truth for x in samples]
    )
    assert bernstein >= 1 - delta
    assert abs(student - (1 - delta)) < 0.03
    assert abs(bca - (1 - delta)) < 0.03


def two_step_log(draws: np.random.Generator, prob: float, rewards: tuple[float, float]) -> Log:
    """300 episodes of a state that pays first, then of one where y has probability `prob`."""
    rare = np.repeat(draws.random(300) < prob, 2) & (np.arange(600) % 2 == 1)
    return Log.from_arrays(
        ["a", "b"] * 300, np.where(rare, "y", "x"), rewards * 300, terminated=[False, True] * 300,
        state_labels=["a", "b"], action_labels=["x", "y"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rewards", "lowest"), [((1.0, 0.1), 1.0), ((1.0, 0.1), 0.0), ((-1.0, -0.1), -10.0)]
)
@pytest.mark.parametrize("prob", [0.0005, 0.05])
def test_exact_bounds_hold_whatever_the_sign_of_the_limit(rewards, lowest, prob):
    """Every return is r_0 + γ r_1. A rare action, of weight 0.5 / prob, is missing in most logs."""
    draws, truth = rng(16), rewards[0] + 0.9 * rewards[1]
    mu, pi = (Policy([[1, 0], [1 - p, p]], ["a", "b"], ["x", "y"]) for p in (prob, 0.5))
    above = dict.fromkeys(("is", "pdis"), 0)
    for _ in range(100):
        report = ope.off_policy_estimates(
            two_step_log(draws, prob, rewards), pi, mu, 0.9, delta=0.1, rng=draws,
            lowest_return=lowest, bounds=("bernstein", "betting"),
        )  # fmt: skip
        for name in above:
            limited, bounds = report[name].estimate.limited, report[name].bounds
            assert limited.min() >= report[name].estimate.limit - 1e-9
            above[name] += max(bound.value for bound in bounds) > truth + 1e-9
    assert max(above.values()) <= 20


def test_where_the_approximate_bounds_fail():
    """Rare disasters, few episodes: most samples hold none, and both bounds are then too high."""
    draws, truth = rng(14), 0.98 - 0.02 * 20
    samples = np.where(draws.random((500, 20)) < 0.02, -20.0, 1.0)
    samples += 0.01 * draws.standard_normal(samples.shape)
    student = np.mean([mean_bounds.student_t_bound(x, 0.05) <= truth for x in samples])
    bca = np.mean([mean_bounds.bca_bound(x, 0.05, rng=draws) <= truth for x in samples])
    bernstein = np.mean(
        [mean_bounds.bernstein_bound(x, 0.05, lowest=-21) <= truth for x in samples]
    )
    assert student < 0.6
    assert bca < 0.6
    assert bernstein == 1


def test_long_right_tails_make_student_t_conservative():
    """Heavy importance weights: mean and spread are too low together, so it holds too often."""
    samples = rng(15).lognormal(-2, 2, (1_000, 30))
    assert np.mean([mean_bounds.student_t_bound(x, 0.2) <= 1 for x in samples]) > 0.9


# ---- bad input ----------------------------------------------------------------------------------


def test_behaviour_that_never_takes_a_logged_action():
    never_b = Policy([[1, 0]], ["x"], ["a", "b"])
    with pytest.raises(InputError, match=r"action 'b' in state 'x', which the log takes in 2 rows"):
        ope.off_policy_estimates(hand_log(), PI, never_b, 0.5, rng=rng())


def test_missing_propensities():
    with pytest.raises(InputError, match="no column 'action_prob'"):
        ope.off_policy_estimates(hand_log(), PI, None, 0.5, rng=rng())


@pytest.mark.parametrize(
    ("lowest", "refused"),
    [(-10, {"dr"}), (-5, {"dr", "pdis"}), (-0.5, {"dr", "pdis", "is"})],
)
def test_bernstein_needs_a_limit_that_no_episode_can_be_below(lowest, refused):
    """Not one that this sample happens to keep: rewards down to −1 make pdis need −1/(1 − γ)."""
    mdp = slow.random_mdp(rng(2), end=0.4)
    mu, pi = mixed(mdp, 2)
    log = slow.simulate(mdp, mu, 400, rng(2))
    shifted = replace(log, reward=np.minimum(log.reward, 1) - 1)
    found = compute(shifted, pi, mu, 0.9, names=("is", "pdis", "dr"), lowest_return=lowest,
                    model=mdp)  # fmt: skip
    for name in ("is", "pdis", "dr"):
        estimate = found.estimate(name)
        if name in refused:
            remedy = "use is or pdis" if name == "dr" else "declare a lower one"
            with pytest.raises(InputError, match=f"of {name!r}: .*; {remedy}$"):
                ope.lower_bound(estimate, "bernstein", 0.1, rng=rng())
        else:
            assert ope.lower_bound(estimate, "bernstein", 0.1, rng=rng()).value < estimate.value


@pytest.mark.parametrize("offset", [0.0, 2e9, -2e9])
def test_a_return_below_the_limit_is_found_however_large_the_limit_is(offset):
    log = Log.from_arrays(["x"] * 4, list("abab"), [offset + r for r in (0, 1, 1, -0.001)],
                          terminated=[True] * 4)  # fmt: skip
    assert "is" in ope.no_limits(log, 0.9, offset)
    assert "is" not in ope.no_limits(log.episodes(np.arange(3)), 0.9, offset)


def test_bernstein_for_doubly_robust_was_false_where_no_value_of_the_sample_shows_it():
    """A bad model and a large weight: rare contributions of dr are far below every return.

    Arm b pays 1 and has probability 0.001; the model says 3 for it. dr of the policy that plays b
    is 3 in most samples, a bound above the truth 1, and −1,997 in one episode of a thousand.
    """
    log = Log.from_arrays(["x"] * 500, ["a"] * 500, [0.0] * 500, terminated=[True] * 500,
                          action_labels=["a", "b"])  # fmt: skip
    mu, pi = Policy([[0.999, 0.001]], ["x"], ["a", "b"]), Policy([[0.0, 1.0]], ["x"], ["a", "b"])
    model = replace(hand_model(), rewards=np.array([[0.0, 3.0]]), outcomes=None)
    report = ope.off_policy_estimates(log, pi, mu, 0.5, model=model, rng=rng())
    assert report["dr"].estimate.contributions.min() > 1
    assert "can be below any limit" in report["dr"].bounds[0].refusal


@pytest.mark.parametrize("delta", [1e-17, 1e-30, 1e-300])
def test_student_t_is_finite_for_any_delta(delta):
    x = np.arange(20.0)
    assert -np.inf < mean_bounds.student_t_bound(x, delta) < mean_bounds.student_t_bound(x, 1e-12)
    assert mean_bounds.student_t_bound(np.ones(20), delta) == 1


def test_a_behaviour_that_contradicts_action_prob_is_refused():
    log = Log.from_arrays(["x"] * 4, ["a", "a", "b", "b"], [1.0] * 4, terminated=[True] * 4,
                          action_prob=[0.9, 0.9, 0.1, 0.1])  # fmt: skip
    with pytest.raises(InputError, match=r"in 4 of 4 rows \(state 'x', action 'a': 0.9 in the log"):
        ope.off_policy_estimates(log, MU, MU, 0.5, rng=rng())
    assert ope.off_policy_estimates(log, MU, None, 0.5, rng=rng()).n_episodes == 4


@pytest.mark.parametrize(
    ("logged", "agrees"), [(0.33, True), (0.333, True), (0.33333333, True), (0.34, False),
                           (0.332, False), (0.3330001, False)],
)  # fmt: skip
def test_recorded_probabilities_may_be_rounded(logged, agrees):
    log = Log.from_arrays(["x"], ["a"], [1.0], terminated=[True], action_prob=[logged],
                          action_labels=["a", "b"])  # fmt: skip
    assert (disagreement(log, np.array([[1 / 3, 2 / 3]])) is None) == agrees


def test_bernstein_outside_the_declared_range_is_an_error():
    with pytest.raises(InputError, match=r"-0.5 of episode 2 is below the limit 0"):
        mean_bounds.bernstein_bound(np.array([1, 2, -0.5, 3, 1]), 0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mean_bounds.bernstein_bound(np.ones(9), 0.1, thresholds=0.0),
            "thresholds holds 0",
        ),
        (lambda: mean_bounds.bernstein_bound(np.ones(3), 0.1), "3 episodes, expected at least 4"),
        (lambda: mean_bounds.student_t_bound(np.ones(1), 0.1), "1 episodes, expected at least 2"),
        (lambda: mean_bounds.student_t_bound(np.ones(5), 1.1), "delta is 1.1"),
        (lambda: mean_bounds.student_t_bound(np.array([1, np.nan]), 0.1), "row 1 is nan"),
        (
            lambda: mean_bounds.bca_bound(np.arange(5.0), 0.1, rng=rng(), resamples=0),
            "resamples is 0",
        ),
        (lambda: compute(hand_log(), PI.probs, MU.probs, 0.5), "'dr' needs a model"),
        (
            lambda: compute(hand_log(), PI.probs, MU.probs, 0.5, names=("is",), truncated="model"),
            "truncated='model' needs a model",
        ),
        (
            lambda: compute(hand_log(), PI.probs, MU.probs, 0.9, model=hand_model()),
            "discount is 0.5 and the estimate's is 0.9",
        ),
        (
            lambda: compute(hand_log(), PI.probs, MU.probs, 0.5, names=("wsi",)),
            "did you mean 'wis'",
        ),
        (
            lambda: compute(hand_log(), PI.probs, MU.probs, 0.5, names=("is",), truncated="cut"),
            "truncated is 'cut'",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_no_confidence_gives_an_infinite_bound():
    x = np.arange(5.0)
    assert mean_bounds.student_t_bound(x, 1.0) == math.inf
    assert mean_bounds.bca_bound(x, 1.0, rng=rng()) == math.inf


# ---- the difference to the behaviour ------------------------------------------------------------


def difference_report(n=400, **options):
    rng = np.random.default_rng(11)
    mdp = slow.random_mdp(rng)
    behaviour, target = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(3), size=4)
    log = slow.simulate(mdp, behaviour, n, rng)
    made = Policy(behaviour, log.states, log.actions)
    report = ope.off_policy_estimates(
        log, Policy(target, log.states, log.actions), made, mdp.discount,
        rng=np.random.default_rng(0), **options,
    )  # fmt: skip
    return report, log, slow.rho(mdp, target) - slow.rho(mdp, behaviour)


def test_a_difference_is_the_estimate_less_what_the_log_earned():
    report, log, _ = difference_report()
    assert report.earned == pytest.approx(returns(log, 0.9).mean())
    for row, difference in zip(report.rows, report.differences, strict=True):
        assert difference.estimate.name == row.estimate.name
        assert difference.estimate.value == pytest.approx(row.estimate.value - report.earned)
        assert report.difference(row.estimate.name) is difference
    report, _, _ = difference_report(truncated="model")
    assert len(report.differences) == 6


def test_the_behaviour_itself_differs_by_nothing():
    rng = np.random.default_rng(4)
    mdp = slow.random_mdp(rng)
    pi = rng.dirichlet(np.ones(3), size=4)
    log = slow.simulate(mdp, pi, 50, rng)
    made = Policy(pi, log.states, log.actions)
    report = ope.off_policy_estimates(log, made, made, mdp.discount, rng=rng)
    for name in ("is", "wis", "pdis", "wpdis"):
        np.testing.assert_allclose(report.difference(name).estimate.contributions, 0, atol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-9])
def test_rounding_is_no_gain(unit):
    """Policy and behaviour are the same, or all returns are."""
    log = difference_report()[1]
    same = Policy.uniform(log.states, log.actions)
    scaled = replace(log, reward=unit * log.reward)
    for one in (scaled, replace(scaled, reward=np.where(log.terminated, unit * 0.7, 0.0))):
        report = ope.off_policy_estimates(one, same, same, 0.9, rng=rng(), bounds=("student-t",))
        for name in ("is", "wis", "pdis", "wpdis"):
            found = report.difference(name)
            assert found.bounds[0].refusal or found.bounds[0].value == found.estimate.value == 0
        assert not report.conclusion.startswith(f"{KEEP}. 1 of 6")


def test_exact_bounds_of_a_difference_need_both_limits():
    without = difference_report(lowest_return=0)[0].difference("is").bounds
    assert {bound.name for bound in without[:2] if bound.refusal} == {"bernstein", "betting"}
    assert "no highest_return was declared; declare one" in without[0].refusal
    low = difference_report(lowest_return=0, highest_return=0.5)[0].difference("is").bounds[1]
    assert "above the declared highest 0.5; declare a higher one" in low.refusal
    report, _, truth = difference_report(lowest_return=0, highest_return=10.0)
    for name in ("is", "pdis"):
        bounds = {bound.name: bound.value for bound in report.difference(name).bounds}
        assert bounds["bernstein"] < bounds["betting"] < truth


@pytest.mark.parametrize("offset", [0.0, -3.0, 3.0, -2e9])
def test_the_highest_return_may_be_reached_and_not_exceeded(offset):
    """Whatever its sign."""
    log = Log.from_arrays(["x"] * 40, ["a", "b"] * 20, [offset, offset + 1] * 20,
                          terminated=[True] * 40)  # fmt: skip
    for highest, refused in ((offset + 1, False), (offset + 0.999, True)):
        report = ope.off_policy_estimates(
            log, PI, MU, 0.9, lowest_return=offset, highest_return=highest, bounds=("betting",),
            rng=rng(),
        )  # fmt: skip
        refusal = report.difference("is").bounds[0].refusal
        assert ("declare a higher one" in (refusal or "")) == refused, refusal
        assert (refusal is None) == (not refused)


def test_betting_bounds_hold_and_are_tighter_than_bernstein():
    """200 logs of 60 episodes at δ = 0.2."""
    rng = np.random.default_rng(7)
    mdp = slow.random_mdp(rng, end=0.5)
    behaviour = rng.dirichlet(np.full(3, 3.0), size=4)
    target = 0.7 * behaviour + 0.3 * rng.dirichlet(np.ones(3), size=4)
    truth, missed, tighter = slow.rho(mdp, target) - slow.rho(mdp, behaviour), 0, 0
    for _ in range(200):
        log = slow.simulate(mdp, behaviour, 60, rng)
        made, policy = (Policy(p, log.states, log.actions) for p in (behaviour, target))
        report = ope.off_policy_estimates(
            log, policy, made, mdp.discount, delta=0.2, lowest_return=0, highest_return=10.0,
            bounds=("bernstein", "betting"), rng=rng,
        )  # fmt: skip
        bernstein, betting = (bound.value for bound in report.difference("pdis").bounds)
        missed += betting > truth
        tighter += betting > bernstein
    assert missed <= 40
    assert tighter == 200


# ---- the order of the episodes ------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ordered", ["shuffled", "by return", "reversed"])
def test_the_order_of_the_episodes_changes_no_estimate_and_no_bound(seed, ordered):
    rng = np.random.default_rng(seed)
    mdp = slow.random_mdp(rng)
    behaviour, target = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(3), size=4)
    log = slow.simulate(mdp, behaviour, 80, rng)
    order = {
        "shuffled": rng.permutation(80),
        "by return": np.argsort(returns(log, mdp.discount)),
        "reversed": np.arange(80)[::-1],
    }[ordered]
    made, policy = (Policy(p, log.states, log.actions) for p in (behaviour, target))
    first, second = (
        ope.off_policy_estimates(
            episodes, policy, made, mdp.discount, highest_return=10.0, rng=np.random.default_rng(9)
        )
        for episodes in (log, log.episodes(order))
    )
    for one, other in zip(
        first.rows + first.differences, second.rows + second.differences, strict=True
    ):
        assert other.estimate.value == pytest.approx(one.estimate.value, rel=1e-9, abs=1e-12)
        for bound, again in zip(one.bounds, other.bounds, strict=True):
            assert again.value == pytest.approx(bound.value, rel=1e-9, abs=1e-12, nan_ok=True)


# ---- recorded probabilities that no policy has --------------------------------------------------


def recorded_bandit(prob_of, n=400):
    rng = np.random.default_rng(3)
    action = rng.integers(2, size=n)
    reward = (rng.random(n) < 0.5).astype(float)
    return Log.from_arrays(
        [0] * n, action, reward, terminated=[True] * n, action_prob=prob_of(action, rng)
    )


def evaluated(log):
    target = Policy([[0.4, 0.6]], log.states, log.actions)
    return ope.off_policy_estimates(log, target, rng=rng(), bounds=("student-t",))


@pytest.mark.parametrize(
    ("prob", "message"), [(0.1, "taken 4.74 times as often as it says"), (0.9, r"sums to 1\.8")]
)
def test_recorded_probabilities_are_what_was_played(prob, message):
    log = recorded_bandit(lambda action, _: np.full(len(action), prob))
    with pytest.raises(InputError, match=message):
        evaluated(log)


def test_probabilities_that_depend_on_more_than_the_state_are_taken():
    """Two hidden contexts, 0.9/0.1 and 0.1/0.9: what was taken has 0.82 on average."""
    rng = np.random.default_rng(4)
    context = rng.integers(2, size=400)
    action = np.where(rng.random(400) < 0.9, context, 1 - context)
    prob = np.where(action == context, 0.9, 0.1)
    log = Log.from_arrays([0] * 400, action, [1.0] * 400, terminated=[True] * 400, action_prob=prob)
    assert evaluated(log).rows[0].estimate.weights.mean() == pytest.approx(1, abs=0.3)


def test_a_mean_weight_far_from_one_gives_a_warning():
    right = evaluated(recorded_bandit(lambda action, _: np.full(len(action), 0.5)))
    assert right.warning is None
    wrong = evaluated(recorded_bandit(lambda action, rng: rng.choice([0.8, 0.9], len(action))))
    assert "the mean importance weight is" in wrong.warning


KEEP = "Not supported: keep the current policy"


@pytest.mark.parametrize(
    ("better", "words"),
    [("b", "Supported. According to all six"), ("a", f"{KEEP}. 0 of 6 lower bounds")],
)
def test_a_report_ends_in_one_sentence(better, words):
    """200 coins: action b pays 1, a pays 0, both were played half of the time."""
    log = Log.from_arrays(["x"] * 200, ["a", "b"] * 100, [0.0, 1.0] * 100, terminated=[1] * 200)
    target = Policy([[0.1, 0.9] if better == "b" else [0.9, 0.1]], ["x"], ["a", "b"])
    report = ope.off_policy_estimates(
        log, target, Policy([[0.5, 0.5]], ["x"], ["a", "b"]), 0.5, rng=rng()
    )
    assert report.conclusion.startswith(words)


def test_no_conclusion_without_a_difference_and_none_in_favour_with_a_warning():
    log = Log.from_arrays(["x"] * 6, ["a", "b"] * 3, [0.0, 1.0] * 3, terminated=[1] * 6)
    target, mu = Policy([[0, 1]], ["x"], ["a", "b"]), Policy([[0.5, 0.5]], ["x"], ["a", "b"])
    report = ope.off_policy_estimates(log, target, mu, 0.5, rng=rng())
    assert report.conclusion.lower() == f"{KEEP}. {report.warning}.".lower()
    only = ope.off_policy_estimates(log, target, mu, 0.5, rng=rng(), bounds=("betting",))
    assert only.conclusion is None


def test_no_estimator_has_a_limit_that_the_log_refutes():
    """pdis would be at least 0 whatever is declared, but what the log refutes is not declared."""
    log = Log.from_arrays(["x"] * 2, list("ab"), [0.0, 1.0], terminated=[True] * 2)
    found = ope.no_limits(log, 0.9, 5.0)
    assert found["is"] == found["pdis"] == "the log has a return of 0, below lowest_return 5"
    assert {"is", "pdis"}.isdisjoint(ope.no_limits(log, 0.9, 0.0))


def test_a_behaviour_that_the_log_refutes_speaks_for_nothing_and_bounds_nothing():
    """Uniform is claimed, .6/.3/.1 acted: exact bounds would lie above the truth, 0.455."""
    rng, n = np.random.default_rng(0), 20_000
    action = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    reward = (rng.random(n) < np.array([0.3, 1.0, 0.0])[action]).astype(float)
    log = Log.from_arrays(np.zeros(n, int), action, reward, terminated=np.ones(n, bool))
    policy = Policy([[0.35, 0.35, 0.3]], [0], [0, 1, 2])
    uniform, true = Policy([[1 / 3] * 3], [0], [0, 1, 2]), Policy([[0.6, 0.3, 0.1]], [0], [0, 1, 2])
    refuted, right = (
        ope.off_policy_estimates(
            log, policy, behaviour, 0.9, lowest_return=0, highest_return=1,
            bounds=("bernstein", "betting", "student-t"), rng=rng,
        )
        for behaviour in (uniform, true)
    )  # fmt: skip
    assert right.warning is None
    assert right["is"].bounds[0].value < 0.455
    assert "the log contradicts the behaviour policy" in refuted.warning
    assert "not as frequent" in refuted.conclusion
    assert not refuted.favourable
    for row in (*refuted.rows, *refuted.differences):
        assert all("the policy that really made it" in b.refusal for b in row.bounds[:2])
    problem = Problem.from_log(log, true, discount=0.9)
    with pytest.raises(InputError, match="behaviour cannot have made the log: its actions are not"):
        HCPI(behaviour=uniform).improve(problem)
    HCPI(behaviour=true).improve(problem)
