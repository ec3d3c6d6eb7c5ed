"""Class, `policies` and study give the same policies, for every registered algorithm."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spibb.algorithms import REGISTRY
from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.certified import Certified
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.hcpi.candidate_tests import by_contributions, by_tables
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.episodes.propensities import behaviour_probs
from spibb.evaluate import exact_value
from spibb.experiments.compiled import CompiledTrainer, kinds
from spibb.experiments.finite import Trainer, World, default_experiment
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

WORLDS = 210
STEPS = 12
"""Of an episode, at most."""
UNSEEN = ("zero", "pessimistic", "optimistic")
N_WEDGES = (0, 0.5, 1, 2, 3, 5, 7, 10, 30, np.inf)


def random_world(seed: int):
    """An MDP of up to 9 states with rewards of both signs and ends, and a baseline with zeros."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(1, 10)), int(rng.integers(1, 5))
    n_pairs, branching = n_states * n_actions, 3
    pair = np.repeat(np.arange(n_pairs), branching)
    prob = rng.dirichlet(np.ones(branching), n_pairs).reshape(-1)
    scale = 10.0 ** rng.integers(-3, 4)
    mdp = MDP.from_outcomes(
        pair // n_actions, pair % n_actions, prob, rng.integers(n_states, size=len(pair)),
        scale * rng.normal(rng.uniform(-1, 1), 1, len(pair)), rng.random(len(pair)) < 0.3,
        initial=rng.dirichlet(np.ones(n_states)), n_actions=n_actions,
        discount=float(rng.choice([0.0, 0.5, 0.9, 0.95, 0.99])),
    )  # fmt: skip
    baseline = rng.dirichlet(np.full(n_actions, 0.6), n_states)
    baseline[baseline < 0.05] = 0
    baseline /= baseline.sum(axis=1, keepdims=True)
    uniform = rng.random() < 0.3
    behaviour = np.full(baseline.shape, 1 / n_actions) if uniform else baseline
    return mdp, Policy(baseline), Policy(behaviour), rng


LOWEST = ((0.0, None), (-3.0, -20.0), (0.0, 1 / 3))
"""How far HCPI's rival is from the baseline's value, and the lowest return, in units of the largest
reward: in turn, since HCPI takes longer than most."""


def configurations(world: World, scale: float, turn: int = 0) -> dict[str, list[Algorithm]]:
    """Several options of every algorithm; of some of them one after the other, world by world."""
    low, high = world.returns
    lowest = LOWEST[turn % len(LOWEST)][1]
    unseen = UNSEEN[turn % len(UNSEEN)]
    return {
        "pi-b": [PiBSpibb(n, unseen) for n in N_WEDGES],
        "pi-leq-b": [PiLeqBSpibb(n, unseen) for n in reversed(N_WEDGES)],
        "basic-rl": [BasicRL(unseen) for unseen in UNSEEN],
        "ramdp": [
            RaMDP(kappa * scale, tested, released)
            for kappa in (0.0, 0.003, 0.1, 5.0) for tested in (False, True)
            for released in (False, True)
        ],
        "robust-mdp": [
            RobustMDP(delta, tested, known)
            for delta in (0.1, 1.0) for tested in (False, True) for known in (False, True)
        ],
        "hcpi": [
            HCPI(estimator, delta=delta, lowest_return=lowest and lowest * scale,
                 baseline_value=world.baseline_value, behaviour=world.behaviour)
            for estimator in ("is", "pdis", "dr") for delta in (0.2, 0.9, 1.0)
        ],
        "arbrm": [ARBRM(), ARBRM(delta=1, safety_test=False)],
        "model-free": [ModelFreeSpibb(2), ModelFreeSpibb(5, "pessimistic")],
        "auto": [Auto(draws=5, n_wedges=(1, 5))],
        "certified": [
            Certified(delta, 0.5, lowest_return=low, highest_return=high) for delta in (0.05, 0.5)
        ],
    }  # fmt: skip


