"""SPIBB-DQN on logs of vectors: invariances, files, ONNX, the truth."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

import onnxruntime
import pole

import spibb
from spibb.deep.canonical import canonical
from spibb.deep.cases import WORTH_SHOWING, coverage, typical_cases
from spibb.deep.checkpoint import write_arrays
from spibb.deep.estimates import estimate_on
from spibb.deep.improving import VectorDQN, _split, improve_vectors
from spibb.deep.judging import VectorDepartures, departures, fit_current, verdict_of
from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.vector_policy import load_vector_policy
from spibb.episodes.departures import MOVED
from spibb.errors import InputError
from spibb.ingest.vectors import VectorLog
from spibb.labels import Vocabulary
from spibb.report.origin import Origin
from spibb.report.vectors import VectorAssessment, render
from spibb.words import percent

QUICK = VectorDQN(passes=4)
COLUMNS = {"state": list(pole.FEATURES)}


@pytest.fixture(scope="module")
def log():
    return spibb.read_vectors(pole.table(25), columns=COLUMNS)


@pytest.fixture(scope="module")
def result(log):
    return improve_vectors(log, QUICK)


def shifted(log, scale, shift):
    """The same log in other units."""
    return replace(log, state=log.state * scale + shift, next_state=log.next_state * scale + shift)


def assert_same_decisions(one, other):
    """As good as always to the bit: a rounding in a thousand rows may decide a tie otherwise."""
    same = np.abs(one - other).max(axis=1) < 1e-6
    assert same.mean() > 0.999, f"{same.mean():.2%} of the decisions agree"


@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (57.3, -4.0), (1.0, 1e4)])
def test_units_of_the_columns_do_not_matter(log, result, scale, shift):
    scales, shifts = np.array([scale, 1, 3, scale]), np.array([shift, 0, 1, 2])
    other = improve_vectors(shifted(log, scales, shifts), QUICK)
    assert_same_decisions(result.policy(log.state), other.policy(log.state * scales + shifts))
    assert other.policy.n_wedge == result.policy.n_wedge


def test_the_order_of_the_columns_does_not_matter(log, result):
    order = [2, 0, 3, 1]
    other = improve_vectors(
        replace(log, state=log.state[:, order], next_state=log.next_state[:, order],
                features=tuple(log.features[k] for k in order)), QUICK,
    )  # fmt: skip
    assert other.policy.features == tuple(log.features[k] for k in order)
    assert_same_decisions(result.policy(log.state), other.policy(log.state[:, order]))


def test_the_names_of_the_actions_do_not_matter(log, result):
    other = improve_vectors(
        replace(log, action=1 - log.action, actions=Vocabulary(("a", "b"), ("action",))), QUICK
    )
    assert_same_decisions(result.policy(log.state), other.policy(log.state)[:, ::-1])


def test_the_order_of_the_episodes_does_not_matter(log, result):
    order = np.random.default_rng(5).permutation(log.n_episodes)
    other = improve_vectors(log.episodes(order), QUICK)
    assert_same_decisions(result.policy(log.state), other.policy(log.state))
    assert other.held_out.earned == pytest.approx(result.held_out.earned)


def few_kinds(rng):
    """120 episodes of one step, of eight kinds; mean return 1/2, variance 1/4."""
    x, action, reward = rng.integers(0, 2, (3, 120))
    zeros = np.zeros(120)
    return VectorLog(
        state=np.column_stack([x, zeros]).astype(float), action=action,
        reward=reward.astype(float), next_state=np.full((120, 2), np.nan),
        terminated=zeros == 0, truncated=zeros > 0, episode_starts=np.arange(121),
        features=("x", "y"), actions=Vocabulary(("a", "b"), ("action",)),
    )  # fmt: skip


def test_held_out_episodes_are_a_fair_sample_with_one_seed_for_all_logs():
    held = [_split(canonical(few_kinds(np.random.default_rng(i))), 0.3, 0)[1] for i in range(400)]
    errors = np.array([x.reward.mean() - 0.5 for x in held]) * np.sqrt(36 / 0.25)
    assert abs(errors.mean()) < 4 / np.sqrt(400)
    assert abs(errors.std() - 1) < 4 / np.sqrt(800)


@pytest.mark.parametrize("unit", [1e-90, 7.0, 1e6])
def test_the_unit_of_the_rewards_does_not_matter(log, result, unit):
    other = improve_vectors(replace(log, reward=log.reward * unit), QUICK)
    assert_same_decisions(result.policy(log.state), other.policy(log.state))
    assert other.departures.lower == pytest.approx(result.departures.lower * unit, rel=1e-6)
    np.testing.assert_allclose(
        other.policy.at(log.state).q, result.policy.at(log.state).q * unit, rtol=1e-5
    )


def test_where_evidence_is_thin_the_current_policy_stays(log):
    far = improve_vectors(log, replace(QUICK, n_wedge=np.inf))
    found = far.policy.at(log.state)
    np.testing.assert_array_equal(found.probs, found.baseline)
    assert not far.verdict.favourable
    some = improve_vectors(log, QUICK).policy.at(log.state + 1e6)
    np.testing.assert_array_equal(some.probs, some.baseline)


def test_the_saved_policy_is_the_same_after_loading(result, log, tmp_path):
    result.policy.save(tmp_path / "policy.npz")
    loaded = load_vector_policy(tmp_path)
    for name in ("probs", "q", "baseline", "counts"):
        mine, wanted = (getattr(p.at(log.state), name) for p in (loaded, result.policy))
        np.testing.assert_array_equal(mine, wanted)
    assert loaded.actions == result.policy.actions
    assert loaded.row(dict(zip(log.features, log.state[0])))["left"] == pytest.approx(
        result.policy(log.state[:1])[0, 0]
    )


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def test_the_summary_of_an_infinite_n_wedge_is_json(log, tmp_path):
    spibb.run(log, tmp_path / "out", algorithm=replace(QUICK, n_wedge=np.inf, passes=1))
    text = (tmp_path / "out" / "summary.json").read_text("utf-8")
    summary = json.loads(text, parse_constant=no_constant)
    assert summary["n_wedge"] == summary["options"]["n_wedge"] == "inf"
    assert f"algorithm={replace(QUICK, n_wedge=np.inf, passes=1)!r}" in summary["origin"]["command"]


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("q_weight_0", np.full((4, 32), np.nan, np.float32), "not finite"),
        ("q_weight_0", np.zeros((3, 32), np.float32), "goes from 3 to 2"),
        ("spread", np.zeros(4), "out of range"),
        ("centre", np.zeros(3), "centre has shape"),
        ("points", np.zeros((5, 4)), "points has shape"),
        ("radius", np.float64(-1), "radius is -1"),
        ("n_wedge", np.float64(np.nan), "n_wedge is nan"),
        ("actions", np.array("[1"), "not JSON"),
        ("discount", np.float64(1.5), "discount is 1.5"),
        ("features", None, "has no 'features'"),
    ],
)
def test_a_policy_is_validated_whole_when_it_is_loaded(result, tmp_path, entry, value, message):
    path = tmp_path / "policy.npz"
    result.policy.save(path)
    with np.load(path) as file:
        arrays = {**file, entry: value}
    del arrays["sha256"]
    write_arrays(path, {name: part for name, part in arrays.items() if part is not None})
    with pytest.raises(InputError, match=message):
        load_vector_policy(path)


def test_a_changed_bit_is_found(result, tmp_path):
    path = tmp_path / "policy.npz"
    result.policy.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["points"][3, 1] += 1e-6
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="its hash shows"):
        load_vector_policy(path)


def test_the_onnx_graph_is_the_whole_policy(result, log, tmp_path):
    result.policy.export_onnx(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    pi, q, baseline, counts = session.run(None, {"state": log.state[:200]})
    wanted = result.policy.at(log.state[:200])
    np.testing.assert_allclose(counts, wanted.counts, atol=1e-4)
    np.testing.assert_allclose(baseline, wanted.baseline, atol=1e-5)
    np.testing.assert_allclose(q, wanted.q, rtol=1e-4, atol=1e-4)
    clear = (np.abs(wanted.counts - result.policy.n_wedge) > 1e-3).all(axis=1)
    assert clear.mean() > 0.95
    np.testing.assert_allclose(pi[clear], wanted.probs[clear], atol=1e-5)


def test_a_given_baseline_is_taken_as_it_is(log):
    network = MLP((np.array([[0, 0], [0, 0], [-1, 1], [-0.1, 0.1]], np.float32),),
                  (np.zeros(2, np.float32),))  # fmt: skip
    given = SoftmaxBaseline(network, 2.0)
    found = improve_vectors(log, QUICK, baseline=given)
    assert found.clone is None
    np.testing.assert_allclose(found.policy.at(log.state).baseline, given(log.state), atol=1e-5)
    wrong = SoftmaxBaseline(MLP((np.zeros((3, 2), np.float32),), (np.zeros(2, np.float32),)))
    with pytest.raises(InputError, match="goes from 3 features to 2 actions"):
        improve_vectors(log, QUICK, baseline=wrong)


def test_recorded_probabilities_make_a_better_clone():
    table = pole.table(15, recorded=True)
    with_probs = spibb.read_vectors(table, columns=COLUMNS)
    without = replace(with_probs, action_prob=None)
    errors = []
    for one in (with_probs, without):
        found = improve_vectors(one, QUICK).policy.at(one.state).baseline
        errors.append(np.abs(found - pole.current(one.state)).mean())
    assert errors[0] < errors[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": Vocabulary(("left",), ("action",))}, "one action, 'left'"),
        ({"holdout": 0.04}, "holds out 1 of 25 episodes"),
        ({"holdout": 0.01}, "holds out 0 of 25 episodes"),
        ({"holdout": 1.0}, "holdout is 1.0"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"delta": 0.0}, "delta is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_settings_are_one_line(log, change, message):
    given = dict(change)
    if "actions" in given:
        log = replace(log, actions=given.pop("actions"), action=np.zeros_like(log.action))
    with pytest.raises(InputError, match=message):
        improve_vectors(log, QUICK, **given)


@pytest.mark.parametrize(
    "bad",
    [{"n_wedge": -1}, {"n_wedge": "many"}, {"radius": 0}, {"radius": np.nan}, {"passes": 0},
     {"variant": "pi"}, {"kappa": -1}, {"learning_rate": 0}, {"batch_size": 0}],
)  # fmt: skip
def test_bad_options_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        VectorDQN(**bad)


def test_a_constant_column_and_a_huge_one(log):
    still = replace(
        log, state=np.column_stack([log.state, np.full(len(log), 7.0)]),
        next_state=np.column_stack([log.next_state, np.full(len(log), 7.0)]),
        features=(*log.features, "site"),
    )  # fmt: skip
    found = improve_vectors(still, QUICK)
    assert np.isfinite(found.policy(still.state)).all()
    elsewhere = found.policy.at(still.state + np.array([0, 0, 0, 0, 1.0]))
    np.testing.assert_array_equal(elsewhere.probs, elsewhere.baseline)
    states = log.state.copy()
    states[3, 2] = 1e200
    with pytest.raises(InputError, match=r"column 'angle' holds 1e\+200"):
        improve_vectors(replace(log, state=states), QUICK)


@pytest.mark.parametrize(
    ("unit", "message"),
    [(0.0, "all rewards are 0"), (1e300, r"largest reward is 1e\+300"), (1e-200, "1e-200")],
)
def test_rewards_that_cannot_be_learnt_from_are_refused(log, unit, message):
    with pytest.raises(InputError, match=message):
        improve_vectors(replace(log, reward=log.reward * unit), QUICK)


def test_an_exploding_loss_is_one_line_with_a_remedy(log):
    with pytest.raises(InputError, match=r"training diverged.*lower the learning rate"):
        improve_vectors(log, VectorDQN(passes=20, learning_rate=1e9))


def test_the_new_policy_is_better_in_truth():
    """150 steps or so of 200: measured 137 for the current policy and 183 for the new one."""
    log = spibb.read_vectors(pole.table(100, seed=1), columns=COLUMNS)
    found = improve_vectors(log, VectorDQN(passes=60), holdout=0.2)
    new, old = pole.mean_length(found.policy, 300, 2), pole.mean_length(pole.current, 300, 2)
    assert new > old + 10


def one_step_log(n, seed):
    """Decisions of one step each: x, and a reward of 1 for the action that has its sign."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    action = rng.integers(0, 2, n)
    reward = (action == (x[:, 0] > 0)).astype(float)
    return VectorLog(
        x, action, reward, np.full((n, 1), np.nan), np.ones(n, bool), np.zeros(n, bool),
        np.arange(n + 1), ("x",), Vocabulary.of_size(2, "action"), np.full(n, 0.5),
    )  # fmt: skip


