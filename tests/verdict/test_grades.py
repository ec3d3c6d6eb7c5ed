"""One verdict in three grades: the same everywhere, and blind to what does not matter."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from typer.testing import CliRunner

import spibb
from spibb.algorithms import make
from spibb.algorithms.auto import Auto
from spibb.algorithms.certified import Certified
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.cli.app import app
from spibb.evaluate import returns
from spibb.log import Log
from spibb.ope import off_policy_estimates
from spibb.policy import Policy
from spibb.report.assessment import assess
from spibb.report.origin import Origin
from spibb.report.page import render
from spibb.tables import log_table, write_table
from spibb.verdict import decide, gather_for
from spibb.verdict.criteria import criteria, surely_worse
from spibb.verdict.evidence import gather
from spibb.verdict.memory import with_memory
from spibb.words import roughly

ORIGIN = Origin("spibb improve log.csv", 0, (), (("spibb", "0"),), "2026-01-01 00:00 UTC")


def two_steps(n: int, seed: int = 0, effect: float = 0.6, noise: float = 0.2) -> Log:
    """Episodes of two decisions, each in one of two places of its own; action b pays `effect`
    more."""
    rng = np.random.default_rng(seed)
    place = rng.integers(2, size=(n, 2)) + np.array([0, 2])
    action = rng.integers(2, size=(n, 2))
    reward = effect * action + noise * rng.standard_normal((n, 2))
    return Log.from_arrays(
        [f"s{p}" for p in place.ravel().tolist()],
        ["ab"[a] for a in action.ravel().tolist()],
        reward.ravel(),
        terminated=np.tile([False, True], n),
    )


@dataclass(frozen=True)
class Case:
    """A log, what is done with it, and the grade that it must get."""

    log: Log
    words: tuple[str, ...]
    grade: str
    failed: str | None = None


BOUNDS = ("--option", "lowest_reward=-3", "--option", "highest_reward=4")
CERTIFIED = ("--algorithm", "certified", *BOUNDS, "--option", "horizon=2")
CASES = {
    "certified": Case(two_steps(400), CERTIFIED, "certified"),
    "certified, strict": Case(two_steps(800), (*CERTIFIED, "--delta", "0.01"), "certified"),
    "certified, held out": Case(two_steps(600), (*CERTIFIED, "--holdout", "0.3"), "certified"),
    "certified, too few": Case(two_steps(30), CERTIFIED, "not supported", "changes"),
    "pi-b": Case(two_steps(100), ("--n-wedge", "5"), "supported"),
    "auto": Case(two_steps(100), ("--algorithm", "auto"), "supported"),
    "held out": Case(two_steps(200), ("--n-wedge", "5", "--holdout", "0.3"), "supported"),
    "costs": Case(two_steps(100, effect=-0.6), ("--n-wedge", "5"), "supported"),
    "few episodes": Case(two_steps(24), ("--n-wedge", "2"), "not supported", "episodes"),
    "nothing to change": Case(two_steps(60), ("--n-wedge", "1000"), "not supported", "changes"),
    "noise": Case(two_steps(60, effect=0), ("--n-wedge", "5"), "not supported", "sure gain"),
    "noise, auto": Case(two_steps(60, effect=0), ("--algorithm", "auto"), "not supported",
                        "changes"),
}  # fmt: skip
BASELINE = Policy([[0.5, 0.5]] * 4, ["s0", "s1", "s2", "s3"], ["a", "b"])


def first_line(printed: str) -> str:
    """The printed verdict, up to its assumptions."""
    return " ".join(printed.split()).partition(" It assumes")[0]


@pytest.mark.parametrize("name", CASES)
def test_one_grade_and_sentence_everywhere(name, tmp_path):
    case = CASES[name]
    write_table(log_table(case.log), tmp_path / "log.csv")
    BASELINE.save(tmp_path / "baseline.csv")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, [
        "improve", str(tmp_path / "log.csv"), "--baseline", str(tmp_path / "baseline.csv"),
        "--out", str(out), "--discount", "0.9", *case.words,
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    told = summary["verdict"]
    assert told["grade"] == case.grade
    said = f"{told['headline']}. {told['sentence']}"
    assert first_line(done.output) == " ".join(said.split())  # also at no-break spaces
    page = (out / "report.html").read_text(encoding="utf-8").replace("&#39;", "'")
    assert f"<strong>{told['headline']}</strong>\n<p>{told['sentence']}</p>" in page
    assert ('class="verdict hold"' in page) == (case.grade == "not supported")
    assert "robability of improvement" not in page + done.output + json.dumps(summary)
    if "--holdout" not in case.words:
        options = {k: v for k, v in summary["options"].items() if v is not None}
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        log = spibb.read_log(tmp_path / "log.csv")
        result = make(summary["algorithm"], **options).improve(
            Problem.from_log(log, BASELINE, discount=0.9)
        )
        assert result.verdict.grade == told["grade"]
        assert result.verdict.sentence == told["sentence"]
        assert result.verdict.remedy == told["remedy"]
    failed = [k for k, c in told["criteria"].items() if c["passed"] is False]
    assert (failed[0] if case.grade == "not supported" else None) == case.failed


def problem_of(log: Log) -> Problem:
    return Problem.from_log(log, BASELINE, discount=0.9)


def test_what_the_log_earned_is_the_mean_return():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(two_steps(50))))
    found = returns(two_steps(50), 0.9)
    assert evidence.earned.mean == pytest.approx(found.mean())
    assert evidence.earned.standard_error == pytest.approx(found.std(ddof=1) / 50**0.5)
    assert (evidence.earned.episodes, evidence.earned.cut) == (50, 0)
    assert evidence.earned.completed == pytest.approx(evidence.earned.mean)


def test_a_gain_that_the_episodes_contradict_is_not_supported():
    problem = problem_of(two_steps(200))
    evidence = gather_for(PiBSpibb(5).improve(problem))
    poor = off_policy_estimates(
        problem.log, problem.baseline, problem.baseline, 0.9, rng=np.random.default_rng(0)
    )
    assert decide(evidence).grade == "supported"
    for field in ("estimates", "held_out"):
        doubtful = decide(replace(evidence, **{field: poor}))
        assert doubtful.grade == "not supported"
        assert "contradict the model" in doubtful.sentence


def test_changes_that_rest_on_few_episodes_are_not_supported():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(two_steps(200))))
    assert decide(evidence).grade == "supported"
    thin = replace(evidence, departures=replace(evidence.departures, effective_episodes=3.0))
    assert decide(thin).grade == "not supported"
    assert decide(thin).sentence == "In effect, the changes rest on 3.0 episodes."


def test_held_out_episodes_may_take_a_certificate_back():
    problem = problem_of(two_steps(400))
    result = Certified(lowest_reward=-3, highest_reward=4, horizon=2).improve(problem)
    evidence, certificate = gather_for(result), result.certificate()
    poor = off_policy_estimates(
        problem.log, problem.baseline, problem.baseline, 0.9, rng=np.random.default_rng(0)
    )
    assert decide(evidence, certificate).grade == "certified"
    assert decide(replace(evidence, held_out=poor), certificate).grade == "not supported"


def test_a_model_that_misses_what_the_log_earned_is_not_relied_on():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(two_steps(200))))
    off = replace(evidence.earned, completed=evidence.earned.completed + 1)
    doubtful = decide(replace(evidence, earned=off))
    assert doubtful.grade == "not supported"
    assert "but the mean return in the log is" in doubtful.sentence


def test_a_process_with_a_memory_is_noticed():
    """What the first action did pays at the second step; the states do not show it."""
    rng = np.random.default_rng(0)
    n, rows = 400, []
    for _ in range(n):
        first = int(rng.random() < 0.5)
        rows += [("s0", "ab"[first], 0.0), ("s1", "a", 1.0 - 2 * first)]
    # in s1 the log always pays by what was done in s0; the model sees a mean of 0 there
    states, actions, rewards = zip(*rows)
    log = Log.from_arrays(list(states), list(actions), list(rewards),
                          terminated=np.tile([False, True], n))  # fmt: skip
    baseline = Policy([[0.5, 0.5], [1.0, 0.0]], ["s0", "s1"], ["a", "b"])
    wrong = Policy([[0.0, 1.0], [1.0, 0.0]], ["s0", "s1"], ["a", "b"])
    problem = Problem.from_log(log, baseline, discount=0.9)
    departures = spibb.verdict.gather(problem, wrong).departures
    assert departures.gain + 5 * departures.standard_error < 0
    assert departures.gain == pytest.approx(-0.9, abs=0.2)


@pytest.mark.parametrize("algorithm", [Auto(), PiBSpibb(10)], ids=lambda a: a.name)
def test_noise_is_not_supported_more_often_than_delta_allows(algorithm):
    """δ = 0.05 of 60 logs is 3; without the criterion "beyond chance" it was 25 of 150 for pi-b."""
    found = [
        algorithm.improve(problem_of(two_steps(60, seed, effect=0.0))).verdict.favourable
        for seed in range(200, 260)
    ]
    assert sum(found) <= 3


@pytest.mark.parametrize("n", [2, 10, 24])
def test_few_episodes_are_never_supported(n):
    for seed in range(4):
        log = two_steps(n, seed, effect=5.0, noise=0.01)
        assert PiBSpibb(1).improve(problem_of(log)).verdict.grade == "not supported"


@pytest.mark.parametrize(("n", "cautious"), [(90, True), (99, True), (100, False)])
def test_small_logs_are_relied_on_for_the_sign_alone(n, cautious):
    verdict = PiBSpibb(5).improve(problem_of(two_steps(n))).verdict
    assert verdict.grade == "supported"
    assert ("Rely on the sign, not on the amount" in verdict.sentence) == cautious
    assert "the same log chose the policy, and may lack rewards" in verdict.sentence


# ---- what does not matter ------------------------------------------------------------------------

ALGORITHMS = [PiBSpibb(5), Auto(), Certified(lowest_return=-64.0, highest_return=64.0, delta=0.2)]
LOGS = [two_steps(n, seed, effect) for n, seed, effect in
        ((60, 1, 0.6), (60, 2, 0.0), (150, 3, -0.4), (500, 4, 1.0))]  # fmt: skip


def permuted(log: Log) -> Log:
    return log.episodes(np.random.default_rng(3).permutation(log.n_episodes))


def relabelled(log: Log) -> Log:
    """Other names whose order is that of the old ones backwards."""
    names = {"s0": "z", "s1": "y", "s2": "x", "s3": "w"}
    return Log.from_arrays(
        [names[log.states[s]] for s in log.state.tolist()],
        [{"a": "q", "b": "p"}[log.actions[a]] for a in log.action.tolist()],
        log.reward,
        terminated=log.terminated,
    )


CHANGES = {
    "constant": lambda log: replace(log, reward=log.reward + 1.0),
    "scale": lambda log: replace(log, reward=log.reward * 4.0),
    "permutation": permuted,
    "labels": relabelled,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
@pytest.mark.parametrize("log", LOGS, ids=["gain", "noise", "cost", "large"])
def test_grade_and_choice_are_blind_to(log, algorithm, change):
    def chosen(one: Log, limits: Certified | object) -> tuple[str, np.ndarray]:
        baseline = Policy.uniform(one.states, one.actions)
        result = limits.improve(Problem.from_log(one, baseline, discount=0.9))
        return str(result.verdict.grade), result.policy.probs

    limits = algorithm
    if change == "scale" and isinstance(algorithm, Certified):
        limits = replace(algorithm, lowest_return=-256.0, highest_return=256.0)
    before, probs = chosen(log, algorithm)
    after, other = chosen(CHANGES[change](log), limits)
    assert after == before
    if change == "labels":
        other = other[::-1, ::-1]
    np.testing.assert_allclose(other, probs, atol=1e-9)


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "text"), [(0.2, "1"), (37, "37"), (801, "810"), (12_345, "13,000")])
def test_forecasts_have_two_digits(n, text):
    assert roughly(n) == text


def test_a_log_that_contradicts_the_baseline_supports_nothing():
    log = two_steps(100)
    baseline = Policy([[1.0, 0.0]] * 4, BASELINE.states, BASELINE.actions)
    verdict = PiBSpibb(5).improve(Problem.from_log(log, baseline, discount=0.9)).verdict
    assert verdict.grade == "not supported"
    assert "never takes" in verdict.sentence


def test_a_refuted_baseline_is_the_reason_even_if_nothing_changes():
    """Half of the actions are a, of which the baseline is said to take nine in ten."""
    n = 400
    log = Log.from_arrays(["x"] * n, ["a", "b"] * (n // 2), [0.0, 0.0, 1.0, 1.0] * (n // 4),
                          terminated=[True] * n)  # fmt: skip
    problem = Problem.from_log(log, Policy([[0.9, 0.1]], ["x"], ["a", "b"]), discount=0.9)
    verdict = Certified(lowest_return=0, highest_return=1).improve(problem).verdict
    assert verdict.grade == "not supported"
    assert verdict.sentence.startswith("The log contradicts the current policy")
    assert verdict.remedy == "Set the baseline to the policy that made the log."


@pytest.mark.parametrize("reward", [1e9, -1e9, 1.0, 0.1])
def test_rounding_contradicts_nothing(reward):
    """All rewards are equal, and so are all returns."""
    rng = np.random.default_rng(0)
    log = Log.from_arrays(rng.integers(3, size=300), rng.integers(2, size=300), [reward] * 300,
                          terminated=np.arange(300) % 3 == 2)  # fmt: skip
    problem = Problem.from_log(log, [[0.5, 0.5]] * 3, discount=0.95)
    for rows in ([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], [[0.8, 0.2]] * 3, [[0.3, 0.7]] * 3):
        evidence = gather(problem, Policy(rows, log.states, log.actions))
        found = {criterion.name: criterion.passed for criterion in criteria(evidence)}
        assert found["whole episodes"] is not False
        assert not surely_worse(evidence.estimates)
    single = Log.from_arrays(log.state, log.action, log.reward, terminated=[True] * 300)
    problem = Problem.from_log(single, [[0.5, 0.5]] * 3, discount=0.95)
    evidence = gather(problem, Policy([[0.9, 0.1]] * 3, log.states, log.actions))
    found = {criterion.name: criterion.passed for criterion in criteria(evidence)}
    assert found["model"]
    assert found["whole episodes"]


def test_counts_alone_support_nothing_and_say_what_is_not_known():
    """What cannot be checked is not passed; the same log with its episodes is supported."""
    problem = problem_of(two_steps(200))
    assert PiBSpibb(5).improve(problem).verdict.grade == "supported"
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    result = PiBSpibb(5).improve(bare)
    assert result.verdict.grade == "not supported"
    assert result.verdict.lower_bound is None
    assert "Only the model supports the changes: only counts" in result.verdict.sentence
    assert "spibb split" in result.verdict.remedy
    assert [c.name for c in result.verdict.criteria if c.passed is None] == [
        "model", "single changes", "beyond chance", "effective size", "whole episodes"
    ]  # fmt: skip
    assert "not known" in re.sub("<[^>]*>", "", render(assess(result, ORIGIN)))


# ---- what the log cannot have shown --------------------------------------------------------------


def rarely_tried(visits: int) -> Log:
    """1,000 or more single decisions; action b, taken `visits` times, always paid."""
    rng = np.random.default_rng(0)
    action = np.r_[np.zeros(max(1000, visits), dtype=int), np.ones(visits, dtype=int)]
    paid = np.where(action == 1, 1.0, rng.random(len(action)) < 0.5)
    return Log.from_arrays(
        ["s"] * len(action), ["ab"[a] for a in action], paid, terminated=[True] * len(action)
    )


@pytest.mark.parametrize(
    ("visits", "said"),
    [
        (2, "1 of 1 changed state rests on fewer than 100 visits to the actions that become more "
            "frequent there, or to those that become less frequent; the fewest are 2, where any "
            "event may have gone unseen"),
        (30, "the fewest are 30, where an event in up to 10\N{NO-BREAK SPACE}% of the cases may "
             "have gone unseen"),
        (300, "every changed state rests on at least 300 visits to the actions that become more "
              "frequent there, and to those that become less frequent, where an event in up to "
              "1\N{NO-BREAK SPACE}% of the cases"),
        (6100, "where an event in less than 0.1\N{NO-BREAK SPACE}% of the cases may have"),
    ],
)  # fmt: skip
def test_the_assumptions_say_how_rare_an_event_may_have_stayed_unseen(visits, said):
    log = rarely_tried(visits)
    result = PiBSpibb(1).improve(Problem.from_log(log, None, discount=0.9))
    assert said in " ".join(result.verdict.assumptions)
    page = re.sub("<[^>]*>", "", render(assess(result, ORIGIN))).replace("&#39;", "'")
    assert said in page


def test_where_nothing_changes_nothing_is_said_of_unseen_events():
    verdict = PiBSpibb(10_000).improve(problem_of(two_steps(100))).verdict
    assert "unseen" not in " ".join(verdict.assumptions)


def test_no_repr_tells_a_probability():
    result = Auto().improve(problem_of(two_steps(60)))
    assert "probability" not in repr(result.posterior())
    assert "probability" not in repr(result.sweep[0])


# ---- what was asked ------------------------------------------------------------------------------


def test_held_out_episodes_are_mentioned_only_if_they_tell():
    problem = problem_of(two_steps(200))
    result = PiBSpibb(5).improve(problem)
    evidence = gather_for(result, held_out=two_steps(100, seed=9))
    assert (
        "their mean return and the held-out episodes do not contradict this."
        in decide(evidence).sentence
    )
    only_a = two_steps(400, seed=9)
    of_b = np.add.reduceat(only_a.action == only_a.actions.index["b"], only_a.episode_starts[:-1])
    never = np.flatnonzero(of_b == 0)
    silent = decide(gather_for(result, held_out=only_a.episodes(never[:6]))).sentence
    assert "nor those held out" not in silent
    assert "contradict this; held-out episodes are inconclusive." in silent
    others = decide(gather_for(result, held_out=only_a.episodes(never)))
    assert others.grade == "not supported"
    assert "of the held-out episodes, its actions are not as frequent" in others.sentence


def test_what_auto_chose_at_one_level_is_not_judged_at_another():
    result = Auto(delta=0.3).improve(problem_of(two_steps(60)))
    assert spibb.judge(result, delta=0.3).delta == 0.3
    with pytest.raises(spibb.InputError, match=r"delta is 0\.001, and 0\.3 as an option of auto"):
        spibb.judge(result, delta=0.001)


def test_a_level_is_stated_only_if_enough_models_are_drawn_for_it():
    """The lowest of 1,000 draws is no quantile at 1e-4."""
    result = PiBSpibb(n_wedge=5).improve(Problem.from_log(two_steps(40), discount=0.9))
    assert len(gather_for(result, delta=1e-3).posterior.gains) == 2000
    found = gather_for(result, delta=1e-4)
    assert (found.posterior.gains <= found.lower).sum() == 2
    chosen = Auto(delta=5e-4, n_wedges=(2.0, 5.0)).improve(result.problem)
    assert len(chosen.values_in_models) >= 4000
    for sure in (result, Auto(delta=1e-6)):
        with pytest.raises(spibb.InputError, match="more than 100,000 models, the most"):
            gather_for(sure, delta=5e-324) if sure is result else sure.improve(result.problem)


def test_a_certificate_needs_no_drawn_models():
    problem = Problem.from_log(two_steps(4000), discount=0.9)
    limits = {"lowest_reward": -3.0, "highest_reward": 4.0, "horizon": 2}
    verdict = Certified(delta=1e-5, **limits).improve(problem).verdict
    assert (verdict.grade, verdict.delta) == ("certified", 1e-5)


def trap(seed: int, episodes: int = 3000) -> Log:
    """Action 1 pays 1, or −2 straight after another action 1; states do not tell which."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        before = 0
        for step in range(int(rng.geometric(0.2))):
            action = int(rng.random() < 0.2)
            reward = action * (1.0 - 3.0 * before)
            rows.append((episode, step, "abc"[rng.integers(3)], action, reward))
            before = action
    columns = dict(zip(("episode_id", "step", "state", "action", "reward"), zip(*rows)))
    return Log.from_arrays(**columns)


