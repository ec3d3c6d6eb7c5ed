"""Fits of 25 states × 4 actions, and drawing logs, against plain NumPy in the same run."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_seconds
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.algorithms.threshold import spibb_box
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.kernels import dense
from spibb.simulate import Sampler

N_WEDGE = 10


def numpy_projection(q, baseline, bootstrapped, share):
    """One greedy step over all states, a Python loop over states as research scripts have it."""
    rows = np.zeros_like(q)
    for s in range(len(q)):
        if share == 1.0:
            rows[s] = np.where(bootstrapped[s], baseline[s], 0)
            trusted = np.flatnonzero(~bootstrapped[s])
            if len(trusted):
                rows[s, trusted[np.argmax(q[s, trusted])]] = baseline[s, trusted].sum()
            continue
        left = 1.0
        for a in np.argsort(-q[s]):
            rows[s, a] = min(left, baseline[s, a]) if bootstrapped[s, a] else left
            left -= rows[s, a]
            if left <= 0:
                break
    return rows


def numpy_policy_iteration(p, r, discount, baseline, bootstrapped, share):
    """Policy iteration with a dense inverse over the |X||A| pairs, as the paper's matrices have it.

    Q = (I − γ P π)⁻¹ R with P [XA, X] and π [X, XA].
    """
    n_states, n_actions = baseline.shape
    pairs = p.reshape(n_states * n_actions, n_states)
    pi, q = baseline, None
    while True:
        spread = np.zeros((n_states, n_states * n_actions))
        for s in range(n_states):
            spread[s, s * n_actions : (s + 1) * n_actions] = pi[s]
        inverse = np.linalg.inv(np.eye(len(pairs)) - discount * pairs @ spread)
        new_q = (inverse @ r.reshape(-1)).reshape(n_states, n_actions)
        pi = numpy_projection(new_q, baseline, bootstrapped, share)
        if q is not None and np.allclose(q, new_q, atol=1e-9):
            return pi, new_q
        q = new_q


def dense_transitions(mdp):
    n_states, n_actions = mdp.shape
    p = np.zeros((n_states * n_actions, n_states))
    rows = np.repeat(np.arange(len(p)), np.diff(mdp.indptr))
    p[rows, mdp.successors] = mdp.probs
    return p.reshape(n_states, n_actions, n_states)


def fits(n_logs: int = 20) -> list[tuple[str, float, float, float]]:
    """(algorithm, seconds NumPy, seconds kernel, seconds API) per fit, mean over logs."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler, rng = Sampler(mdp, baseline), np.random.default_rng(0)
    problems = [
        Problem.from_counts(sampler.counts(200, rng=rng), baseline, discount=0.95)
        for _ in range(n_logs)
    ]
    table = []
    for algorithm, share in ((PiBSpibb(N_WEDGE), 1.0), (PiLeqBSpibb(N_WEDGE), 0.0)):
        jobs = [(problem, *spibb_box(problem, N_WEDGE, share)) for problem in problems]
        plain = [
            (dense_transitions(p.model), p.model.rewards, 0.95, baseline.probs, b, share)
            for p, _, b in jobs
        ]
        for arguments, (problem, _, _) in zip(plain, jobs):
            wanted = numpy_policy_iteration(*arguments)[1]
            np.testing.assert_allclose(algorithm.improve(problem).q, wanted, atol=1e-8)

        def run_numpy(plain=plain):
            for arguments in plain:
                numpy_policy_iteration(*arguments)

        def run_kernel(jobs=jobs):
            for problem, box, _ in jobs:
                model, pi, q = problem.model, box.start.copy(), np.empty((25, 4))
                dense.policy_iteration(model.rows, model.rewards, 0.95, box, pi, q)

        def run_api(jobs=jobs, algorithm=algorithm):
            for problem, _, _ in jobs:
                algorithm.improve(problem)

        seconds = (
            best_seconds(run_numpy, 5),
            best_seconds(run_kernel, 7, 20),
            best_seconds(run_api, 7, 20),
        )
        plain_s, kernel_s, api_s = (s / n_logs for s in seconds)
        table.append((algorithm.name, plain_s, kernel_s, api_s))
    return table


def numpy_draws(mdp, baseline, n_episodes, rng):
    """Episodes drawn and counted with one vectorised NumPy step for all walkers at a time."""
    p = dense_transitions(mdp)
    joint = baseline.probs[:, :, None] * np.concatenate([p, mdp.exits[:, :, None]], axis=2)
    cumulative = np.cumsum(joint.reshape(25, -1), axis=1)
    visits, state = np.zeros(joint.size, dtype=np.int64), np.zeros(n_episodes, dtype=np.int64)
    for _ in range(50):
        row = cumulative[state]
        outcome = (row < rng.random(len(state))[:, None] * row[:, -1:]).sum(axis=1)
        visits += np.bincount(state * 104 + outcome, minlength=len(visits))
        following = outcome % 26
        state = following[following < 25]
    return visits


def draws(n_episodes: int = 20_000) -> tuple[float, float]:
    """Million steps per second, drawn and counted: plain NumPy, ours."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler, rng = Sampler(mdp, baseline), np.random.default_rng(0)
    steps = int(sampler.counts(n_episodes, rng=np.random.default_rng(1)).n.sum())
    plain = best_seconds(lambda: numpy_draws(mdp, baseline, n_episodes, rng), 3)
    ours = best_seconds(lambda: sampler.counts(n_episodes, rng=rng), 15)
    return steps / plain / 1e6, steps / ours / 1e6


def main() -> None:
    print("25 states, 4 actions, 200 trajectories: one fit on one core")
    print(f"{'':10}{'NumPy':>10}{'kernel':>10}{'ratio':>8}{'API':>10}{'ratio':>8}")
    for name, plain, kernel, api in fits():
        print(
            f"{name:10}{plain * 1e6:8.0f} µs{kernel * 1e6:7.1f} µs{plain / kernel:8.0f}"
            f"{api * 1e6:7.1f} µs{plain / api:8.0f}"
        )
    plain, ours = draws()
    print(f"gridworld steps drawn and counted: NumPy {plain:.1f} M/s, ours {ours:.0f} M/s")


if __name__ == "__main__":
    main()