def test_episodes_of_one_step_give_the_gain_itself():
    """The current policy earns 0.5, the new one almost 1: one departure is all there is."""
    found = improve_vectors(one_step_log(800, 0), VectorDQN(passes=60, n_wedge=1))
    fresh = one_step_log(20_000, 1)
    right = (fresh.state[:, 0] > 0).astype(int)
    truth = found.policy(fresh.state)[np.arange(len(fresh)), right].mean() - 0.5
    assert truth > 0.3
    assert found.verdict.grade == "supported"
    many = departures(fresh, found.policy, 0.95, delta=0.05, rng=np.random.default_rng(0))
    assert many.gain == pytest.approx(truth, abs=0.02)
    whole = estimate_on(fresh, found.policy, 0.95, bounds=(), rng=np.random.default_rng(0))
    assert whole.difference("dr").estimate.value == pytest.approx(truth, abs=0.02)
    missed = 0
    for seed in range(100):
        some, rng = one_step_log(100, 10 + seed), np.random.default_rng(seed)
        missed += departures(some, found.policy, 0.95, delta=0.05, rng=rng).lower > truth
    assert missed <= 12  # 5 expected; 12 or more happen once in 200 times


def nudged(result, by):
    """The result if it moved so much probability in half of its decisions, and gained by it."""
    probs = result.decisions.baseline.copy()
    more = probs[::2].argmin(axis=1)
    probs[np.arange(0, len(probs), 2), more] += by
    probs[np.arange(0, len(probs), 2), 1 - more] -= by
    sure = replace(result.departures, episodes=100, gain=1.0, student_t=0.5, bca=0.5)
    decisions = replace(result.decisions, probs=probs)
    return replace(result, decisions=decisions, departures=sure)


