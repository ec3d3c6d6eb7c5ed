"""The assurance benchmark: how often is a policy that was said to be safe truly worse?

One repetition draws a world of every family; for each of its three baselines and each size it draws
a log, trains every column on it, and puts the truth beside what `auto` said. Nothing is estimated:
values are exact in the true world.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from spibb import checks
from spibb.algorithms import make
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm, Truth
from spibb.algorithms.candidate import Candidate, surest
from spibb.algorithms.certified import Certified
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.envs.baselines import optimal_q
from spibb.envs.families import FAMILIES, SLOW_FAMILIES
from spibb.envs.small import BASELINES
from spibb.evaluate import exact_value, returns
from spibb.experiments.spec import Column, Experiment
from spibb.kernels import dense
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.solve import DENSE_UP_TO
from spibb.verdict import is_favourable

SIZES = (10, 30, 100, 300, 1000, 5000)
OLD_RULE = "spibb.experiments.assurance.OldRule"
PROTOTYPE = "spibb.experiments.prototype.Prototype"
COLUMNS = (
    "auto", "certified", "certified:delta=0.2", OLD_RULE, PROTOTYPE, "pi-b:n_wedge=5",
    "pi-b:n_wedge=20", "pi-leq-b:n_wedge=5", "pi-leq-b:n_wedge=20", "basic-rl",
)  # fmt: skip
GRIDS = {
    "main": tuple(name for name in FAMILIES if name not in SLOW_FAMILIES),
    "large": SLOW_FAMILIES,
}
USUAL_RUNS = {"main": 1000, "large": 200}
"""Logs a cell, where no number is asked for."""
NO_GAIN = 1e-9
"""Of the span of possible returns: gains and losses below it are none."""
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Edges of the bins of stated probability; the last bin has 0.99 to 1, both included."""


def default_experiment(study: str, grid: str = "main") -> Experiment:
    """All families of a grid, at all sizes."""
    columns = tuple(Column.parse(key) for key in COLUMNS)
    return Experiment(study, SIZES, columns, families=GRIDS[grid])


# ---- names of stored columns --------------------------------------------------------------------


def worse(key: str) -> str:
    """Column of a share: the policy is truly worse than the baseline."""
    return f"worse:{key}"


def changed(key: str) -> str:
    """Column of a share: the policy differs from the baseline."""
    return f"changed:{key}"


def covered(key: str) -> str:
    """Column of a share: the true gain is at least what was stated for sure."""
    return f"covered:{key}"


def supported(key: str) -> str:
    """Column of a share: the verdict supports the change."""
    return f"supported:{key}"


def misled(key: str) -> str:
    """Column of a share: the verdict supports the change, and the policy is truly worse."""
    return f"misled:{key}"


def said(key: str, edge: float) -> str:
    """Column of stated probabilities within the bin that begins at an edge."""
    return f"said:{key}@{edge:g}"


def true(key: str, edge: float) -> str:
    """Column of a share: of the candidates in a bin of stated probability, the truly no worse."""
    return f"true:{key}@{edge:g}"


def ahead(key: str, other: str) -> str:
    """Column of a difference: the gain of one column minus that of another on the same log."""
    return f"{key} minus {other}"


def differences(experiment: Experiment) -> dict[str, tuple[str, str]]:
    """The columns that are compared log by log, by the name of their difference."""
    keys = {column.key for column in experiment.columns}
    pairs = [(Auto.name, other) for other in (PROTOTYPE, OLD_RULE)]
    return {ahead(*pair): pair for pair in pairs if keys.issuperset(pair)}


def states_bounds(column: Column) -> bool:
    """Whether a column says how sure it is: `auto` does."""
    return column.algorithm == Auto.name


def shares(experiment: Experiment) -> list[str]:
    """The columns of rows that are averaged as shares."""
    names = [name(c.key) for c in experiment.columns for name in (worse, changed)]
    for column in filter(states_bounds, experiment.columns):
        names += [name(column.key) for name in (covered, supported, misled)]
        names += [name(column.key, edge) for edge in EDGES[:-1] for name in (said, true)]
    return names


# ---- the old rule -------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def improved(algorithm: Algorithm, problem: Problem) -> Improvement:
    """An algorithm's result for a log, found once: two columns may need it."""
    return algorithm.improve(problem)


