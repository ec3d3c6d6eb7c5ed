"""21 policies in 1,000 models drawn from the posterior, at the size of ICU-Sepsis.

Run: python -m benchmarks.bench_posterior    (OPENBLAS_NUM_THREADS=1 for one core)
"""

from __future__ import annotations

import time

import numpy as np

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import Belief
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

SHAPE, SUCCESSORS, HAZARD = (713, 25), 20, 0.1
EPISODES, DRAWS, ROUNDS = 10_000, 1000, 3
WANTED = 5.0
"""Seconds of processor time on one core."""


def sepsis_like(rng: np.random.Generator) -> MDP:
    """As many states, actions and successors; one reward at the end, 1 or 0."""
    n_states, n_actions = SHAPE
    pair = np.repeat(np.arange(n_states * n_actions), SUCCESSORS + 2)
    successor = rng.integers(n_states, size=(n_states * n_actions, SUCCESSORS + 2))
    prob = np.empty(successor.shape)
    prob[:, 2:] = (1 - HAZARD) * rng.dirichlet(np.ones(SUCCESSORS), n_states * n_actions)
    survives = rng.uniform(0.6, 0.9, n_states * n_actions)
    prob[:, 0], prob[:, 1] = HAZARD * survives, HAZARD * (1 - survives)
    ends = np.tile(np.arange(SUCCESSORS + 2) < 2, n_states * n_actions)
    reward = np.tile(np.arange(SUCCESSORS + 2) == 0, n_states * n_actions).astype(float)
    return MDP.from_outcomes(
        pair // n_actions, pair % n_actions, prob.reshape(-1), successor.reshape(-1), reward, ends,
        initial=rng.dirichlet(np.ones(n_states)), n_actions=n_actions, discount=0.99,
    )  # fmt: skip


def main() -> None:
    rng = np.random.default_rng(0)
    mdp = sepsis_like(rng)
    baseline = Policy(rng.dirichlet(np.full(SHAPE[1], 0.3), SHAPE[0]), mdp.states, mdp.actions)
    counts = Sampler(mdp, baseline, 50).counts(EPISODES, rng=rng)
    problem = Problem.from_counts(counts, baseline, discount=mdp.discount)
    policies = np.concatenate([baseline.probs[None], Auto.over_thresholds().candidates(problem)[1]])
    for _ in range(ROUNDS):
        begin = time.process_time()
        belief = Belief.of(counts, baseline, mdp.discount)
        ready = time.process_time()
        belief.values(policies, DRAWS, np.random.default_rng(0))
        took = time.process_time() - begin
        print(
            f"{len(policies)} policies × {DRAWS} draws at {SHAPE[0]} × {SHAPE[1]}: {took:.2f} s, "
            f"{ready - begin:.2f} of it to pool, {sum(s > 0 for s in belief._shares(DRAWS))} "
            f"values of α (wanted: {WANTED:g} s)"
        )


if __name__ == "__main__":
    main()