@pytest.mark.parametrize("by", [0.0, 1e-12, 1e-7, 0.005, 0.1])
def test_one_share_of_the_decisions_changed(result, by):
    found = nudged(result, by)
    half = (len(found.log) + 1) // 2 / len(found.log)
    assert coverage(found).changed == found.changed == (half if by > MOVED else 0)
    assert (f"in {percent(half)} of the decisions" in found.verdict.sentence) == (by > MOVED)
    assert bool(typical_cases(found)) == (by > WORTH_SHOWING)
    page = render(VectorAssessment(found, (), Origin.of("", 0)))
    assert ("Nothing: the new policy" in page) == (by <= MOVED)
    assert ("no decision moves more than 1" in page) == (by in (1e-7, 0.005))


def test_departing_nowhere_gains_nothing(log):
    found = improve_vectors(log, replace(QUICK, n_wedge=np.inf))
    assert found.departures.gain == pytest.approx(0, abs=1e-9)


def judged(gain, lower, earned=18.0, delta=0.05):
    """The verdict on 50 episodes whose returns cannot exceed 20."""
    found = VectorDepartures(50, gain, lower, lower, delta, earned, (1.0, 20.0))
    whole = SimpleNamespace(
        difference=lambda _: SimpleNamespace(estimate=SimpleNamespace(value=1.0)),
        effective_sample_size=0.0,
    )
    return verdict_of(0.5, found, whole, cloned=False)


