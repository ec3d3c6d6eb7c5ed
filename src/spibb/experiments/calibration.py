"""Is the posterior probability of improvement right? Simulated logs, where the truth is known.

A candidate that is said to be no worse than the baseline with probability p should be truly no
worse in a share p of the logs. Each setting simulates many logs; on each one `auto` sweeps its
candidates, and every candidate, the choice and a fixed N∧ are evaluated in the true MDP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from spibb.algorithms.auto import Auto, Candidate
from spibb.algorithms.base import Problem
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.softening import softened_baseline
from spibb.evaluate import exact_value
from spibb.kernels import dense
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

if TYPE_CHECKING:
    import pyarrow as pa

SIZES = (30, 60, 200)
ETAS = (0.1, 0.5, 0.9)
FIXED = ("pi-b", 5.0)
"""The fixed choice beside `auto`."""
V_MAX = 1.0
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Edges of the bins of probability; the last bin holds 0.99 to 1, both included."""
ROUNDING = 1e-9
NO_WORSE = -ROUNDING
"""True gains above this are no deterioration."""


@dataclass(frozen=True)
class Setting:
    """A kind of world and a number of trajectories; `eta` is NaN for the gridworld."""

    world: str
    size: int
    eta: float = float("nan")

    @property
    def name(self) -> str:
        """gridworld-10, random-mdps-eta=0.5-10."""
        eta = "" if np.isnan(self.eta) else f"-eta={self.eta:g}"
        return f"{self.world}{eta}-{self.size}"


SETTINGS = (
    *(Setting("gridworld", size) for size in SIZES),
    *(Setting("random-mdps", size, eta) for eta in ETAS for size in SIZES),
)


@dataclass(frozen=True)
class Judged:
    """A policy of one log: what the posterior believes of it, and the truth.

    `role` is "candidate" (a policy of the sweep that differs from the baseline and from those at
    smaller N∧), "auto" (the choice; the baseline where `n_wedge` is infinite) or "fixed" (Π_b with
    N∧ = 5). `covered` says whether the 95 % interval of the gain holds the true gain.
    """

    run: int
    role: str
    algorithm: str
    n_wedge: float
    probability: float
    gain: float
    true_gain: float
    covered: bool


def simulate_setting(setting: Setting, runs: int, seed: int = 0) -> pa.Table:
    """Simulate the logs of a setting: one row per policy judged.

    Run r of setting s draws from child (s, r) of the seed, however many runs there are.
    """
    import pyarrow as pa

    number = SETTINGS.index(setting) if setting in SETTINGS else len(SETTINGS)
    judged: list[Judged] = []
    for run in range(runs):
        child = np.random.SeedSequence(seed, spawn_key=(number, run))
        judged += judge_one(setting, run, np.random.default_rng(child))
    return pa.table({f.name: [getattr(row, f.name) for row in judged] for f in fields(Judged)})


def judge_one(setting: Setting, run: int, rng: np.random.Generator) -> list[Judged]:
    """Draw a world and a log, sweep N∧ on it, and put the truth beside every belief."""
    mdp, baseline = draw_world(setting, rng)
    counts = Sampler(mdp, baseline).counts(setting.size, rng=rng)
    problem = Problem.from_counts(counts, baseline, discount=mdp.discount, v_max=V_MAX)
    chooser = Auto(seed=run)
    algorithms, policies = chooser.candidates(problem)
    sweep = chooser.judge(problem, algorithms, policies)
    gains = true_gains(mdp, baseline, policies)
    new = _first_of_its_kind(policies) & (policies != baseline.probs).any(axis=(1, 2))
    rows = [_judged(run, "candidate", sweep[k], gains[k]) for k in np.flatnonzero(new)]
    best = chooser.choose(problem, sweep)
    if best is None:
        rows.append(Judged(run, "auto", "baseline", math.inf, 1.0, 0.0, 0.0, True))
    else:
        rows.append(_judged(run, "auto", sweep[best], gains[best]))
    fixed = next(k for k, c in enumerate(sweep) if (c.algorithm, c.n_wedge) == FIXED)
    return [*rows, _judged(run, "fixed", sweep[fixed], gains[fixed])]


def _judged(run: int, role: str, candidate: Candidate, true_gain: float) -> Judged:
    low, high = candidate.interval
    believed = math.nan if candidate.probability is None else candidate.probability
    return Judged(
        run, role, candidate.algorithm, candidate.n_wedge, believed, candidate.gain,
        float(true_gain), bool(low - ROUNDING <= true_gain <= high + ROUNDING),
    )  # fmt: skip


