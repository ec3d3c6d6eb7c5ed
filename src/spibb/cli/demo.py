"""The demonstration: a gridworld log, two safe improvements, the truth beside the estimates."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.evaluate import exact_value, monte_carlo_value
from spibb.files import Held, write_text
from spibb.log import Log
from spibb.paper.arrows import arrow_picture
from spibb.paper.plot import has_matplotlib
from spibb.report.assessment import assess
from spibb.report.origin import Origin, UsedFile, digest
from spibb.report.page import render
from spibb.simulate import simulate
from spibb.tables import log_table, write_table
from spibb.verdict import decide, gather_for

NAMES = "policies.png", "log.csv", "baseline.csv", "report.html", "deployed.csv"
IMPROVED = "improved"
POSTERIOR_SEED = 0
"""Also that of `spibb improve`, so that the same command gives the same numbers."""
TITLES = {"pi-b": r"$\Pi_b$-SPIBB", "pi-leq-b": r"$\Pi_{\leq b}$-SPIBB"}


@dataclass(frozen=True)
class DemoRow:
    """One policy of the demonstration: what the log says about it, and the truth.

    `observed` is the mean return in the log, of the policy that made it.
    """

    name: str
    true_value: float
    estimated_value: float
    grade: str = ""
    pairs_copied: float | None = None
    observed: float | None = None


@dataclass(frozen=True, eq=False)
class Demo:
    """The log, the improvements by registry name, and the table of their values.

    `deployed` are as many episodes of Π_b's policy in the true world.
    """

    log: Log
    deployed: Log
    results: dict[str, Improvement]
    rows: list[DemoRow]


@dataclass(frozen=True)
class DemoFiles:
    """What the demonstration wrote, and the commands that use it.

    `picture` is None where no drawing library is installed.
    `command` makes the report's numbers, `monitor` tests the new policy's episodes.
    """

    picture: Path | None
    report: Path
    command: str
    monitor: str


def run_demo(n_episodes: int, n_wedge: float, seed: int) -> Demo:
    """Draw a log from the gridworld's baseline and improve the baseline from it."""
    rng = np.random.default_rng(seed)
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = simulate(mdp, baseline, n_episodes, rng=rng)
    problem = Problem.from_log(log, baseline, discount=mdp.discount, v_max=1.0)
    algorithms = (PiBSpibb(n_wedge), PiLeqBSpibb(n_wedge))
    results = {algorithm.name: algorithm.improve(problem) for algorithm in algorithms}
    evidence = {name: gather_for(result, seed=POSTERIOR_SEED) for name, result in results.items()}
    observed = monte_carlo_value(log, mdp.discount).value
    current = evidence["pi-b"].current.mean
    rows = [DemoRow("baseline", exact_value(mdp, baseline), current, observed=observed)]
    for name, result in results.items():
        rows.append(
            DemoRow(
                name, exact_value(mdp, result.policy), evidence[name].new.mean,
                str(decide(evidence[name]).grade), float(result.bootstrapped.mean()),
            )
        )  # fmt: skip
    deployed = simulate(mdp, results["pi-b"].policy, n_episodes, rng=rng)
    return Demo(log, deployed, results, rows)


def write_demo(demo: Demo, held: Held) -> DemoFiles:
    """Write the picture, the log, the baseline, the report of Π_b and episodes of its policy."""
    held.publish(lambda aside: _write(demo, aside, held.folder))
    command = _command(demo.results["pi-b"], held.folder)
    picture, _, _, report, deployed = (held.folder / name for name in NAMES)
    words = ["spibb", "monitor", str(held.folder / IMPROVED), str(deployed), "--lowest-return", "0"]
    return DemoFiles(picture if has_matplotlib() else None, report, command, shlex.join(words))


def _write(demo: Demo, aside: Path, folder: Path) -> None:
    """Write all files aside; the report names those that `folder` will have."""
    result = demo.results["pi-b"]
    baseline = result.problem.baseline
    picture, log, policy, report, deployed = (aside / name for name in NAMES)
    if has_matplotlib():
        arrow_picture(
            {"baseline": baseline} | {TITLES[k]: r.policy for k, r in demo.results.items()},
            {TITLES[k]: r.bootstrapped for k, r in demo.results.items()},
            picture,
        )
    write_table(log_table(demo.log), log)
    write_table(log_table(demo.deployed), deployed)
    baseline.save(policy)
    origin = _origin(result, folder, {"log": log, "baseline": policy})
    write_text(report, render(assess(result, origin)))


def _origin(result: Improvement, folder: Path, written: dict[str, Path]) -> Origin:
    """The command that makes the same result from the files, once they are in the folder."""
    sources = [
        UsedFile(role, str(folder / path.name), digest(path)) for role, path in written.items()
    ]
    command = _command(result, folder)
    return replace(Origin.of(command, POSTERIOR_SEED), sources=tuple(sources))


def _command(result: Improvement, folder: Path) -> str:
    """What makes the same result from the folder's files on the command line."""
    _, log, baseline, *_ = (str(folder / name) for name in NAMES)
    problem, n_wedge = result.problem, result.algorithm.n_wedge  # type: ignore[attr-defined]
    words = ["spibb", "improve", log, "--baseline", baseline, "--out", str(folder / IMPROVED)]
    words += ["--n-wedge", f"{n_wedge:g}", "--v-max", f"{problem.v_max:g}"]
    return shlex.join([*words, "--discount", f"{problem.discount:g}"])