@pytest.mark.parametrize(
    ("gain", "lower", "words"),
    [
        (1.5, 0.5, "gain +1.500 per episode, at least +0.500 at level 0.95"),
        (1.5, -0.5, "gain +1.500 per episode, but that may be chance: the lower bound is −0.500."),
        (-1.5, -2.0, "lose 1.500 per episode; the lower bound is −2."),
    ],
)
def test_a_loss_is_not_called_a_gain(gain, lower, words):
    verdict = judged(gain, lower)
    assert f"the changes (each made alone, then added up) {words}" in verdict.sentence
    assert verdict.doubts == ()


def test_no_level_on_vectors_is_one():
    assert "at least +0.500 at level 1 − 1e-7;" in judged(1.5, 0.5, delta=1e-7).sentence


def test_a_gain_that_no_policy_can_have_is_doubted(log, result):
    (doubt,) = judged(2.5, 0.5).doubts
    assert doubt.endswith("20.50, is beyond what the log's rewards can add up to in an episode, "
                          "1 to 20")  # fmt: skip
    assert judged(2.5, 0.5).headline == "Supported, with a doubt"
    assert judged(2.5, -0.5).headline == "Not supported: keep the current policy"
    longest = int(np.diff(log.episode_starts).max())
    found = departures(log, result.policy, 0.95, delta=0.05, rng=np.random.default_rng(0))
    assert found.reach == pytest.approx((1, (1 - 0.95**longest) / 0.05))


def test_the_line_through_the_returns_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, 300)
    returns = 1 + 0.5 * values + rng.normal(size=300)
    slope, intercept = np.polyfit(values, returns, 1)
    assert fit_current(returns, values) == pytest.approx((intercept, slope))
    assert fit_current(returns, np.full(300, 7.0)) == (returns.mean(), 0.0)


def test_where_evidence_is_too_thin_the_remedy_asks_for_less_of_it():
    verdict = verdict_of(0.0, None, None, cloned=False)
    assert "too little evidence" in verdict.sentence
    assert "smaller n_wedge or a larger radius" in verdict.remedy
