"""Class, `policies` and study give the same policies, for every registered algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.algorithms import REGISTRY
from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm, Problem
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.evaluate import exact_value
from spibb.experiments.compiled import CompiledTrainer
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

WORLDS = 210
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
"""How far HCPI's rival is from the baseline's value, and the lowest return: in turn, since HCPI
takes longer than all the others."""


def configurations(mdp: MDP, baseline: Policy, behaviour: Policy, scale: float, turn: int = 0):
    """Several options of every algorithm."""
    rival = exact_value(mdp, baseline)
    shift, lowest = LOWEST[turn % len(LOWEST)]
    return {
        "pi-b": [PiBSpibb(n, unseen) for unseen in UNSEEN for n in N_WEDGES],
        "pi-leq-b": [PiLeqBSpibb(n, unseen) for unseen in UNSEEN for n in reversed(N_WEDGES)],
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
            HCPI(estimator, delta=delta, baseline_value=rival + shift * scale,
                 lowest_return=lowest and lowest * scale, behaviour=behaviour)
            for estimator in ("is", "pdis", "dr") for delta in (0.2, 0.9, 1.0)
        ],
        "arbrm": [ARBRM(), ARBRM(delta=1, safety_test=False)],
        "model-free": [ModelFreeSpibb(2), ModelFreeSpibb(5, "pessimistic")],
        "auto": [Auto(draws=5, n_wedges=(1, 5))],
    }  # fmt: skip


def test_every_registered_algorithm_is_compared():
    mdp, baseline, behaviour, _ = random_world(0)
    compared = set(configurations(mdp, baseline, behaviour, 1.0)) | {"certified"}
    assert set(REGISTRY) == compared  # certified splits the log by episodes; see its own tests


def has_its_own_policies(kind: type[Algorithm]) -> bool:
    """Whether it shares work between configurations; else they are improved one by one."""
    return kind.policies.__func__ is not Algorithm.policies.__func__


@pytest.mark.parametrize("batch", range(7))
def test_class_policies_and_study_agree_on_random_worlds(batch):
    changed = 0
    for seed in range(batch, WORLDS, 7):
        mdp, baseline, behaviour, rng = random_world(seed)
        scale = float(np.abs(mdp.rewards).max())
        sampler = Sampler(mdp, behaviour, 12)
        codes, lengths = sampler.draw(int(rng.choice([3, 8, 20, 60])), rng=rng)
        log, v_max = sampler.to_log(codes, lengths), 40 * scale / (1 - mdp.discount)
        problem = Problem.from_log(log, baseline, discount=mdp.discount, v_max=v_max)
        for name, group in configurations(mdp, baseline, behaviour, scale, seed).items():
            alone = np.array([algorithm.improve(problem).policy.probs for algorithm in group])
            if batch == seed or has_its_own_policies(type(group[0])):
                together = type(group[0]).policies(group, problem)
                np.testing.assert_allclose(
                    together, alone, atol=1e-9, err_msg=f"{name}, world {seed}"
                )
            plan = CompiledTrainer(group, sampler, baseline, v_max)
            if plan.members:
                studied = plan.policies(codes, lengths)
                np.testing.assert_allclose(
                    studied, alone[plan.members], atol=1e-9, err_msg=f"{name}, world {seed}"
                )
            changed += int((np.abs(alone - baseline.probs) > 1e-9).any())
    assert changed > 100


def test_the_kernels_know_what_the_studies_ask_for():
    mdp, baseline, behaviour, _ = random_world(3)
    sampler = Sampler(mdp, behaviour)
    groups = configurations(mdp, baseline, behaviour, 1.0)
    known = {
        name
        for name, group in groups.items()
        if CompiledTrainer(group, sampler, baseline, 1.0).members
    }
    assert known == {"pi-b", "pi-leq-b", "basic-rl", "ramdp", "robust-mdp", "hcpi"}
    for name in known:
        assert len(CompiledTrainer(groups[name], sampler, baseline, 1.0).members) == len(
            groups[name]
        )
