"""The order of labels changes nothing that `auto` finds."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.log import Log
from spibb.policy import Policy

STATES, ACTIONS = ["s0", "s1", "s2"], ["a", "b", "c"]


def drawn() -> Log:
    rng = np.random.default_rng(5)
    n = 60
    action = rng.integers(3, size=2 * n)
    return Log.from_arrays(
        [STATES[x] for x in rng.integers(3, size=2 * n).tolist()],
        [ACTIONS[a] for a in action.tolist()],
        0.3 * action + rng.standard_normal(2 * n),
        terminated=np.tile([False, True], n),
    )


@pytest.mark.parametrize("seed", range(3))
def test_lower_bounds_do_not_depend_on_the_order_of_labels(seed):
    rng, log = np.random.default_rng(seed), drawn()
    probs = np.random.default_rng(9).dirichlet(np.full(3, 20.0), size=3)
    rows, columns = rng.permutation(3)[::-1], np.roll(rng.permutation(3), 1)
    given = Policy(probs, STATES, ACTIONS)
    other = Policy(
        probs[rows][:, columns], [STATES[x] for x in rows], [ACTIONS[a] for a in columns]
    )
    assert (rows != np.arange(3)).any() or (columns != np.arange(3)).any()
    mine, theirs = (
        Auto().improve(Problem.from_log(log, policy, discount=0.9)) for policy in (given, other)
    )
    assert any(candidate.states_changed for candidate in mine.sweep)
    for a, b in zip(mine.sweep, theirs.sweep, strict=True):
        assert (a.lower, a.gain) == pytest.approx((b.lower, b.gain), abs=1e-9)
    np.testing.assert_allclose(
        mine.policy.probs, theirs.policy.aligned(given.states, given.actions).probs, atol=1e-9
    )


def test_no_estimate_where_one_episode_has_all_the_weight():
    log = Log.from_arrays(
        ["x"] * 40, ["b"] + ["a"] * 39, [1.0] + [0.0] * 39, terminated=[True] * 40
    )
    sweep = Auto(kinds=("pi-b",), n_wedges=(1,)).sweep(Problem.from_log(log, discount=0.9))
    moved = [candidate for candidate in sweep if candidate.states_changed]
    assert any(np.isclose(candidate.value, 1.0) for candidate in moved)
    assert all(c.off_policy is None for c in moved if np.isclose(c.value, 1.0))
