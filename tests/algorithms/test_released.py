"""Robust MDP and HCPI as the authors released them, against slow transcriptions of what they do."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import t as student

from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.hcpi.candidate_tests import replay_uniforms
from spibb.algorithms.problem import Problem
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.experiments.compiled import CompiledTrainer
from spibb.kernels import robust_mdp_released
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import Sampler

DISCOUNT = 0.95


def worlds():
    """The gridworld with both kinds of data, and random MDPs; with the index of their goals."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    yield mdp, baseline, baseline, 24
    yield mdp, baseline, Policy.uniform(mdp.states, mdp.actions), 24
    for seed in range(3):
        rng = np.random.default_rng(seed)
        drawn = draw_garnet(rng, n_states=20)
        rows = rng.dirichlet(np.ones(4), 20)
        policy = Policy(rows, drawn.mdp.states, drawn.mdp.actions)
        yield drawn.mdp, policy, policy, drawn.terminal


def logs():
    for number, (mdp, baseline, behaviour, goal) in enumerate(worlds()):
        sampler = Sampler(mdp, behaviour)
        for size, seed in itertools.product((10, 60, 400), range(3)):
            codes, lengths = sampler.draw(size, rng=np.random.default_rng((number, size, seed)))
            yield mdp, baseline, sampler, goal, codes, lengths


LOGS = list(logs())


# ---- Robust MDP ---------------------------------------------------------------------------------


def counted(log: Log, shape: tuple[int, int], place: int) -> np.ndarray:
    """How often each (x, a) led to each x', the goal in its place [S, A, S]."""
    n = np.zeros((*shape, shape[0]))
    for s, a, following in zip(log.state, log.action, log.next_state):
        n[s, a, place if following < 0 else following] += 1
    return n


def worst_row(p: np.ndarray, budget: float, worth: np.ndarray) -> np.ndarray:
    """Mass goes to the worst state, and leaves the best ones until as much has left."""
    order = np.empty(len(worth), dtype=np.int64)
    robust_mdp_released.argsort_as_numpy(worth, order)
    moved = p.copy()
    left = min(budget, 1 - p[order[0]])
    moved[order[0]] += left
    for s in order[::-1]:
        taken = min(left, moved[s])
        moved[s] -= taken
        left -= taken
    return moved


def slow_robust(n: np.ndarray, goal: int, delta: float) -> list[int]:
    """The released procedure on dense arrays, with NumPy's own sums."""
    n_states, n_actions, _ = n.shape
    visits = n.sum(axis=2)
    p = n / np.maximum(visits, 1)[:, :, None]
    log = np.log(n_actions * n_states * 2**n_states / delta)
    error = np.sqrt(2.0 / np.where(visits > 0, visits, 0.01) * log)
    reward = np.eye(n_states)[goal]
    v = np.zeros(n_states)
    for _ in range(200):
        before, worth = v, DISCOUNT * v + reward
        rows = np.array(
            [[worst_row(p[s, a], error[s, a] / 2, worth) for a in range(n_actions)]
             for s in range(n_states)]
        )  # fmt: skip
        q = rows @ worth
        v = q.max(axis=1)
        if np.abs(v - before).max() <= 0.005:
            break
    left_in = rows.sum(axis=2) == 1
    return [int(np.where(left_in[s], q[s], -np.inf).argmax()) for s in range(n_states)]


@pytest.mark.parametrize("case", range(len(LOGS)))
@pytest.mark.parametrize("delta", [0.001, 0.1])
def test_robust_mdp_takes_the_actions_of_the_released_procedure(case, delta):
    mdp, baseline, sampler, goal, codes, lengths = LOGS[case]
    log = sampler.to_log(codes, lengths)
    problem = Problem.from_log(log, baseline, discount=DISCOUNT, v_max=1.0)
    algorithm = RobustMDP(delta=delta, safety_test=False, released=True)
    found = algorithm.improve(problem).policy.probs
    shown = set(log.state) | set(log.next_state)
    place = max(s for s in range(mdp.shape[0]) if s not in shown)  # the goal, in the gridworld
    assert place == goal or mdp.shape[0] < 25
    wanted = slow_robust(counted(log, mdp.shape, place), place, delta)
    np.testing.assert_array_equal(found.argmax(axis=1), wanted)
    np.testing.assert_array_equal(found.max(axis=1), 1)
    trainer = CompiledTrainer([algorithm], sampler, baseline, 1.0)
    assert trainer.members == [0]
    np.testing.assert_array_equal(trainer.policies(codes, lengths)[0], found)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 24, 25, 50, 127, 128])
