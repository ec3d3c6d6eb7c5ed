"""How often `certified` finds something, how much it gains, and how often it is wrong.

    python -m benchmarks.power_certified [--logs 60] [--authors-q FILE] [--confirm]

The knobs of `changes.change_search` were chosen on the first worlds (gridworld, random MDPs);
`--confirm` runs the others, which chose nothing. Prints a Markdown table; *wanted* is what a
prototype reached (share of logs / gain), the least that is asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.algorithms.certified import Certified
from spibb.algorithms.problem import Problem
from spibb.envs.baselines import gridworld_baseline, optimal_q, softmax
from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.softening import softened_baselines
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.solve import evaluate, free_box, optimise

SEED, DELTA = 7, 0.05


@dataclass(frozen=True, eq=False)
class World:
    """An MDP, the policy that makes its logs, and what a user would declare."""

    mdp: MDP
    baseline: Policy
    limits: dict[str, Any]
    max_steps: int = 50


WANTED = {
    ("gridworld", 200): "0.60 / 0.024", ("gridworld", 500): "0.98 / 0.070",
    ("gridworld", 1000): "1.00 / 0.103", ("gridworld", 5000): "1.00 / 0.148",
    ("random MDPs η = 0.5", 200): "0.23 / 0.008", ("random MDPs η = 0.5", 1000): "1.00 / 0.066",
    ("random MDPs η = 0.5", 5000): "1.00 / 0.133", ("random MDPs η = 0.9", 200): "0.10 / 0.001",
    ("random MDPs η = 0.9", 1000): "0.70 / 0.009", ("random MDPs η = 0.9", 5000): "1.00 / 0.020",
}  # fmt: skip
UNIT: dict[str, Any] = {"lowest_return": 0.0, "highest_return": 1.0}


def gridworlds(path: str | None) -> Iterator[World]:
    """The gridworld with the package's baseline, or with softmax of a file's Q."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    if path is not None:
        q = np.loadtxt(path, delimiter=",", comments="#", skiprows=3)[:, 1:]
        baseline = Policy(softmax(q), mdp.states, mdp.actions)
    while True:
        yield World(mdp, baseline, UNIT)


def garnets(eta: float, max_steps: int) -> Iterator[World]:
    """A new random MDP for every log."""
    rng = np.random.default_rng(SEED)
    while True:
        drawn = draw_garnet(rng)
        made = softened_baselines(drawn.mdp, (eta,), rng, optimal_q=drawn.optimal_q)[0]
        yield World(drawn.mdp, made.policy, UNIT, max_steps)


def dense_mdps(greedy: float, paid: float) -> Iterator[World]:
    """Eight states, three actions, random rewards of 0 or `paid`; ends with chance 0.1."""
    rng = np.random.default_rng(SEED)
    n, k, end = 8, 3, 0.1
    while True:
        p = rng.dirichlet(np.full(n, 0.5), size=(n, k)) * (1 - end)
        chance = rng.random((n, k))
        x, a, y = (grid.reshape(-1) for grid in np.indices(p.shape))
        u, b = (grid.reshape(-1) for grid in np.indices(chance.shape))
        parts = []
        for share, r in ((chance, paid), (1 - chance, 0.0)):
            parts.append((x, a, p.reshape(-1) * share[x, a], y, np.full(len(x), r), False))
            parts.append((u, b, end * share.reshape(-1), u, np.full(len(u), r), True))
        columns = [np.concatenate([part[i] for part in parts]) for i in range(5)]
        ends = np.concatenate([np.full(len(part[0]), part[5]) for part in parts])
        state, action, prob, successor, reward = columns
        mdp = MDP.from_outcomes(
            state, action, prob, successor, reward, ends, initial=rng.dirichlet(np.ones(n)),
            n_actions=k, discount=0.9,
        )  # fmt: skip
        limits = {"lowest_reward": min(paid, 0.0), "highest_reward": max(paid, 0.0)}
        yield World(mdp, mixed(mdp, greedy), limits, 200)


def bandits(greedy: float) -> Iterator[World]:
    """Ten contexts, four actions, clicks with chances between 0.05 and 0.5."""
    rng = np.random.default_rng(SEED)
    n, k = 10, 4
    while True:
        chance = rng.uniform(0.05, 0.5, size=(n, k))
        u, b = (grid.reshape(-1) for grid in np.indices(chance.shape))
        prob = np.concatenate([chance.reshape(-1), 1 - chance.reshape(-1)])
        paid = np.repeat([1.0, 0.0], n * k)
        mdp = MDP.from_outcomes(
            np.tile(u, 2), np.tile(b, 2), prob, np.tile(u, 2), paid, np.full(2 * n * k, True),
            initial=np.full(n, 1 / n), n_actions=k, discount=0.9,
        )  # fmt: skip
        yield World(mdp, mixed(mdp, greedy), {"lowest_reward": 0.0, "highest_reward": 1.0})


