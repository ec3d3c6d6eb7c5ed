"""Remedies fit the log: what more of the same cannot cure is not answered with more of it."""

from __future__ import annotations

import numpy as np
import pytest

from spibb import Certified, Log, PiBSpibb, Problem
from spibb.algorithms.auto import Auto

ALGORITHMS = [PiBSpibb(5), Auto(), Certified(lowest_return=0.0, highest_return=1.0)]


def single_steps(states, actions, n, seed=0):
    rng = np.random.default_rng(seed)
    action = rng.integers(actions, size=n)
    return Log.from_arrays(
        rng.integers(states, size=n), action, rng.random(n).round(3), terminated=[True] * n
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_one_action_per_state_asks_for_variation(algorithm):
    verdict = algorithm.improve(Problem.from_log(single_steps(3, 1, 300))).verdict
    assert verdict.remedy.startswith("Some variation: ")
    assert "More episodes like these would not help." in verdict.remedy


@pytest.mark.parametrize(("states", "n", "coarser"), [(300, 900, True), (5, 40, False)])
def test_many_states_with_few_visits_each_ask_for_coarser_ones(states, n, coarser):
    result = PiBSpibb(1e9).improve(Problem.from_log(single_steps(states, 3, n)))
    assert result.verdict.remedy.startswith("Coarser states") == coarser
    assert result.verdict.remedy.endswith("More episodes of the current policy.")


def test_rows_of_single_steps_are_assumed_to_be_cases_of_their_own():
    log = single_steps(3, 2, 300)
    longer = Log.from_arrays(
        [0, 1] * 150, [0, 1, 1, 0] * 75, [0.0] * 300, terminated=[False, True] * 150
    )
    said = [PiBSpibb(5).improve(Problem.from_log(one)).verdict.assumptions for one in (log, longer)]
    assert ["every row is a case of its own" in " ".join(found) for found in said] == [True, False]