def _first_of_its_kind(policies: np.ndarray) -> np.ndarray:
    """bool [M]: no earlier policy is the same."""
    _, first = np.unique(policies.reshape(len(policies), -1), axis=0, return_index=True)
    return np.isin(np.arange(len(policies)), first)


def true_gains(mdp: MDP, baseline: Policy, policies: np.ndarray) -> np.ndarray:
    """ρ(π, M) − ρ(π_b, M) in the true MDP [M]."""
    rho = dense.performances(mdp.task, policies)
    return rho - exact_value(mdp, baseline)


def draw_world(setting: Setting, rng: np.random.Generator) -> tuple[MDP, Policy]:
    """The true MDP and the baseline of one run: one gridworld, or a new random MDP."""
    if setting.world == "gridworld":
        return gridworld_mdp(), gridworld_baseline()
    drawn = draw_garnet(rng)
    made = softened_baseline(drawn.mdp, setting.eta, rng)
    return drawn.mdp, made.policy


# ---- tables -------------------------------------------------------------------------------------


def reliability(rows: pa.Table) -> list[dict[str, float]]:
    """Belief against frequency, bin by bin of the probability, over the candidates of many logs.

    The intervals take the logs as units, because the candidates of one log stand or fall together.
    """
    run, probability, no_worse = _columns(rows, "candidate")
    place = np.clip(np.searchsorted(EDGES, probability, side="right") - 1, 0, len(EDGES) - 2)
    found = []
    for k in np.unique(place).tolist():
        inside = place == k
        share, low, high = _clustered_share(run[inside], no_worse[inside])
        found.append({
            "low": EDGES[k], "high": EDGES[k + 1], "policies": int(inside.sum()),
            "logs": len(np.unique(run[inside])), "probability": float(probability[inside].mean()),
            "frequency": share, "frequency_low": low, "frequency_high": high,
        })  # fmt: skip
    return found


def _columns(rows: pa.Table, role: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run, believed probability, and whether the policy is truly no worse."""
    mine = rows["role"].to_numpy(zero_copy_only=False) == role
    run, probability, gain = (rows[n].to_numpy()[mine] for n in ("run", "probability", "true_gain"))
    return run, probability, gain >= NO_WORSE


def _clustered_share(cluster: np.ndarray, hit: np.ndarray) -> tuple[float, float, float]:
    """A share and its 95 % interval when hits come in clusters.

    The variance of Σy/Σn, linearised, gives the number of independent trials that would know the
    share as well; Wilson's interval for that many, or one per cluster if all hits agree.
    """
    _, place = np.unique(cluster, return_inverse=True)
    hits, sizes = np.bincount(place, weights=hit), np.bincount(place)
    share = float(hits.sum() / sizes.sum())
    variance = float(np.square(hits - share * sizes).sum()) / float(sizes.sum()) ** 2
    trials = share * (1 - share) / variance if variance > 0 else float(len(sizes))
    return share, *wilson(share, trials)


def wilson(share: float, trials: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share seen in `trials` trials."""
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials)
    half *= math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return min(share, centre - half), max(share, centre + half)


def choices(rows: pa.Table) -> dict[str, float]:
    """What `auto` chose in truth, beside N∧ = 5: mean gain, share worse, share kept."""
    role = rows["role"].to_numpy(zero_copy_only=False)
    gain, n_wedge, covered = (
        rows[name].to_numpy(zero_copy_only=False) for name in ("true_gain", "n_wedge", "covered")
    )
    auto, fixed, candidate = (role == name for name in ("auto", "fixed", "candidate"))
    return {
        "logs": int(auto.sum()),
        "auto_gain": float(gain[auto].mean()),
        "auto_worse": float((gain[auto] < NO_WORSE).mean()),
        "auto_worst": float(gain[auto].min()),
        "auto_kept_baseline": float(np.isinf(n_wedge[auto]).mean()),
        "fixed_gain": float(gain[fixed].mean()),
        "fixed_worse": float((gain[fixed] < NO_WORSE).mean()),
        "fixed_worst": float(gain[fixed].min()),
        "interval_coverage": float(covered[candidate].mean()) if candidate.any() else math.nan,
    }