def all_improved(algorithms: Sequence[Algorithm], problem: Problem) -> list[Improvement]:
    """Each algorithm's result for a log; `certified` reads it once for all levels."""
    several = [a for a in algorithms if isinstance(a, Certified)]
    found: dict[Algorithm, Improvement] = dict(
        zip(several, Certified.improve_each(several, problem))
    )
    return [found.get(a) or improved(a, problem) for a in algorithms]


@dataclass(frozen=True)
class OldRule(Algorithm):
    """The rule that `auto` once had, for comparison: the largest mean gain of all candidates whose
    posterior probability of being no worse is at least 1 − δ, under today's posterior.

    1. Below the number of episodes from which a probability is stated it keeps the baseline.
    """

    name: ClassVar[str] = "old-rule"
    no_certificate: ClassVar[str | None] = Auto.no_certificate

    delta: float = 0.05

    def __post_init__(self) -> None:
        checks.delta(self.delta)

    def improve(self, problem: Problem) -> Improvement:
        """Take the candidates as `auto` judges them, and choose otherwise."""
        found = improved(Auto.over_thresholds(self.delta), problem)
        sure = [c for c in moving(found) if (c.probability or 0.0) >= 1 - self.delta]
        best = max(sure, key=lambda c: c.gain, default=None)
        return (PiBSpibb(math.inf) if best is None else fitted(best)).improve(problem)


def moving(found: Improvement) -> list[Candidate]:
    """The candidates of a sweep that change something."""
    return [candidate for candidate in found.sweep if candidate.states_changed]


def fitted(candidate: Candidate) -> Algorithm:
    """The configuration of a candidate."""
    return make(candidate.algorithm, n_wedge=candidate.n_wedge, unseen=Auto.unseen)


