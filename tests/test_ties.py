"""A choice in a state of small values is not hidden by large values elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb.kernels import dense
from spibb.labels import vocabulary
from spibb.solve import free_box, optimise
from spibb.ties import pin_down, settle

SIZES = [1e14, 1e8, 1.0, 1e-8]


def two_states(size: float) -> spibb.Log:
    """State A pays `size` for either action, state B a little more for y."""
    return spibb.Log.from_arrays(
        ["A"] * 2 + ["B"] * 2, ["x", "y", "x", "y"], [size, size, 1.0, 1.01], terminated=[True] * 4
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "algorithm",
    [
        spibb.PiBSpibb(n_wedge=1, method="sweeps"),
        spibb.PiLeqBSpibb(n_wedge=1, method="sweeps"),
        spibb.ModelFreeSpibb(n_wedge=1),
        spibb.RobustMDP(method="sweeps", safety_test=False, known_rewards=True),
        spibb.BasicRL(method="sweeps"),
    ],
    ids=lambda a: a.name,
)
def test_one_state_does_not_hide_the_choice_in_another(algorithm, size):
    log = two_states(size)
    baseline = spibb.Policy.uniform(log.states, log.actions)
    result = spibb.improve(log, baseline, algorithm=algorithm, discount=0.9, v_max=max(size, 10.0))
    right = result.policy.row("B") == {"x": 0.0, "y": 1.0}
    if algorithm.name == "robust-mdp":  # nature may lead to any state, and bring its rounding along
        assert right or not result.converged
    else:
        assert right and result.converged
    assert result.policy.row("A") == {"x": 0.5, "y": 0.5}


def random_world(rng: np.random.Generator, n_states: int, scale: float, first: int):
    """Rows of a random MDP whose states are numbered from `first`; ends now and then."""
    indptr, successors, probs, rewards = [], [], [], []
    for _ in range(n_states * 2):
        n = int(rng.integers(1, 4))
        picked = rng.choice(n_states, size=min(n, n_states), replace=False)
        weights = rng.dirichlet(np.ones(len(picked))) * rng.choice([1.0, 0.5, 0.9])
        indptr.append(len(picked))
        successors += list(first + picked)
        probs += list(weights)
        rewards.append(scale * rng.choice([-1.0, 0.0, 0.5, 1.0]))
    return indptr, successors, probs, rewards


def side_by_side(seed: int, scale: float, discount: float) -> spibb.MDP:
    rng = np.random.default_rng(seed)
    parts = [random_world(rng, 4, 1.0, 0), random_world(rng, 4, scale, 4)]
    indptr, successors, probs, rewards = ([*a, *b] for a, b in zip(*parts))
    return spibb.MDP(
        np.append(0, np.cumsum(indptr)), np.array(successors, dtype=np.int32), np.array(probs),
        np.array(rewards).reshape(8, 2), np.full(8, 0.125), discount,
        vocabulary(8, "state"), vocabulary(2, "action"),
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1e12, 1e6, 1e-6, 1.0]),
    st.sampled_from([0.0, 0.9, 0.999]),
)
def test_two_worlds_side_by_side_are_solved_as_each_alone(seed, scale, discount):
    """What sweeps call converged is optimal to the digits of each world's own values."""
    mdp = side_by_side(seed, scale, discount)
    box = free_box(np.ones(mdp.shape, dtype=bool))
    swept, exact = (
        optimise(mdp, box, method="sweeps"),
        optimise(mdp, box, method="policy-iteration"),
    )
    if not swept.converged:
        return
    v, _ = dense.values(mdp.task.rows, mdp.rewards, discount, swept.probs)
    for part in (slice(0, 4), slice(4, 8)):
        size = np.abs(mdp.rewards[part]).max() / (1 - discount)
        assert np.abs(v[part] - exact.v[part]).max() <= 2e-9 * max(size, 1e-300)


def test_errors_are_pinned_down_state_by_state():
    """Two states that end at once have no error but their own change; a loop keeps c / (1 − γ)."""
    box = free_box(np.ones((3, 1), dtype=bool))
    ends = np.array([0.0, 0.0, 0.9])
    errors = pin_down(lambda e: (ends * e)[:, None], box, np.array([0.0, 2.0, 1.0]), 1e9)
    np.testing.assert_allclose(errors[:2], [0.0, 2.0])
    assert 10.0 <= errors[2] <= 11.0


def test_a_tie_that_may_be_none_is_said_to_be_in_doubt():
    box = free_box(np.ones((1, 2), dtype=bool))
    q, v = np.array([[1.0, 1.001]]), np.array([1.0])
    loop = lambda e: 0.9 * np.stack([e, e], axis=1)  # noqa: E731
    _, doubtful = settle(q, box, loop, v, np.ones((1, 2)), 0.5, 1e-9)
    assert doubtful
    probs, doubtful = settle(q, box, loop, np.array([1.001]), np.ones((1, 2)), 1e-13, 1e-9)
    assert not doubtful and probs.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("rare", [1e6, 1e12, 1e13, 1e15, -1e15])
@pytest.mark.parametrize("algorithm", [
    spibb.PiBSpibb(n_wedge=10), spibb.PiBSpibb(n_wedge=10, method="sweeps"),
    spibb.ModelFreeSpibb(n_wedge=10),
], ids=["exact", "sweeps", "model-free"])  # fmt: skip
@pytest.mark.parametrize("afterwards", [False, True])
def test_what_cannot_move_does_not_hide_a_choice(algorithm, rare, afterwards):
    """An action seen once is copied, whatever it earned, at once or in the state after it."""
    states, actions = ["s"] * 100, ["b", "c"] * 50
    rewards, ends = [1.0, 1.01] * 50, [True] * 100
    if afterwards:
        states, actions = [*states, "s", "t"], [*actions, "a", "b"]
        rewards, ends = [*rewards, 0.0, rare], [*ends, False, True]
    else:
        states, actions, rewards, ends = (
            [*states, "s"],
            [*actions, "a"],
            [*rewards, rare],
            [*ends, True],
        )
    log = spibb.Log.from_arrays(states, actions, rewards, terminated=ends)
    baseline = spibb.Policy([[0.2, 0.5, 0.3]] * len(log.states), log.states, log.actions)
    result = spibb.improve(log, baseline, algorithm=algorithm, discount=0.9)
    assert result.policy.row("s") == pytest.approx({"a": 0.2, "b": 0.0, "c": 0.8})
    assert result.converged
