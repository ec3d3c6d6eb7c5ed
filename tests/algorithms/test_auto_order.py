"""The order of labels changes nothing that `auto` finds."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.assurance.label_order import by_content
from spibb.counts import Counts
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


@pytest.mark.parametrize("factor", [7.0, 0.1, 1000.0, 3e30])
def test_the_order_of_draws_is_that_of_the_log_in_every_unit(factor):
    """Sums of few different rewards lie on a grid, and must not lie where digits are cut."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        state, action = rng.integers(0, 40, 600), rng.integers(0, 3, 600)
        reward = rng.choice([-1.0, 1.0, 4.0, 6.0, 9.0], 600) / rng.choice([1, 3, 64, 128])
        one, two = (
            Counts.from_log(Log.from_arrays(state, action, unit * reward, terminated=[True] * 600))
            for unit in (1.0, factor)
        )
        assert by_content(one) == by_content(two)