# ---- one repetition -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scene:
    """A true world with one of its baselines."""

    family: str
    quality: str
    mdp: MDP
    baseline: Policy

    @cached_property
    def value(self) -> float:
        """ρ(π_b)."""
        return exact_value(self.mdp, self.baseline)

    @cached_property
    def optimal(self) -> float:
        """ρ*."""
        return best_value(self.mdp)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest return that any path of the world can have."""
        return return_limits(self.mdp)

    @cached_property
    def rounding(self) -> float:
        """Differences of values below this are none."""
        low, high = self.limits
        return NO_GAIN * (high - low)

    def gains(self, policies: np.ndarray) -> np.ndarray:
        """ρ(π) − ρ(π_b) of rows [M, S, A]; 0 where it is rounding."""
        found = _values(self.mdp, policies) - self.value
        found[np.abs(found) <= self.rounding] = 0.0
        return found

    def share(self, gain: float) -> float:
        """A gain in units of what could be gained; 0 where nothing could."""
        possible = self.optimal - self.value
        return gain / possible if possible > self.rounding else 0.0


def _values(mdp: MDP, policies: np.ndarray) -> np.ndarray:
    if mdp.shape[0] <= DENSE_UP_TO:
        found: np.ndarray = dense.performances(mdp.task, policies)
        return found
    wrapped = (Policy.trusted(rows, mdp.states, mdp.actions) for rows in policies)
    return np.array([exact_value(mdp, policy) for policy in wrapped])


@lru_cache(maxsize=8)
def best_value(mdp: MDP) -> float:
    """ρ* of a world."""
    return float(mdp.initial @ optimal_q(mdp).max(axis=1))


@lru_cache(maxsize=8)
def return_limits(mdp: MDP) -> tuple[float, float]:
    """The lowest and the highest discounted return of any path, from any state on.

    Value iteration in which chance, too, is on one side; the limits are widened by its error.
    """
    paid, widest = mdp.paid, float(np.abs(mdp.paid.rewards).max())
    first = paid.indptr[:: mdp.shape[1]][:-1]
    ends = []
    for side, extreme in ((-1, np.minimum), (1, np.maximum)):
        v = np.zeros(mdp.shape[0] + 1)  # the last is the end, which code −1 finds
        gap = math.inf
        while gap > 1e-10 * widest * (1 - mdp.discount):
            step = extreme.reduceat(paid.rewards + mdp.discount * v[paid.successors], first)
            gap = float(np.abs(step - v[:-1]).max())
            v[:-1] = step
        ends.append(float(extreme.reduce(v)) + side * 1e-9 * widest)
    return ends[0], ends[1]


def repeat(experiment: Experiment, run: int) -> list[dict[str, Any]]:
    """One repetition: a row per family, baseline and size.

    A log depends on the seed, the run, the family, the baseline and the size alone, whatever else
    the experiment has.
    """
    algorithms = [(column, column.make()) for column in experiment.columns]
    return [
        row_of(scene, experiment, run, size, algorithms)
        for scene in scenes(experiment, run)
        for size in experiment.sizes
    ]


def scenes(experiment: Experiment, run: int) -> Iterator[Scene]:
    """The worlds of a repetition, each with its three baselines."""
    for family in experiment.families:
        world = FAMILIES[family]
        mdp = world.make(_generator(experiment, run, family))
        for quality in BASELINES:
            rng = _generator(experiment, run, family, quality)
            yield Scene(family, quality, mdp, world.baseline(mdp, quality, rng))


def _generator(experiment: Experiment, run: int, *names: str) -> np.random.Generator:
    key = (run, *(zlib.crc32(name.encode()) for name in names))
    return np.random.default_rng(np.random.SeedSequence(experiment.seed, spawn_key=key))


def problem_of(scene: Scene, experiment: Experiment, run: int, size: int) -> Problem:
    """The log of a cell, as a problem."""
    rng = _generator(experiment, run, scene.family, scene.quality, str(size))
    steps = FAMILIES[scene.family].max_steps
    log = Sampler(scene.mdp, scene.baseline, steps).log(size, rng=rng)
    return Problem.from_log(log, scene.baseline, discount=scene.mdp.discount)


def row_of(
    scene: Scene, experiment: Experiment, run: int, size: int,
    algorithms: list[tuple[Column, Algorithm]],
) -> dict[str, Any]:  # fmt: skip
    """Everything that is stored of one log."""
    problem = problem_of(scene, experiment, run, size)
    assert problem.log is not None
    found = all_improved([one.told(Truth(scene.limits)) for _, one in algorithms], problem)
    policies = np.stack([result.policy.probs for result in found])
    gains = scene.gains(policies).tolist()
    earned = float(returns(problem.log, problem.discount).mean())
    row: dict[str, Any] = {
        "run": run, "family": scene.family, "quality": scene.quality, "size": size,
        "baseline": scene.value, "optimal": scene.optimal, "earned": earned,
    }  # fmt: skip
    for (column, _), result, gain in zip(algorithms, found, gains):
        # By any bit, not by `changed_states`: so is `worse`, which a change of 1e-10 can be.
        key, moved = column.key, (result.policy.probs != scene.baseline.probs).any()
        row |= {key: scene.share(gain), worse(key): gain < 0, changed(key): moved}
        if states_bounds(column):
            row |= _stated(scene, result, key, gain)
    improved.cache_clear()
    return row


def _stated(scene: Scene, result: Improvement, key: str, gain: float) -> dict[str, float]:
    """What `auto` stated, and the truth: of its choice, and of the candidate that it likes best."""
    lower, holds, believed = math.nan, math.nan, False
    if result.chosen is not None:
        believed = is_favourable(result)
        lower = scene.share(result.chosen.lower)
        holds = float(gain >= result.chosen.lower - scene.rounding)
    row = {f"lower:{key}": lower, covered(key): holds}
    row |= {supported(key): float(believed), misled(key): float(believed and gain < 0)}
    row |= {name(key, edge): math.nan for edge in EDGES[:-1] for name in (said, true)}
    best = surest(moving(result))
    if best is not None and best.probability is not None and best.probability >= EDGES[0]:
        edge = max(edge for edge in EDGES[:-1] if edge <= best.probability)
        rows = result.rows_of(best)
        row[said(key, edge)] = best.probability
        row[true(key, edge)] = float(scene.gains(rows[None])[0] >= 0)
    return row


def seconds(experiment: Experiment, run: int) -> float:
    """Seconds of one repetition, from the smallest and the largest logs of its middling baselines.

    The first call compiles what is needed.
    """
    sizes = sorted({min(experiment.sizes), max(experiment.sizes)})
    algorithms = [(column, column.make()) for column in experiment.columns]
    total = 0.0
    for scene in scenes(experiment, run):
        if scene.quality != "middling":
            continue
        row_of(scene, experiment, run, sizes[0], algorithms)
        begin = time.process_time()
        for size in sizes:
            row_of(scene, experiment, run, size, algorithms)
        total += (time.process_time() - begin) / len(sizes)
    return total * len(BASELINES) * len(experiment.sizes)