def world_with_data(seed: int):
    """A random world, how large its rewards are, and episodes in it."""
    mdp, baseline, behaviour, rng = random_world(seed)
    scale = float(np.abs(mdp.rewards).max())
    paid = np.append(mdp.paid.rewards, 0.0) / (1 - mdp.discount)
    rival = exact_value(mdp, baseline) + LOWEST[seed % len(LOWEST)][0] * scale
    world = World(mdp, baseline, behaviour, rival, np.nan, returns=(paid.min(), paid.max()))
    sampler = Sampler(mdp, behaviour, STEPS)
    return world, scale, sampler, sampler.draw(int(rng.choice([3, 8, 20, 60])), rng=rng)


def test_every_registered_algorithm_is_compared():
    world, *_ = world_with_data(0)
    assert set(REGISTRY) == set(configurations(world, 1.0))


@pytest.mark.parametrize("batch", range(7))
def test_class_policies_and_study_agree_on_random_worlds(batch):
    changed: Counter[str] = Counter()
    for seed in range(batch, WORLDS, 7):
        world, scale, sampler, (codes, lengths) = world_with_data(seed)
        baseline, discount = world.baseline, world.mdp.discount
        log = sampler.to_log(codes, lengths)
        problem = Problem.from_log(log, baseline, discount=discount, v_max=world.v_max)
        played = problem
        if world.behaviour is not baseline:
            made = replace(log, action_prob=world.behaviour.probs[log.state, log.action])
            played = Problem.from_log(made, "recorded", discount=discount, v_max=world.v_max)
        groups = configurations(world, scale, seed)
        study = Trainer([one for group in groups.values() for one in group], world, STEPS)
        studied, begin = study.policies(codes, lengths), 0
        for name, group in groups.items():
            given = played if name == "certified" else problem  # it improves what made the log
            alone = np.array([one.improve(given).policy.probs for one in group])
            routes = {"study": studied[begin : begin + len(group)]}
            begin += len(group)
            if type(group[0]) in kinds():  # else `policies` calls `improve`, and the study it
                routes["policies"] = type(group[0]).policies(group, given)
            for route, found in routes.items():
                np.testing.assert_allclose(
                    found, alone, atol=1e-9, err_msg=f"{route} of {name}, world {seed}"
                )
            changed[name] += int((np.abs(alone - given.baseline.probs) > 1e-9).any())
    assert set(changed) == set(REGISTRY) and min(changed.values()) > 0
    assert changed.total() > 100


def test_the_kernels_know_what_the_studies_of_the_paper_ask_for():
    """Of these, no column takes the slow way through its class."""
    world, *_ = world_with_data(3)
    for grid in ("main", "search", "search-released"):
        algorithms = [column.make() for column in default_experiment("gridworld", grid).columns]
        assert Trainer(algorithms, world, STEPS).others == []


def test_all_configurations_of_an_algorithm_with_a_kernel_are_compared_in_the_compiled_call():
    world, _, sampler, _ = world_with_data(3)
    for group in configurations(world, 1.0).values():
        members = CompiledTrainer(group, sampler, world.baseline, 1.0).members
        assert len(members) == (len(group) if type(group[0]) in kinds() else 0)


@pytest.mark.parametrize("batch", range(2))
def test_hcpi_in_tables_finds_the_bounds_of_off_policy_evaluation(batch):
    """Two ways to the same test: the kernels of the studies, and `ope`, which takes any log."""
    bounded = 0
    for seed in range(batch, WORLDS, 2):
        world, scale, sampler, drawn = world_with_data(seed)
        discount = world.mdp.discount
        log = sampler.to_log(*drawn)
        problem = Problem.from_log(log, world.baseline, discount=discount, v_max=world.v_max)
        played = behaviour_probs(log, world.behaviour.probs)
        for hcpi in configurations(world, scale, seed)["hcpi"]:
            one = replace(hcpi, baseline_value=None)
            if one.delta != 0.2:
                continue
            fast, slow = (by(one, problem, played) for by in (by_tables, by_contributions))
            unit = max(world.v_max, 1.0)
            np.testing.assert_allclose(fast.bounds / unit, slow.bounds / unit, 1e-9, 1e-9)
            np.testing.assert_allclose(fast.rival, slow.rival, 1e-9, 1e-9 * unit)
            np.testing.assert_array_equal(fast.mixtures.trained, slow.mixtures.trained)
            bounded += int(np.isfinite(fast.bounds).any())
    assert bounded > WORLDS / 2
