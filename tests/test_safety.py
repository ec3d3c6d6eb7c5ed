"""Safety in simulation: the gridworld of section 3.1, 1,000 logs per size."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.spibb import PiLeqBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import exact_value
from spibb.experiments.compiled import CompiledTrainer
from spibb.simulate import Sampler

SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
RUNS = 1000
ALGORITHMS = {
    "basic": BasicRL(), "5": PiLeqBSpibb(5), "10": PiLeqBSpibb(10), "20": PiLeqBSpibb(20),
}  # fmt: skip


@pytest.fixture(scope="module")
def performance():
    """True performance of each algorithm on each log: {algorithm: {size: sorted [RUNS]}}."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler, rng = Sampler(mdp, baseline), np.random.default_rng(2019)
    trainer = CompiledTrainer(list(ALGORITHMS.values()), sampler, baseline, 1.0)
    found = {
        size: np.sort([trainer.performances(*sampler.draw(size, rng=rng)) for _ in range(RUNS)], 0)
        for size in SIZES
    }
    return {name: {n: found[n][:, k] for n in SIZES} for k, name in enumerate(ALGORITHMS)}


def cvar(values: np.ndarray) -> float:
    """1 %-CVaR: the mean of the worst 1 % of the runs."""
    return oracles.cvar(values, 0.01)


@pytest.mark.parametrize(("n_wedge", "first"), [("5", 10), ("10", 20), ("20", 50)])
def test_pi_leq_b_is_safe_from_few_trajectories_on(performance, n_wedge, first):
    """With N∧ = 20 it loses 0.01 on 20 trajectories; with 10, 0.035 on 10."""
    baseline = exact_value(gridworld_mdp(), gridworld_baseline())
    for size in [size for size in SIZES if size >= first]:
        assert cvar(performance[n_wedge][size]) >= baseline - 0.01, size
    assert cvar(performance[n_wedge][5000]) > baseline + 0.15


def test_basic_rl_stays_unsafe_even_on_large_logs(performance):
    baseline = exact_value(gridworld_mdp(), gridworld_baseline())
    for size in SIZES:
        assert cvar(performance["basic"][size]) < baseline - 0.05, size


def test_means_behave_as_in_the_paper(performance):
    """Basic RL hovers near 0.56 at every size; Π_≤b with N∧ = 5 climbs to the optimum."""
    for size in SIZES:
        assert 0.54 < performance["basic"][size].mean() < 0.58
    climb = [performance["5"][size].mean() for size in SIZES]
    assert climb[0] > 0.55
    assert climb[-1] > 0.59
    assert (np.diff(climb) > 0).all()
