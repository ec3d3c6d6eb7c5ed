"""`Algorithm.policies`: configurations trained together get what each gets alone."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP

GROUPS = {
    "basic-rl": [BasicRL(), BasicRL(unseen="optimistic"), BasicRL(unseen="zero")],
    "basic-rl-methods": [BasicRL(), BasicRL(method="policy-iteration")],
    "basic-rl-sweeps": [BasicRL(method="sweeps"), BasicRL(unseen="zero", method="sweeps")],
    "ramdp": [
        RaMDP(kappa=0.5), RaMDP(kappa=0.5, released=True), RaMDP(kappa=0.01, safety_test=True),
        RaMDP(kappa=0.0), RaMDP(kappa=0.01, safety_test=True, r_max=5.0),
    ],
    "ramdp-methods": [RaMDP(), RaMDP(kappa=1.0, method="policy-iteration")],
    "robust-mdp": [
        RobustMDP(safety_test=False), RobustMDP(delta=1, safety_test=False), RobustMDP(),
        RobustMDP(known_rewards=True, method="policy-iteration"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", range(5))
def test_a_group_gets_what_each_configuration_gets_alone(group, seed):
    problem = random_problem(seed, n_states=8, n_actions=3, n_rows=120, discount=0.9)
    algorithms = GROUPS[group]
    together = type(algorithms[0]).policies(algorithms, problem)
    for rows, algorithm in zip(together, algorithms, strict=True):
        alone = algorithm.improve(problem).policy.probs
        np.testing.assert_allclose(rows, alone, atol=1e-12)
