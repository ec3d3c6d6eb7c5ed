"""Counts against a slow transcription with dictionaries, and the model made from them."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import Counts, Log, estimate_mdp
from spibb.counts import END

STATES = ("a", "b", "c", "d")
ACTIONS = ("x", "y", "z")

steps = st.tuples(
    st.sampled_from(STATES),
    st.sampled_from(ACTIONS),
    st.integers(-40, 40).map(lambda k: k / 8),  # exact in binary: sums do not depend on order
    st.sampled_from([*STATES, None]),
)
endings = st.sampled_from(["terminated", "truncated", "both", "neither"])
episodes = st.lists(st.tuples(st.lists(steps, min_size=1, max_size=6), endings), min_size=1,
                    max_size=8)  # fmt: skip


def rows_of(drawn):
    """One dictionary per transition."""
    return [
        {
            "episode": number, "step": step, "state": s, "action": a, "reward": r,
            "next_state": t,
            "terminated": step == len(taken) - 1 and ending in ("terminated", "both"),
            "truncated": step == len(taken) - 1 and ending in ("truncated", "both"),
        }
        for number, (taken, ending) in enumerate(drawn)
        for step, (s, a, r, t) in enumerate(taken)
    ]  # fmt: skip


def log_of(rows, with_successors=True):
    column = {name: [row[name] for row in rows] for name in rows[0]}
    return Log.from_arrays(
        column["state"], column["action"], column["reward"],
        column["next_state"] if with_successors else None,
        column["terminated"], column["truncated"],
        episode_id=column["episode"], step=column["step"],
        state_labels=STATES, action_labels=ACTIONS,
    )  # fmt: skip


def slow_counts(rows, with_successors=True):
    """n, Σr and Σ((r − c)/u)² by (x, a, x'), x' = END for terminations, and starts by x.

    c is the middle of the rewards, u the least power of two above their distance to it.
    """
    rewards = [row["reward"] for row in rows]
    centre, unit = (max(rewards) + min(rewards)) / 2, 1.0
    if width := max(rewards) - centre:
        unit = 2.0 ** (math.floor(math.log2(width)) + 1)
    outcomes, starts = defaultdict(lambda: [0, 0.0, 0.0]), defaultdict(int)
    states = {(row["episode"], row["step"]): row["state"] for row in rows}
    for row in rows:
        starts[row["state"]] += row["step"] == 0
        following = states.get((row["episode"], row["step"] + 1))
        given = row["next_state"] if with_successors else None
        successor = END if row["terminated"] else following if given is None else given
        if successor is None:
            continue
        outcome = outcomes[row["state"], row["action"], successor]
        outcome[0] += 1
        outcome[1] += row["reward"]
        outcome[2] += ((row["reward"] - centre) / unit) ** 2
    return outcomes, starts


def as_dictionary(counts):
    """Counts by label: {(x, a, x'): [n, Σr, Σ((r − c)/u)²]}."""
    found = {}
    for pair in range(len(counts.indptr) - 1):
        s, a = divmod(pair, len(counts.actions))
        for k in range(counts.indptr[pair], counts.indptr[pair + 1]):
            t = counts.successors[k]
            key = counts.states[s], counts.actions[a], END if t == END else counts.states[t]
            assert key not in found
            found[key] = [counts.n[k], counts.reward_sum[k], counts.reward_sq[k]]
    return found


@settings(deadline=None, max_examples=100)
@given(episodes, st.booleans())
def test_counts_equal_a_slow_transcription(drawn, with_successors):
    rows = rows_of(drawn)
    counts = Counts.from_log(log_of(rows, with_successors))
    wanted, starts = slow_counts(rows, with_successors)
    assert as_dictionary(counts) == wanted
    assert counts.starts.tolist() == [starts[s] for s in STATES]
    rewards = [row["reward"] for row in rows]
    assert counts.reward_range == (min(rewards), max(rewards))


@settings(deadline=None, max_examples=100)
@given(episodes)
def test_sums_over_each_pair_equal_a_slow_transcription(drawn):
    rows = rows_of(drawn)
    counts = Counts.from_log(log_of(rows))
    wanted, _ = slow_counts(rows)
    for s, state in enumerate(STATES):
        for a, action in enumerate(ACTIONS):
            seen = {k[2]: v for k, v in wanted.items() if k[:2] == (state, action)}
            n = sum(v[0] for v in seen.values())
            assert counts.pairs[s, a] == n
            assert counts.terminations[s, a] == seen.get(END, [0])[0]
            total = sum(v[1] for v in seen.values())
            assert counts.mean_reward[s, a] == (total / n if n else 0)


@settings(deadline=None, max_examples=50)
@given(episodes, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(drawn, random):
    rows = rows_of(drawn)
    one, other = (Counts.from_log(log_of(r)) for r in (rows, random.sample(rows, len(rows))))
    for name in ("indptr", "successors", "n", "reward_sum", "reward_sq", "starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@settings(deadline=None, max_examples=50)
@given(episodes)
def test_successors_of_a_pair_are_sorted_and_distinct(drawn):
    counts = Counts.from_log(log_of(rows_of(drawn)))
    for start, stop in pairwise(counts.indptr):
        assert (np.diff(counts.successors[start:stop]) > 0).all()
    assert (counts.n > 0).all()


@settings(deadline=None, max_examples=50)
@given(episodes)
def test_the_estimated_model_has_the_frequencies_of_the_log(drawn):
    rows = rows_of(drawn)
    wanted, starts = slow_counts(rows)
    counts = Counts.from_log(log_of(rows))
    mdp = estimate_mdp(counts, 0.9)
    row_of = np.repeat(np.arange(len(mdp.indptr) - 1), np.diff(mdp.indptr))
    for pair, t, p in zip(row_of, mdp.successors, mdp.probs, strict=True):
        s, a = divmod(int(pair), len(ACTIONS))
        n = wanted[STATES[s], ACTIONS[a], STATES[t]][0]
        assert p == pytest.approx(n / counts.pairs[s, a], abs=1e-15)
    seen = counts.pairs > 0
    exits = counts.terminations[seen] / counts.pairs[seen]
    np.testing.assert_allclose(mdp.exits[seen], exits, atol=1e-12)
    np.testing.assert_array_equal(mdp.rewards, counts.mean_reward)
    n_episodes = sum(starts.values())
    assert mdp.initial.tolist() == [starts[s] / n_episodes for s in STATES]


def test_a_truncated_successor_counts_and_a_terminated_one_ends():
    log = Log.from_arrays(
        ["s", "s", "s"], [0] * 3, [1, 2, 4], ["t", "t", "t"], [0, 1, 1], [1, 0, 1],
        episode_id=[0, 1, 2],
    )  # fmt: skip
    counts = Counts.from_log(log)
    assert as_dictionary(counts) == {("s", 0, "t"): [1, 1, 0.5625], ("s", 0, END): [2, 6, 0.625]}
    assert counts.terminations.tolist() == [[2], [0]]
    assert counts.mean_reward[0, 0] == pytest.approx(7 / 3)


def test_states_never_visited_have_rows_of_zeros():
    log = Log.from_arrays([1], [0], [2.0], terminated=[True], n_states=4, n_actions=2)
    counts = Counts.from_log(log)
    assert counts.pairs.tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    assert counts.mean_reward.tolist() == [[0, 0], [2, 0], [0, 0], [0, 0]]
    assert counts.indptr.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]


def test_the_sums_per_pair_are_read_only_and_keep_their_type():
    log = Log.from_arrays([0, 1], [0, 1], [0.5, 1], terminated=[0, 1])
    counts = Counts.from_log(log)
    assert counts.pairs.dtype.kind == "i"
    assert counts.terminations.dtype.kind == "i"
    with pytest.raises(ValueError, match="read-only"):
        counts.pairs[0, 0] = 3


def test_stochastic_rewards_keep_their_spread():
    rewards = np.array([1.0, 2.0, 6.0])
    log = Log.from_arrays([0] * 3, [0] * 3, rewards, terminated=[1, 1, 1])
    counts = Counts.from_log(log)
    variance = counts.reward_scatter[0] * counts.unit**2 / counts.n[0]
    assert variance == pytest.approx(rewards.var(), rel=1e-12)


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310, 1e-300, 1e300])
def test_rewards_of_any_size_can_be_counted(size):
    """The unit that they are squared in is a normal number with an inverse."""
    log = Log.from_arrays(
        state=["x", "x"], action=["a", "b"], reward=[0, size], terminated=[True, True]
    )
    counts = Counts.from_log(log)
    assert counts.reward_sum.sum() == size
    assert np.isfinite(counts.reward_sq).all()
    assert 0 < counts.unit < np.inf and np.isfinite(1 / counts.unit)
