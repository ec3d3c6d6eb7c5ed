"""Random logs and baselines for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from spibb.algorithms.problem import Problem
from spibb.log import Log
from spibb.policy import Policy


def random_problem(
    seed: int, n_states: int, n_actions: int, n_rows: int, discount: float, sparse: bool = False
) -> Problem:
    """Transitions drawn at random, rewards of both signs, ends, and a baseline with zeros."""
    rng = np.random.default_rng(seed)
    baseline = rng.dirichlet(np.full(n_actions, 0.7), size=n_states)
    if sparse:
        keep = rng.random(baseline.shape) < 0.6
        keep[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
        baseline = np.where(keep, baseline + 0.01, 0)
        baseline /= baseline.sum(axis=1, keepdims=True)
    states = rng.integers(n_states, size=n_rows)
    actions = [rng.choice(n_actions, p=baseline[s]) for s in states]
    ends = rng.random(n_rows) < 0.15
    log = Log.from_arrays(
        states,
        np.array(actions),
        np.round(rng.normal(size=n_rows), 3),
        rng.integers(n_states, size=n_rows),
        ends,
        ~ends,
        episode_id=np.arange(n_rows),
        n_states=n_states,
        n_actions=n_actions,
    )
    return Problem.from_log(log, Policy(baseline), discount=discount)


@st.composite
def problems(draw, max_states: int = 6, max_actions: int = 4, max_rows: int = 60) -> Problem:
    """Small problems, from one state and one transition upwards."""
    return random_problem(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, max_states)),
        draw(st.integers(1, max_actions)),
        draw(st.integers(1, max_rows)),
        draw(st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.99])),
        draw(st.booleans()),
    )


n_wedges = st.sampled_from([0.5, 1, 2, 3, 5, 10, np.inf])
