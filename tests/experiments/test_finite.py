"""One repetition of each study."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.certified import Certified
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import exact_value
from spibb.experiments import compiled
from spibb.experiments.finite import Trainer, default_experiment, repeat, worlds
from spibb.experiments.spec import Column, Experiment
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

COLUMNS = tuple(
    Column.parse(key)
    for key in (
        "robust-mdp:delta=0.5", "ramdp:kappa=0.003,safety_test=true",
        "basic-rl", "ramdp:kappa=0.003", "ramdp:kappa=0.003,released=true",
        "robust-mdp:delta=0.1,safety_test=false",
        "robust-mdp:delta=0.001,released=true,safety_test=false",
        "hcpi:delta=0.9,estimator=dr,released=true",
        "hcpi:delta=0.9,estimator=dr", "pi-b:n_wedge=5", "pi-b:n_wedge=20", "pi-leq-b:n_wedge=5",
        "model-free:n_wedge=5", "arbrm",
    )
)  # fmt: skip


def experiment(study="gridworld", **changes):
    etas = (0.1, 0.9) if study == "random-mdps" else ()
    return Experiment(study, (10, 50), COLUMNS, etas, **changes)


@pytest.mark.parametrize("study", ["gridworld", "gridworld-random", "random-mdps"])
def test_a_repetition_gives_a_row_per_world_and_size_and_every_column(study):
    spec = experiment(study)
    rows = repeat(spec, 3)
    assert len(rows) == 2 * max(1, len(spec.etas))
    for row in rows:
        for column in COLUMNS:
            assert -1e-9 <= row[column.key] <= row["optimal"] + 1e-9
        assert row["model-free:n_wedge=5"] == pytest.approx(row["pi-b:n_wedge=5"], abs=1e-6)


@pytest.mark.parametrize("study", ["gridworld", "gridworld-random", "random-mdps"])
def test_rows_of_the_compiled_path_equal_those_of_the_public_classes(study):
    """Every column again, one by one, from a log and through `improve`."""
    spec = experiment(study)
    run = 7
    rows = iter(repeat(spec, run))
    rng = np.random.default_rng(np.random.SeedSequence(spec.seed, spawn_key=(run,)))
    for world in worlds(spec, rng):
        sampler = Sampler(world.mdp, world.behaviour, spec.max_steps)
        for size in spec.sizes:
            log = sampler.log(size, rng=rng)
            problem = Problem.from_log(log, world.baseline, discount=0.95, v_max=1.0)
            row = next(rows)
            for column in COLUMNS:
                algorithm = column.make()
                if isinstance(algorithm, HCPI):
                    made = "baseline" if algorithm.released else world.behaviour
                    algorithm = replace(
                        algorithm, baseline_value=world.baseline_value, behaviour=made
                    )
                policy = algorithm.improve(problem).policy
                assert row[column.key] == pytest.approx(exact_value(world.mdp, policy), abs=1e-9)


def test_a_run_depends_on_the_seed_and_its_number_alone():
    spec = experiment()
    assert repeat(spec, 5)[0] | {"eta": 0} == repeat(spec, 5)[0] | {"eta": 0}
    assert repeat(spec, 5)[1]["basic-rl"] != repeat(spec, 6)[1]["basic-rl"]
    assert repeat(spec, 5)[1]["basic-rl"] != repeat(experiment(seed=1), 5)[1]["basic-rl"]


@pytest.mark.parametrize("study", ["gridworld", "random-mdps"])
def test_rows_depend_on_the_lists_of_sizes_and_etas_and_not_on_the_columns(study):
    """As docs/reproduce.md says."""
    spec = experiment(study)
    rows, key = repeat(spec, 3), "basic-rl"
    fewer = repeat(replace(spec, columns=(Column.parse(key),)), 3)
    assert [row[key] for row in fewer] == [row[key] for row in rows]
    other = repeat(replace(spec, sizes=(50,)), 3)
    assert [row[key] for row in other] != [row[key] for row in rows if row["size"] == 50]
    if spec.etas:
        one = repeat(replace(spec, etas=spec.etas[1:]), 3)
        same = [row for row in rows if row["eta"] == spec.etas[1]]
        assert [row[key] for row in one] != [row[key] for row in same]


def test_random_behaviour_draws_from_the_uniform_policy_and_keeps_the_baseline():
    (world,) = worlds(experiment("gridworld-random"), np.random.default_rng(0))
    assert (world.behaviour.probs == 0.25).all()
    np.testing.assert_array_equal(world.baseline.probs, gridworld_baseline().probs)
    assert world.baseline_value == pytest.approx(0.4, abs=0.005)
    assert math.isnan(world.eta)


def test_random_mdps_have_one_mdp_and_a_baseline_per_eta():
    first, second = worlds(experiment("random-mdps"), np.random.default_rng(0))
    assert first.mdp is second.mdp
    assert first.baseline_value < second.baseline_value < second.optimal_value
    assert (first.eta, second.eta) == (0.1, 0.9)


@pytest.mark.parametrize("estimator", ["is", "pdis", "dr"])
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("size", [3, 10, 60])
def test_hcpi_on_codes_chooses_what_hcpi_chooses_on_the_log(estimator, uniform, size):
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    behaviour = Policy.uniform(mdp.states, mdp.actions) if uniform else baseline
    sampler = Sampler(mdp, behaviour)
    truth = exact_value(mdp, baseline)
    for seed in range(5):
        codes, lengths = sampler.draw(size, rng=np.random.default_rng(seed))
        log = sampler.to_log(codes, lengths)
        problem = Problem.from_log(log, baseline, discount=0.95, v_max=1.0)
        group = [
            HCPI(estimator=estimator, delta=d, baseline_value=truth, behaviour=behaviour)
            for d in (0.1, 0.5, 0.9, 1.0)
        ]
        plan = compiled.CompiledTrainer(group, sampler, baseline, 1.0)
        assert len(plan.members) == len(group)
        for fast, algorithm in zip(plan.performances(codes, lengths), group, strict=True):
            slow = exact_value(mdp, algorithm.improve(problem).policy)
            assert fast == pytest.approx(slow, abs=1e-12)


def costly_mdp(seed: int) -> MDP:
    """Five states, rewards of both signs, ends; the baseline leaves pairs unseen in small logs."""
    rng = np.random.default_rng(seed)
    pair, k = np.repeat(np.arange(15), 2), 30
    return MDP.from_outcomes(
        pair // 3, pair % 3, np.full(k, 0.5), rng.integers(5, size=k), rng.normal(-0.5, 1, k),
        np.tile([False, True], 15), initial=np.full(5, 0.2), n_actions=3, discount=0.9,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_hcpi_on_codes_counts_what_the_log_lacks_as_its_lowest_return(seed):
    """Negative rewards, several values to beat and declared limits: every column has its own."""
    mdp = costly_mdp(seed)
    rng = np.random.default_rng(seed)
    baseline = Policy(rng.dirichlet(np.ones(3), 5))
    sampler = Sampler(mdp, baseline, 20)
    codes, lengths = sampler.draw(60, rng=rng)
    v_max = 10 * float(np.abs(mdp.rewards).max()) + 20
    problem = Problem.from_log(sampler.to_log(codes, lengths), baseline, discount=0.9, v_max=v_max)
    group = [
        HCPI(estimator=estimator, delta=0.9, baseline_value=rival, lowest_return=lowest,
             behaviour=baseline)
        for estimator in ("is", "pdis", "dr")
        for rival in (-30.0, exact_value(mdp, baseline), 0.0)
        for lowest in (None, -20.0, 0.0)
    ]  # fmt: skip
    plan = compiled.CompiledTrainer(group, sampler, baseline, v_max)
    assert len(plan.members) == len(group)
    found = plan.performances(codes, lengths)
    slow = [exact_value(mdp, algorithm.improve(problem).policy) for algorithm in group]
    np.testing.assert_allclose(found, slow, atol=1e-12)
    assert len(set(np.round(found, 9))) > (seed != 1)  # seed 1 tells no action apart


@pytest.mark.parametrize("size", [20, 5000])
def test_safety_tests_on_codes_accept_what_they_accept_on_the_log(size):
    """Two actions that end the process: few episodes are rejected, many are accepted."""
    two = np.array([0, 1])
    mdp = MDP.from_outcomes(
        0 * two, two, np.ones(2), 0 * two, two.astype(float), two >= 0,
        initial=np.ones(1), n_actions=2, discount=0.5,
    )  # fmt: skip
    baseline = Policy.uniform(mdp.states, mdp.actions)
    sampler = Sampler(mdp, baseline)
    codes, lengths = sampler.draw(size, rng=np.random.default_rng(0))
    log = sampler.to_log(codes, lengths)
    problem = Problem.from_log(log, baseline, discount=0.5, v_max=1.0)
    group = [RobustMDP(), RaMDP(safety_test=True), RaMDP(), RobustMDP(safety_test=False)]
    plan = compiled.CompiledTrainer(group, sampler, baseline, 1.0)
    assert len(plan.members) == len(group)
    found = plan.performances(codes, lengths)
    slow = [exact_value(mdp, algorithm.improve(problem).policy) for algorithm in group]
    wanted = [0.5, 0.5, 1, 1] if size < 100 else [1, 1, 1, 1]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(slow, wanted, atol=1e-12)


def test_no_safety_test_on_codes_accepts_a_log_without_reward():
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler = Sampler(mdp, baseline, 5)  # the goal is eight steps away
    codes, lengths = sampler.draw(10, rng=np.random.default_rng(0))
    group = [RobustMDP(), RaMDP(safety_test=True), RobustMDP(safety_test=False)]
    found = compiled.CompiledTrainer(group, sampler, baseline, 1.0).performances(codes, lengths)
    truth = exact_value(mdp, baseline)
    np.testing.assert_allclose(found[:2], truth, atol=1e-12)
    assert found[2] != pytest.approx(truth)


@pytest.mark.parametrize(
    "key",
    [
        "hcpi:estimator=wis,delta=0.5", "hcpi:bound=bca,delta=0.5", "hcpi:delta=0.5,seed=1",
        "robust-mdp:r_max=2", "ramdp:safety_test=true,r_max=2", "pi-b:n_wedge=auto",
        "basic-rl:method=sweeps", "auto",
    ],
)  # fmt: skip
def test_configurations_that_the_compiled_call_lacks_take_their_class(key):
    (world,) = worlds(experiment(), np.random.default_rng(0))
    algorithm = Column.parse(key).make()
    trainer = Trainer([algorithm, BasicRL()], world, 50)
    assert trainer.known == [1]
    assert np.isfinite(trainer.performances(20, np.random.default_rng(0))).all()


def test_the_order_of_the_columns_makes_no_difference():
    (world,) = worlds(experiment(), np.random.default_rng(0))
    algorithms = [column.make() for column in COLUMNS]
    order = np.random.default_rng(1).permutation(len(algorithms))
    found = Trainer(algorithms, world, 50).performances(20, np.random.default_rng(0))
    mixed = Trainer([algorithms[m] for m in order], world, 50)
    np.testing.assert_array_equal(mixed.performances(20, np.random.default_rng(0)), found[order])


@pytest.mark.parametrize("study", ["gridworld", "gridworld-random"])
def test_certified_is_told_the_limits_and_improves_the_policy_that_made_the_log(study):
    """With data of the uniform policy its guarantee is about that one, not about the baseline."""
    spec = Experiment(study, (200,), (Column.parse("certified"), Column.parse("auto")))
    (row,) = repeat(spec, 0)
    rng = np.random.default_rng(np.random.SeedSequence(spec.seed, spawn_key=(0,)))
    (world,) = worlds(spec, rng)
    log = Sampler(world.mdp, world.behaviour, spec.max_steps).log(200, rng=rng)
    problem = Problem.from_log(log, world.behaviour, discount=0.95, v_max=1.0)
    found = Certified(lowest_return=0, highest_return=1).improve(problem)
    assert row["certified"] == pytest.approx(exact_value(world.mdp, found.policy), abs=1e-9)
    assert row["certified"] >= exact_value(world.mdp, world.behaviour) - 1e-9
    assert row["auto"] >= world.baseline_value - 1e-9


def test_our_grid_repeats_columns_of_the_benchmark_and_adds_auto_and_certified():
    ours, main = (
        {column.key for column in default_experiment("gridworld", grid).columns}
        for grid in ("ours", "main")
    )
    assert ours - main == {"auto", "certified"}