def test_sums_are_numpys_to_the_last_bit(n):
    for seed in range(50):
        x = np.random.default_rng((n, seed)).random((3, 2, n)) ** 9
        sums = [robust_mdp_released.total_as_numpy(row.copy()) for row in x.reshape(-1, n)]
        np.testing.assert_array_equal(sums, x.sum(axis=2).reshape(-1))


SORTS = """
import numpy as np
rng = np.random.default_rng(0)
for n in (1, 5, 16, 17, 18, 19, 25, 50, 128):
    for equal in (1, 2, 5, 1000):
        x = rng.integers(equal, size=n) / 7
        print(" ".join(map(str, np.argsort(x))))
"""


def test_equals_are_sorted_as_numpy_did_without_vector_instructions():
    """A process of its own, since NumPy decides at its start."""
    built = np._core._multiarray_umath
    off = " ".join(name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name))
    ran = subprocess.run(
        [sys.executable, "-c", SORTS], env={"NPY_DISABLE_CPU_FEATURES": off}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    lines = iter(ran.stdout.splitlines())
    for n, equal in itertools.product((1, 5, 16, 17, 18, 19, 25, 50, 128), (1, 2, 5, 1000)):
        order = np.empty(n, dtype=np.int64)
        robust_mdp_released.argsort_as_numpy(rng.integers(equal, size=n) / 7, order)
        assert next(lines) == " ".join(map(str, order))


def test_pairs_that_were_seen_are_left_out_by_rounding_alone():
    """That is the mistake: as many seen pairs as this are never taken."""
    mdp, _, sampler, _, codes, lengths = LOGS[6]
    n = counted(sampler.to_log(codes, lengths), mdp.shape, 24)
    seen = n.sum(axis=2) > 0
    p = n / np.maximum(n.sum(axis=2), 1)[:, :, None]
    rows = np.array(
        [[worst_row(p[s, a], 9.0, np.eye(25)[24]) for a in range(4)] for s in range(25)]
    )
    lost = seen & (rows.sum(axis=2) != 1)
    assert 0.05 < lost.sum() / seen.sum() < 0.95


# ---- HCPI ---------------------------------------------------------------------------------------


def slow_hcpi(log: Log, pi_b: np.ndarray, estimator: str, delta: float, truth: float):
    """The released procedure, episode by episode: the policy, and the bounds of α = 0, …, 0.9."""
    episodes = [
        list(zip(*(x[a:b] for x in (log.state, log.action, log.next_state, log.reward))))
        for a, b in itertools.pairwise(log.episode_starts)
    ]
    n_train = int(0.2 * len(episodes))
    training = [row for episode in episodes[:n_train] for row in episode]
    q = np.zeros(pi_b.shape)
    for row in (replay_uniforms(0, 5000) * len(training)).astype(int):
        s, a, following, r = training[row]
        beyond = q[following].max() if following >= 0 else 0.0
        q[s, a] += 0.1 * (r + DISCOUNT * beyond - q[s, a])
    best = np.eye(pi_b.shape[1])[q.argmax(axis=1)]
    bounds, chosen, highest = [], best, -math.inf
    for alpha in np.arange(10) / 10:
        pi = (1 - alpha) * best + alpha * pi_b
        v_hat, q_hat = whole_values(training, pi)
        x = np.array([
            contribution(e, pi, pi_b, v_hat, q_hat, estimator) for e in episodes[n_train:]
        ])  # fmt: skip
        n = len(x)
        with np.errstate(all="ignore"):
            sigma = np.sqrt(((x - x.mean()) ** 2).sum() / (n - 1))
            bounds.append(x.mean() - sigma / math.sqrt(n - 1) * student.ppf(1 - delta, n - 1))
        if bounds[-1] > highest:
            chosen, highest = pi, bounds[-1]
    return (chosen if highest > truth else pi_b), bounds


def whole_values(training, pi):
    """int() of V and Q of a policy in the model of the training transitions."""
    n_states, n_actions = pi.shape
    n, r = np.zeros((n_states, n_actions, n_states + 1)), np.zeros(pi.shape)
    for s, a, following, reward in training:
        n[s, a, following] += 1  # the end is the last place
        r[s, a] += reward
    visits = np.maximum(n.sum(axis=2), 1)
    p, r = n[:, :, :-1] / visits[:, :, None], r / visits
    v = np.zeros(n_states)
    for _ in range(10_000):
        q = r + DISCOUNT * p @ v
        before, v = v, (pi * q).sum(axis=1)
        if np.abs(v - before).max() < 1e-6:
            break
    return v.astype(int), (r + DISCOUNT * p @ v).astype(int)


def contribution(episode, pi, pi_b, v_hat, q_hat, estimator):
    if estimator == "dr":
        x = 0.0
        for s, a, _, r in episode[::-1]:
            x = v_hat[s] + pi[s, a] / pi_b[s, a] * (r + DISCOUNT * x - q_hat[s, a])
        return x
    weights = np.cumprod([pi[s, a] / pi_b[s, a] for s, a, _, _ in episode])
    paid = np.array([DISCOUNT**t * r for t, (_, _, _, r) in enumerate(episode)])
    return (weights * paid).sum() if estimator == "pdis" else weights[-1] * paid.sum()


@pytest.mark.parametrize("case", [c for c in range(len(LOGS)) if len(LOGS[c][5]) <= 60])
@pytest.mark.parametrize("estimator", ["is", "pdis", "dr"])
def test_hcpi_chooses_what_the_released_procedure_chooses(case, estimator):
    mdp, baseline, sampler, _, codes, lengths = LOGS[case]
    log = sampler.to_log(codes, lengths)
    problem = Problem.from_log(log, baseline, discount=DISCOUNT, v_max=1.0)
    truth = exact_value(mdp, baseline)
    for delta in (0.1, 0.9, 1):
        wanted, bounds = slow_hcpi(log, baseline.probs, estimator, delta, truth)
        algorithm = HCPI(estimator, delta=delta, baseline_value=truth, released=True)
        found = algorithm.improve(problem)
        known = np.array([-math.inf if math.isnan(bound) else bound for bound in bounds])
        np.testing.assert_allclose(found.lower_bounds[:10], known, rtol=1e-6, atol=1e-12)
        assert found.lower_bounds[10] == -math.inf
        np.testing.assert_allclose(found.policy.probs, wanted, atol=1e-12)
        trainer = CompiledTrainer([algorithm], sampler, baseline, 1.0)
        assert trainer.members == [0]
        np.testing.assert_allclose(trainer.policies(codes, lengths)[0], wanted, atol=1e-12)


def test_the_released_doubly_robust_estimate_is_per_decision_but_for_sure_pairs():
    """int() leaves 1 only for pairs that always ended in the goal."""
    differ = 0
    for mdp, baseline, sampler, _, codes, lengths in LOGS[:9]:
        log = sampler.to_log(codes, lengths)
        problem = Problem.from_log(log, baseline, discount=DISCOUNT, v_max=1.0)
        truth = exact_value(mdp, baseline)
        pdis, dr = (
            HCPI(name, delta=0.9, baseline_value=truth, released=True).improve(problem)
            for name in ("pdis", "dr")
        )
        training = [(s, a, f, r) for s, a, f, r in zip(
            *(x[: log.episode_starts[int(0.2 * log.n_episodes)]]
              for x in (log.state, log.action, log.next_state, log.reward)))]  # fmt: skip
        if whole_values(training, baseline.probs)[1].any():
            differ += 1
        else:
            np.testing.assert_allclose(dr.lower_bounds, pdis.lower_bounds, rtol=1e-9)
    assert 0 < differ < 9


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RobustMDP(released=True), "give safety_test=False"),
        (
            lambda: RobustMDP(released=True, safety_test=False, r_max=1.0),
            "leave out known_rewards and r_max",
        ),
        (lambda: HCPI("wis", released=True), "is, pdis and dr with Student's t"),
        (lambda: HCPI("is", bound="bernstein", released=True), "leave out bound"),
    ],
)
def test_options_that_the_released_code_lacks(make, says):
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    "algorithm",
    [RobustMDP(released=True, safety_test=False), HCPI(released=True, baseline_value=0.4)],
)
def test_tasks_that_the_paper_does_not_have(algorithm):
    log = Log.from_arrays(
        episode_id=[0, 0, 1, 1, 2, 2, 3, 3], step=[0, 1] * 4, state=["a", "b"] * 4,
        action=[0, 1, 1, 0] * 2, reward=[0.5, 1.0] * 4, terminated=[False, True] * 4,
        truncated=[False] * 8,
    )  # fmt: skip
    with pytest.raises(InputError, match="where only a goal that ends the episode pays"):
        algorithm.improve(Problem.from_log(log))


def test_hcpi_as_released_must_be_told_the_truth():
    _, baseline, sampler, _, codes, lengths = LOGS[0]
    problem = Problem.from_log(sampler.to_log(codes, lengths), baseline, discount=DISCOUNT)
    with pytest.raises(InputError, match="baseline_value"):
        HCPI(released=True).improve(problem)
