"""Pseudo-counts against brute force: any radius, dimension, number of actions and kind of query."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb.envs.helicopter import collect
from spibb.errors import InputError
from spibb.kernels import pseudocounts as kernel
from spibb.pseudocounts import DistanceCounts, NeighbourCounts, TreeCounts


def brute_force(states, actions, n_actions, radius, queries):
    """Σ max(0, 1 − d / radius), one query after the other."""
    counts = np.zeros((len(queries), n_actions))
    for m, query in enumerate(queries):
        distance = np.sqrt(((states - query) ** 2).sum(axis=1))
        np.add.at(counts[m], actions, np.maximum(0, 1 - distance / radius))
    return counts


def assert_exact(states, actions, n_actions, radius, queries, **options):
    ours = DistanceCounts(states, actions, n_actions, radius, **options)(queries)
    wanted = brute_force(states, actions, n_actions, radius, queries)
    np.testing.assert_allclose(ours, wanted, atol=1e-5, rtol=1e-6)
    tree = TreeCounts(states, actions, n_actions, radius)(queries)
    np.testing.assert_allclose(tree, wanted, atol=1e-9, rtol=1e-9)
    return ours


def helicopter_log(n):
    return collect(lambda s: np.full((len(s), 9), 1 / 9), n, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def log():
    return helicopter_log(6000)


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.2, 0.5, 1.0, 10.0])
def test_helicopter_counts_equal_brute_force(log, radius):
    queries = log.next_state[::3]
    counts = assert_exact(log.state, log.action, 9, radius, queries)
    assert counts.shape == (2000, 9)


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 10),
    st.integers(1, 400),
    st.integers(1, 200),
    st.sampled_from([1e-3, 0.1, 0.3, 1.0, 3.0, 100.0]),
)
def test_counts_equal_brute_force(seed, n_dims, n_actions, n, m, radius):
    rng = np.random.default_rng(seed)
    kind = rng.integers(4)
    states, queries = rng.normal(size=(n, n_dims)), rng.normal(size=(m, n_dims))
    if kind == 1:  # duplicates
        states, queries = np.round(states), np.round(queries)
    if kind == 2:  # clusters far from the origin and from each other
        states = states * 0.1 + rng.integers(0, 3, size=(n, 1)) * 1000 + 5e6
        queries = states[rng.integers(n, size=m)] + rng.normal(size=(m, n_dims)) * 0.05
    if kind == 3:  # queries from everywhere
        queries *= 10.0 ** rng.integers(-3, 12, size=(m, 1))
    actions = rng.integers(n_actions, size=n) if rng.random() < 0.8 else np.zeros(n, dtype=int)
    assert_exact(states, actions, n_actions, radius, queries)


@pytest.mark.parametrize("n_dims", [1, 2, 4, 6, 12])
def test_many_queries_make_many_trees_with_the_same_counts(n_dims):
    rng = np.random.default_rng(n_dims)
    states = rng.normal(size=(700, n_dims))
    queries = rng.normal(size=(3 * kernel.CHUNK + 17, n_dims))
    assert_exact(states, rng.integers(3, size=700), 3, 0.7, queries)


def test_a_lack_of_room_costs_time_only():
    """All queries reach all points: the lists of all levels would be as long as the log."""
    rng = np.random.default_rng(0)
    states, queries = rng.random((300, 2)), rng.random((kernel.CHUNK, 2))
    assert_exact(states, rng.integers(2, size=300), 2, 50.0, queries)


def test_points_on_a_query_count_one_each_and_points_on_the_radius_nothing():
    states = np.array([[0.0, 0], [0, 0], [0, 0], [3, 4]])
    counts = DistanceCounts(states, np.array([0, 0, 1, 0]), 3, radius=5.0)
    np.testing.assert_array_equal(counts(np.zeros((1, 2))), [[2, 1, 0]])
    half = DistanceCounts(states, np.array([0, 0, 1, 0]), 3, radius=10.0)
    np.testing.assert_allclose(half(np.zeros((1, 2))), [[2.5, 1, 0]], atol=1e-7)


def test_queries_far_away_and_actions_never_taken_count_nothing():
    counts = DistanceCounts(np.zeros((5, 3)), np.full(5, 2), 4)
    np.testing.assert_array_equal(counts(np.full((2, 3), 1e9)), np.zeros((2, 4)))
    np.testing.assert_array_equal(counts(np.zeros((1, 3))), [[0, 0, 5, 0]])


def test_nothing_asked_and_nothing_logged():
    counts = DistanceCounts(np.ones((5, 3)), np.zeros(5, dtype=int), 2)
    assert counts(np.empty((0, 3))).shape == (0, 2)
    empty = DistanceCounts(np.empty((0, 3)), np.empty(0, dtype=int), 2)
    np.testing.assert_array_equal(empty(np.ones((4, 3))), np.zeros((4, 2)))


def test_one_query_at_a_time_is_the_batch(log):
    counts = DistanceCounts(log.state, log.action, 9)
    batch = counts(log.next_state[:40])
    single = np.concatenate([counts(row[None]) for row in log.next_state[:40]])
    np.testing.assert_allclose(single, batch, atol=1e-5)


def test_threads_do_not_change_a_bit(log):
    one, two, five = (
        DistanceCounts(log.state, log.action, 9, threads=t)(log.next_state) for t in (1, 2, 5)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, five)


def test_the_caller_keeps_his_arrays(log):
    queries = log.next_state[:3000].copy()
    counts = DistanceCounts(log.state, log.action, 9)
    first = counts(queries)
    np.testing.assert_array_equal(queries, log.next_state[:3000])
    np.testing.assert_array_equal(counts(queries), first)
    assert not counts.states.flags.writeable
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(counts))(queries), first)


def test_single_precision_and_strided_states_are_welcome(log):
    states, queries = log.state[::2].astype(np.float32), np.asfortranarray(log.next_state[::7])
    ours = DistanceCounts(states, log.action[::2], 9)(queries)
    wanted = brute_force(states.astype(float), log.action[::2], 9, 0.2, queries)
    np.testing.assert_allclose(ours, wanted, atol=1e-5)


def test_neighbour_counts_do_not_depend_on_the_units_of_a_feature(log):
    units = np.array([1.0, 1000.0, 0.01, 7.0])
    shift = np.array([0.0, -5.0, 3.0, 100.0])
    plain = NeighbourCounts(log.state, log.action, 9, k=30)
    other = NeighbourCounts(log.state * units + shift, log.action, 9, k=30)
    queries = log.next_state[:200]
    np.testing.assert_allclose(other(queries * units + shift), plain(queries), atol=1e-5)
    assert other.radius == pytest.approx(plain.radius)


def test_neighbour_counts_are_distance_counts_of_standardised_states(log):
    counts = NeighbourCounts(log.state, log.action, 9, k=30)
    z = (log.state - log.state.mean(axis=0)) / log.state.std(axis=0)
    distance = np.sqrt(((z[:300, None] - z[None]) ** 2).sum(axis=2))
    assert counts.radius == pytest.approx(np.median(np.sort(distance)[:, 30]), rel=0.1)
    wanted = brute_force(z, log.action, 9, counts.radius, z[:100])
    np.testing.assert_allclose(counts(log.state[:100]), wanted, atol=1e-5)


def test_by_default_the_reach_shrinks_and_the_counts_grow_with_the_log():
    small, large = helicopter_log(1000), helicopter_log(16_000)
    few, many = (NeighbourCounts(data.state, data.action, 9) for data in (small, large))
    assert (few.neighbours, many.neighbours) == (32, 127)
    assert many.radius < few.radius
    queries = small.state[:200]
    assert np.median(many(queries).sum(axis=1)) > 1.5 * np.median(few(queries).sum(axis=1))


def test_constant_features_and_repeated_states_have_a_radius():
    rng = np.random.default_rng(0)
    states = np.column_stack([rng.normal(size=50), np.full(50, 3.0)])
    assert np.isfinite(NeighbourCounts(states, np.zeros(50, dtype=int), 1)(states)).all()
    same = NeighbourCounts(np.ones((50, 2)), np.zeros(50, dtype=int), 2)
    assert same.radius == 1
    np.testing.assert_array_equal(same(np.ones((1, 2))), [[50, 0]])


def test_both_kinds_answer_to_one_protocol(log):
    kinds = [
        DistanceCounts(log.state, log.action, 9),
        NeighbourCounts(log.state, log.action, 9),
    ]
    for counts in kinds:
        assert counts(log.next_state[:5]).shape == (5, counts.n_actions)


STATES, ACTIONS = np.zeros((3, 2)), np.array([0, 1, 2])


@pytest.mark.parametrize("kind", [DistanceCounts, NeighbourCounts])
@pytest.mark.parametrize(
    ("states", "actions", "n_actions", "words"),
    [
        (np.array([[0, 0], [0, np.nan], [0, 0]]), ACTIONS, 3, "feature 1 in row 1 is nan"),
        (np.array([[np.inf, 0], [0, 0], [0, 0]]), ACTIONS, 3, "feature 0 in row 0 is inf"),
        (np.zeros(3), ACTIONS, 3, r"shape \(3,\), expected \[N, d\]"),
        (np.array([["a", "b"]]), ACTIONS, 3, "not numbers"),
        (STATES, ACTIONS, 2, "actions in row 2 is 2, expected a code in 0 … 1"),
        (STATES, -ACTIONS, 3, "actions in row 1 is -1"),
        (STATES, ACTIONS + 0.5, 3, "one whole number"),
        (STATES, ACTIONS[:2], 3, "differ in length"),
        (STATES, ACTIONS, 0, "n_actions is 0"),
    ],
)
def test_bad_logs_are_named(kind, states, actions, n_actions, words):
    with pytest.raises(InputError, match=words):
        kind(states, actions, n_actions)


@pytest.mark.parametrize("radius", [0, -0.2, np.nan, np.inf, "wide"])
def test_bad_radii_are_named(radius):
    with pytest.raises(InputError, match="radius is"):
        DistanceCounts(STATES, ACTIONS, 3, radius)


def test_a_radius_that_no_number_can_express_is_named():
    with pytest.raises(InputError, match="too small"):
        DistanceCounts(STATES + 1, ACTIONS, 3, 1e-320)(np.full((1, 2), 1e10))


def test_bad_options_and_queries_are_named():
    counts = DistanceCounts(STATES, ACTIONS, 3)
    with pytest.raises(InputError, match="queries have 3 features, the log's states have 2"):
        counts(np.zeros((1, 3)))
    with pytest.raises(InputError, match="queries: feature 0 in row 0 is nan"):
        counts(np.full((1, 2), np.nan))
    with pytest.raises(InputError, match="threads is 0"):
        DistanceCounts(STATES, ACTIONS, 3, threads=0)
    with pytest.raises(InputError, match="k is 3, but the log holds 3 states"):
        NeighbourCounts(STATES, ACTIONS, 3, k=3)
    with pytest.raises(InputError, match="k is 0"):
        NeighbourCounts(STATES, ACTIONS, 3, k=0)
    with pytest.raises(InputError, match="the log holds 1 states"):
        NeighbourCounts(STATES[:1], ACTIONS[:1], 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-165, 1e200, 1e307])
def test_neighbours_are_the_same_in_any_unit(size):
    """Squares of deviations would under- or overflow."""
    x = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1.0, 1.0]])
    usual = NeighbourCounts(x, [0, 1, 0, 1], 2, k=1)
    scaled = NeighbourCounts(x * [size, 1], [0, 1, 0, 1], 2, k=1)
    np.testing.assert_allclose(scaled(x * [size, 1]), usual(x), rtol=1e-9)
    assert not scaled([[1.7e308, 0], [-1.7e308, 0], [0, 1e300]]).any()
