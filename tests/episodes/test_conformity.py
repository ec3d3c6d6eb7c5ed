"""Was the log made by the policy?"""

from __future__ import annotations

import numpy as np
import pytest

from spibb import InputError, Log, Policy
from spibb.episodes.conformity import conformity

PROBS = np.array([[0.5, 0.3, 0.2, 0.0], [0.01, 0.01, 0.98, 0.0], [1.0, 0.0, 0.0, 0.0]])
POLICY = Policy(PROBS, ["a", "b", "c"], ["w", "x", "y", "z"])


def make(rng, probs=PROBS, n=200):
    state = rng.integers(0, 3, n)
    action = (probs[state].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return Log.from_arrays(
        np.array(["a", "b", "c"])[state], np.array(["w", "x", "y", "z"])[action], np.zeros(n),
        terminated=np.ones(n, bool),
    )  # fmt: skip


def test_p_values_are_uniform_if_the_policy_made_the_log():
    rng = np.random.default_rng(0)
    p = np.sort([conformity(make(rng), POLICY).p_value for _ in range(1000)])
    assert np.abs(p - np.arange(1, 1001) / 1000).max() < 1.63 / np.sqrt(1000)  # 1 % limit


def test_another_policy_is_noticed_and_the_oddest_pair_named():
    probs = PROBS.copy()
    probs[0] = [0.2, 0.6, 0.2, 0]
    found = conformity(make(np.random.default_rng(1), probs), POLICY)
    assert found.p_value < 1e-6
    assert found.oddest.state == "a"
    (warning,) = found.warnings
    assert "'a'" in warning


def test_the_same_policy_gives_no_warning():
    assert conformity(make(np.random.default_rng(2)), POLICY).warnings == ()


def test_an_impossible_action_is_refused_by_name():
    log = Log.from_arrays(["c"], ["x"], [0.0], terminated=[True])
    with pytest.raises(InputError, match="takes action 'x' in state 'c', which the policy never"):
        conformity(log, POLICY)
    unheard = Log.from_arrays(["c"], ["jump"], [0.0], terminated=[True])
    with pytest.raises(InputError, match="takes action 'jump' in state 'c'"):
        conformity(unheard, POLICY)


def test_states_that_the_policy_does_not_know_say_nothing():
    log = Log.from_arrays(["c", "new"], ["w", "jump"], [0.0, 0.0], terminated=[True, True])
    found = conformity(log, POLICY)
    assert (found.decisions, found.unknown, found.p_value) == (2, 1, 1.0)
    assert found.warnings[0].startswith(
        "1 of 2 decisions (50\N{NO-BREAK SPACE}%) were made in states that"
    )


@pytest.mark.parametrize("known", [0, 1])
def test_a_log_mostly_of_states_that_the_policy_does_not_know_is_refused(known):
    states = ["c"] * known + ["new", "newer"]
    n = len(states)
    log = Log.from_arrays(states, ["w"] * n, np.zeros(n), terminated=np.ones(n, bool))
    with pytest.raises(InputError, match=f"2 of {n} decisions .* 'new', 'newer', .* 'a', 'b', 'c'"):
        conformity(log, POLICY)


def test_labels_meet_by_name_and_type():
    log = Log.from_arrays([1, 1, 2], [0, 1, 0], np.zeros(3), terminated=np.ones(3, bool))
    policy = Policy([[0.0, 1.0], [0.5, 0.5]], ["2", "1"], ["1", "0"])
    assert conformity(log, policy).unknown == 0
