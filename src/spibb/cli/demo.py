"""The demonstration: a gridworld log, two safe improvements, the truth beside the estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spibb.algorithms.base import Improvement, Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import exact_value, posterior_improvement
from spibb.log import Log
from spibb.paper.arrows import arrow_picture
from spibb.report.assessment import assess
from spibb.report.origin import Origin
from spibb.report.page import render
from spibb.simulate import simulate
from spibb.tables import log_table, write_table, write_whole

TITLES = {"pi-b": r"$\Pi_b$-SPIBB", "pi-leq-b": r"$\Pi_{\leq b}$-SPIBB"}


@dataclass(frozen=True)
class DemoRow:
    """One policy of the demonstration: what the log says about it, and the truth."""

    name: str
    true_value: float
    estimated_value: float
    probability: float | None = None
    pairs_copied: float | None = None


@dataclass(frozen=True, eq=False)
class Demo:
    """The log, the improvements by registry name, and the table of their values."""

    log: Log
    results: dict[str, Improvement]
    rows: list[DemoRow]


def run_demo(n_episodes: int, n_wedge: float, seed: int) -> Demo:
    """Draw a log from the gridworld's baseline and improve the baseline from it."""
    rng = np.random.default_rng(seed)
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = simulate(mdp, baseline, n_episodes, rng=rng)
    problem = Problem.from_log(log, baseline, discount=mdp.discount, v_max=1.0)
    algorithms = (PiBSpibb(n_wedge), PiLeqBSpibb(n_wedge))
    results = {algorithm.name: algorithm.improve(problem) for algorithm in algorithms}
    first = results["pi-b"]
    rows = [DemoRow("baseline", exact_value(mdp, baseline), first.baseline_value)]
    for name, result in results.items():
        posterior = posterior_improvement(
            problem.counts, result.policy, baseline, mdp.discount, rng=rng
        )
        rows.append(
            DemoRow(
                name, exact_value(mdp, result.policy), result.value,
                posterior.probability, float(result.bootstrapped.mean()),
            )
        )  # fmt: skip
    return Demo(log, results, rows)


def write_demo(demo: Demo, folder: Path) -> list[Path]:
    """Write the picture, the log, the baseline and the report of Π_b; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    result = demo.results["pi-b"]
    baseline = result.problem.baseline
    names = "policies.png", "log.csv", "baseline.csv", "report.html"
    picture, log, policy, report = (folder / name for name in names)
    arrow_picture(
        {"baseline": baseline} | {TITLES[k]: r.policy for k, r in demo.results.items()},
        {TITLES[k]: r.bootstrapped for k, r in demo.results.items()},
        picture,
    )
    write_table(log_table(demo.log), log)
    baseline.save(policy)
    page = render(assess(result, _origin(result, log, policy)))
    write_whole(report, lambda name: Path(name).write_text(page, encoding="utf-8"))
    return [picture, log, policy, report]


def _origin(result: Improvement, log: Path, baseline: Path) -> Origin:
    """The command that makes the same result from the files."""
    words = [
        "improve",
        str(log),
        "--baseline",
        str(baseline),
        "--out",
        str(log.parent / "improved"),
    ]
    words += ["--n-wedge", f"{result.algorithm.n_wedge:g}", "--v-max", "1"]  # type: ignore[attr-defined]
    return Origin.of(words, 0, {"log": log, "baseline": baseline})