def corridor(greedy: float) -> Iterator[World]:
    """Seven places in a row, −1 a step until the last; moves fail with chance 0.2."""
    rows = [
        (s, a, prob, max(0, s + move), -1.0, s + move == 6)
        for s in range(6)
        for a, wanted in enumerate((-1, 1, 1))
        for move, prob in ((wanted, 0.8 if a < 2 else 0.5), (0, 0.2 if a < 2 else 0.5))
    ]
    columns = [np.array(column) for column in zip(*rows)]
    mdp = MDP.from_outcomes(*columns, initial=np.eye(6)[0], n_actions=3, discount=0.9)
    while True:
        yield World(mdp, mixed(mdp, greedy), {"lowest_reward": -1.0, "highest_reward": 0.0}, 300)


def mixed(mdp: MDP, greedy: float) -> Policy:
    """The optimal action with probability `greedy`, else any."""
    q = optimal_q(mdp)
    best = np.eye(q.shape[1])[q.argmax(axis=1)]
    return Policy(greedy * best + (1 - greedy) / q.shape[1], mdp.states, mdp.actions)


def measure(worlds: Iterator[World], n: int, logs: int, delta: float) -> str:
    """Share of logs with a certified change, gain, share of the possible one, false and worse."""
    rng = np.random.default_rng(SEED + n)
    found = []
    for _ in range(logs):
        world = next(worlds)
        mdp, baseline = world.mdp, world.baseline
        log = Sampler(mdp, baseline, world.max_steps).log(n, rng=rng)
        problem = Problem.from_log(log, baseline, discount=mdp.discount)
        probs = Certified(delta=delta, **world.limits).improve(problem).policy.probs
        old, new = evaluate(mdp, baseline.probs), evaluate(mdp, probs)
        best = optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool)))
        false = (((probs - baseline.probs) * old.q).sum(axis=1) < -1e-9).any()
        gain, possible = (mdp.initial @ (s.v - old.v) for s in (new, best))
        found.append(((probs != baseline.probs).any(), gain, possible, false, gain < -1e-9))
    some, gain, possible, false, worse = np.array(found, dtype=float).mean(axis=0)
    share = gain / possible if possible > 1e-9 else 0.0
    return f"{some:.2f} | {gain:.4f} | {share:.2f} | {false:.3f} | {worse:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=60)
    parser.add_argument("--authors-q")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--worlds", default="", help="only worlds whose name has this in it")
    parser.add_argument("--deltas", type=float, nargs="+", default=[DELTA])
    given = parser.parse_args()
    sizes = (200, 500, 1000, 5000)
    chosen_on = {
        "gridworld": lambda: gridworlds(given.authors_q),
        "random MDPs η = 0.5": lambda: garnets(0.5, 50),
        "random MDPs η = 0.9": lambda: garnets(0.9, 50),
        "random MDPs η = 0.5, not cut": lambda: garnets(0.5, 400),
        "random MDPs η = 0.9, not cut": lambda: garnets(0.9, 400),
    }
    confirmed = {
        f"{name}, {kind} baseline": (lambda make=make, g=g: make(g))
        for name, make in (
            ("dense MDPs, rewards", lambda g: dense_mdps(g, 1.0)),
            ("dense MDPs, costs", lambda g: dense_mdps(g, -1.0)),
            ("bandit", bandits),
            ("corridor with costs", corridor),
        )
        for kind, g in (("good", 0.8), ("middling", 0.4), ("uniform", 0.0))
    }
    print("| world | δ | episodes | wanted | certified | gain | of the possible | false | worse |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, make in (confirmed if given.confirm else chosen_on).items():
        if given.worlds not in name:
            continue
        for delta in given.deltas:
            for n in (200, 1000) if given.confirm else sizes:
                row = measure(make(), n, given.logs, delta)
                wanted = WANTED.get((name, n), "") if delta == DELTA else ""
                print(f"| {name} | {delta:g} | {n:,} | {wanted} | {row} |", flush=True)


if __name__ == "__main__":
    main()