def after_itself(extra: float, seed: int = 0, episodes: int = 300) -> Log:
    """Action 1 pays 1, and `extra` if it follows another action 1; the one state does not tell."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        before = 0
        for step in range(3):
            action = int(rng.random() < 0.5)
            reward = action * (1.0 + extra * before) + rng.normal(0, 0.1)
            rows.append((episode, step, f"s{step}", action, reward))
            before = action
    columns = dict(zip(("episode_id", "step", "state", "action", "reward"), zip(*rows)))
    return Log.from_arrays(**columns)


@pytest.mark.parametrize(("extra", "gains"), [(0.5, True), (-3.0, False)])
def test_a_policy_is_judged_with_the_memory_that_the_log_shows(extra, gains):
    """Always 1 earns 3 + 2·extra, and the current policy 1.5 + extra/2, undiscounted."""
    baseline = Policy([[0.5, 0.5]] * 3, ["s0", "s1", "s2"], [0, 1])
    always = Policy([[0.0, 1.0]] * 3, ["s0", "s1", "s2"], [0, 1])
    problem = Problem.from_log(after_itself(extra), baseline, discount=0.999)
    evidence = spibb.verdict.gather(problem, always)
    assert evidence.memory.test.p_value < 0.01
    truth = 1.5 + 1.5 * extra
    assert evidence.memory.lower == pytest.approx(truth, abs=0.15) and (truth > 0) is gains
    if gains:
        verdict = decide(evidence)
        assert verdict.grade == "supported" and "memory of the previous step" in verdict.sentence
        assert verdict.lower_bound <= evidence.memory.lower
        assert not any(said.startswith("states are Markov") for said in verdict.assumptions)
        assert any("this log contradicts that they are" in said for said in verdict.assumptions)
        assert verdict.criteria[-1].name == "memory" and verdict.criteria[-1].passed
    else:
        told = criteria(replace(evidence, certified=True))[-1]
        assert (told.name, told.passed) == ("memory", False)


def test_states_with_memory_are_the_pairs_of_a_step_and_the_one_before():
    log = Log.from_arrays(["x", "y", "x", "x"], [0, 1, 0, 0], [1.0, 2.0, 3.0, 4.0],
                          terminated=[False, True, False, True])  # fmt: skip
    remembering, state = with_memory(log)
    assert len(state) == len(remembering.states) == 3
    assert [log.states[s] for s in state[remembering.state]] == ["x", "y", "x", "x"]
    assert remembering.next_state[0] == remembering.state[1]
    assert remembering.state[0] == remembering.state[2] != remembering.state[3]


def test_a_certificate_whose_assumption_the_log_contradicts_is_withdrawn():
    """The changes gain one at a time and lose together: 0.46 becomes −2.04."""
    baseline = Policy([[0.8, 0.2]] * 3, ["a", "b", "c"], [0, 1])
    certified = 0
    for seed in range(3):
        problem = Problem.from_log(trap(seed), baseline, discount=0.95, v_max=12.0)
        result = Certified().improve(problem)
        certified += not result.tested().refusal
        assert result.verdict.grade == "not supported"
        assert result.certificate().best is None
    assert certified


def test_a_single_step_has_no_memory():
    log = Log.from_arrays(["x"] * 400, ["a", "b"] * 200, [0.0, 1.0] * 200, terminated=[True] * 400)
    result = Certified(lowest_return=0, highest_return=1).improve(Problem.from_log(log, discount=0))
    assert result.verdict.grade == "certified"
