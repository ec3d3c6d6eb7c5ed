"""Random MDPs and their baselines, with breakdown, against plain NumPy in the same run.

Run: python -m benchmarks.bench_garnet
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from spibb.envs.garnet import draw_garnet
from spibb.envs.softening import softened_baseline, softened_baselines
from spibb.kernels import garnet

N_MDPS = 50
ROUNDS = 15
ETAS = (0.1, 0.5, 0.9)
DISCOUNT = 0.95
WANTED = 2e-3
"""Seconds for one MDP and the baseline of one η."""
UNIFORM = np.full((50, 4), 0.25)


# ---- plain NumPy -------------------------------------------------------------------------------


def numpy_rows(rng):
    """P [S, A, S] with 4 successors per pair."""
    p = np.zeros((50, 4, 50))
    for s in range(50):
        for a in range(4):
            cuts = np.sort(rng.random(3))
            p[s, a, rng.choice(50, 4, replace=False)] = np.diff(cuts, prepend=0, append=1)
    return p


def numpy_values(p, r, pi):
    p_pi = np.einsum("sa,sat->st", pi, p)
    return np.linalg.solve(np.eye(50) - DISCOUNT * p_pi, (pi * r).sum(axis=1))


def numpy_optimum(p, r):
    """Q* by policy iteration with dense solves."""
    pi = UNIFORM
    while True:
        v = numpy_values(p, r, pi)
        q = r + DISCOUNT * p @ v
        if (q.max(axis=1) <= v + 1e-12).all():
            return q
        pi = np.eye(4)[q.argmax(axis=1)]


def numpy_end_in(p, terminal):
    r = p[:, :, terminal].copy()
    p = p.copy()
    p[:, :, terminal] = 0
    p[terminal] = r[terminal] = 0
    return p, r


def numpy_farthest(p):
    """(P, R, Q*, x_f) with the terminal state found by solving all 49 candidates."""
    best, found = np.inf, None
    for terminal in range(1, 50):
        cut, r = numpy_end_in(p, terminal)
        q = numpy_optimum(cut, r)
        if DISCOUNT**50 < q[0].max() < best:
            best, found = q[0].max(), (cut, r, q, terminal)
    return found


def numpy_baseline(p, r, q, eta, rng):
    """Softening by 40 bisections, then randomisation with one dense solve per step."""
    optimal, uniform = q[0].max(), numpy_values(p, r, UNIFORM)[0]
    target = eta * optimal + (1 - eta) * uniform
    low, high = 0.0, 1e4
    for _ in range(40):
        middle = (low + high) / 2
        weights = np.exp(middle * (q - q.max(axis=1, keepdims=True)))
        pi = weights / weights.sum(axis=1, keepdims=True)
        above = numpy_values(p, r, pi)[0] > (target + optimal) / 2
        low, high = (low, middle) if above else (middle, high)
    while numpy_values(p, r, pi)[0] > target:
        s = rng.integers(50)
        best = q[s].argmax()
        other = (best + 1 + rng.integers(3)) % 4
        mass = min(0.1, pi[s, best])
        pi[s, best], pi[s, other] = pi[s, best] - mass, pi[s, other] + mass
    return pi


# ---- ours --------------------------------------------------------------------------------------


def kernel_form(draw):
    return draw.mdp.rows, draw.mdp.rewards, draw.mdp.discount, draw.mdp.initial


def per_item(job: Callable[..., object], items: list) -> float:
    """Mean over the items of the shortest seconds of a call; the first round is not counted."""
    seconds = np.empty((ROUNDS, len(items)))
    for times in (seconds[0], *seconds):
        for i, item in enumerate(items):
            begin = time.perf_counter()
            job(*item)
            times[i] = time.perf_counter() - begin
    return float(seconds.min(axis=0).mean())


def generation() -> list[tuple[str, float]]:
    """(part, seconds) of drawing one MDP and finding its terminal state."""
    rng = np.random.default_rng(0)
    uniforms = [rng.random((200, 7)) for _ in range(N_MDPS)]
    rows = [garnet.draw_rows(u, 50) for u in uniforms]
    n_sweeps = np.mean([swept(*pair) for pair in rows])
    sweeps = per_item(swept, rows)
    search = per_item(farthest, rows)
    return [
        ("uniforms (NumPy)", per_item(lambda: rng.random((200, 7)), [()] * N_MDPS)),
        (
            "successors and spacings",
            per_item(lambda u: garnet.draw_rows(u, 50), [(u,) for u in uniforms]),
        ),
        (f"{n_sweeps:.1f} sweeps, 50 candidates", sweeps),
        ("exact solves of the nearly farthest", search - sweeps),
        ("draw_garnet, all", per_item(lambda: draw_garnet(rng), [()] * N_MDPS)),
    ]


def farthest(successors, probs):
    return garnet.farthest(successors, probs, DISCOUNT, 50)


def swept(successors, probs):
    """Number of sweeps until the values at x_0 have settled."""
    w, n = np.eye(50), 1
    while garnet.sweep(successors, probs, DISCOUNT, w) > garnet.SETTLED:
        n += 1
    return n


def baseline(eta: float) -> list[tuple[str, float]]:
    """(part, seconds) of one baseline."""
    rng = np.random.default_rng(0)
    draws = [draw_garnet(rng) for _ in range(N_MDPS)]
    jobs, soft, steps = [], [], []
    for draw in draws:
        mdp, q = kernel_form(draw), draw.optimal_q
        uniform, optimal = garnet.performance(mdp, UNIFORM), q[0].max()
        target = eta * optimal + (1 - eta) * uniform
        pi = np.empty((50, 4))
        jobs.append((mdp, q, uniform, optimal, (target + optimal) / 2, pi))
        garnet.soften(*jobs[-1])
        seeds = np.array([len(jobs)], dtype=np.uint64)
        soft.append((mdp, q, target, seeds, pi))
        steps.append(garnet.randomise(mdp, q, target, False, seeds.copy(), pi.copy())[2])

    def randomise(mdp, q, target, seeds, pi):
        garnet.randomise(mdp, q, target, False, seeds.copy(), pi.copy())

    def api(draw):
        softened_baselines(draw.mdp, (eta,), rng, optimal_q=draw.optimal_q)

    evaluations = per_item(lambda mdp, *_: garnet.performance(mdp, UNIFORM), jobs)
    return [
        ("one evaluation", evaluations),
        (f"{np.mean(steps):.0f} randomisation steps", per_item(randomise, soft)),
        ("softening", per_item(garnet.soften, jobs)),
        ("softened_baselines, Q* given", per_item(api, [(draw,) for draw in draws])),
        (
            "softened_baseline",
            per_item(lambda d: softened_baseline(d.mdp, eta, rng), [(d,) for d in draws]),
        ),
    ]


def same_choice(n: int = 5) -> None:
    """The two searches must agree before their times are compared."""
    rng = np.random.default_rng(1)
    for _ in range(n):
        successors, probs = garnet.draw_rows(rng.random((200, 7)), 50)
        p = np.zeros((200, 50))
        np.put_along_axis(p, successors.astype(np.int64), probs, axis=1)
        _, _, q, terminal = numpy_farthest(p.reshape(50, 4, 50))
        ours = farthest(successors, probs)
        assert ours[0] == terminal
        np.testing.assert_allclose(ours[4], q, atol=1e-9)


def main() -> None:
    same_choice()
    rng = np.random.default_rng(0)
    print("Random MDPs: 50 states, 4 actions, 4 successors; one core")
    parts = generation()
    for name, seconds in parts:
        print(f"  {name:40}{seconds * 1e6:8.0f} µs")
    drawn = parts[-1][1]
    plain = per_item(numpy_farthest, [(numpy_rows(rng),)])
    print(f"  {'NumPy, brute force':40}{plain * 1e6:8.0f} µs, {plain / drawn:.0f} times")
    p, r, q, _ = numpy_farthest(numpy_rows(rng))
    for eta in ETAS:
        print(f"Baseline, η = {eta}")
        parts = baseline(eta)
        for name, seconds in parts:
            print(f"  {name:40}{seconds * 1e6:8.0f} µs")
        made = parts[-2][1]
        slow = per_item(numpy_baseline, [(p, r, q, eta, rng)])
        name = "NumPy, bisection and a solve per step"
        print(f"  {name:40}{slow * 1e6:8.0f} µs, {slow / made:.0f} times")
        print(
            f"  MDP and baseline: {(drawn + made) * 1e3:.2f} ms (wanted {WANTED * 1e3:.0f}), "
            f"NumPy {(plain + slow) * 1e3:.0f} ms, {(plain + slow) / (drawn + made):.0f} times"
        )


if __name__ == "__main__":
    main()
