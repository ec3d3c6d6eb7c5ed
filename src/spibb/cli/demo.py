"""The demonstration: a gridworld log, two safe improvements, the truth beside the estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spibb.algorithms.base import Improvement, Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import exact_value, posterior_improvement
from spibb.files import Held, write_text
from spibb.log import Log
from spibb.paper.arrows import arrow_picture
from spibb.report.assessment import assess
from spibb.report.origin import Origin, Source, digest
from spibb.report.page import render
from spibb.simulate import simulate
from spibb.tables import log_table, write_table

NAMES = "policies.png", "log.csv", "baseline.csv", "report.html"
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


def write_demo(demo: Demo, held: Held) -> list[Path]:
    """Write the picture, the log, the baseline and the report of Π_b; return their paths."""
    held.publish(lambda aside: _write(demo, aside, held.folder))
    return [held.folder / name for name in NAMES]


def _write(demo: Demo, aside: Path, folder: Path) -> None:
    """Write all files aside; the report names those that `folder` will have."""
    result = demo.results["pi-b"]
    baseline = result.problem.baseline
    picture, log, policy, report = (aside / name for name in NAMES)
    arrow_picture(
        {"baseline": baseline} | {TITLES[k]: r.policy for k, r in demo.results.items()},
        {TITLES[k]: r.bootstrapped for k, r in demo.results.items()},
        picture,
    )
    write_table(log_table(demo.log), log)
    baseline.save(policy)
    origin = _origin(result, folder, {"log": log, "baseline": policy})
    write_text(report, render(assess(result, origin)))


def _origin(result: Improvement, folder: Path, written: dict[str, Path]) -> Origin:
    """The command that makes the same result from the files, once they are in the folder."""
    places = {role: folder / path.name for role, path in written.items()}
    words = ["improve", str(places["log"]), "--baseline", str(places["baseline"])]
    words += ["--out", str(folder / "improved")]
    words += ["--n-wedge", f"{result.algorithm.n_wedge:g}", "--v-max", "1"]  # type: ignore[attr-defined]
    sources = [Source(role, str(places[role]), digest(path)) for role, path in written.items()]
    return replace(Origin.of(words, 0, {}), sources=tuple(sources))
