"""The paper's competitors as columns of the studies: as the authors ran them, and as defined."""

from __future__ import annotations

from dataclasses import dataclass

from spibb.experiments.finite import N_WEDGES
from spibb.experiments.spec import Column, Value
from spibb.paper.evidence import AbsentError, View

Options = tuple[tuple[str, Value], ...]
RELEASED: Options = (("released", True),)


@dataclass(frozen=True)
class Version:
    """One of two readings of a competitor.

    `option` is its hyper-parameter and `benchmark` the value of that in the paper's benchmark;
    `options` are the others, which tell the version from its twin.
    """

    released: bool
    words: str
    algorithm: str
    option: str
    benchmark: float
    options: Options

    @property
    def title(self) -> str:
        """What tells the version from its twin."""
        return "as released" if self.released else "correct"

    @property
    def main(self) -> str:
        """The column of the benchmark."""
        return self.at(self.benchmark)

    def at(self, value: float, **others: Value) -> str:
        """The column with this hyper-parameter, and with other options."""
        options = {self.option: value, **dict(self.options), **others}
        return Column(self.algorithm, tuple(sorted(options.items()))).key

    def columns(self, view: View, least: int = 2) -> dict[float, str]:
        """The columns of this version in the results, by increasing hyper-parameter."""
        return view.keys(self.algorithm, self.option, dict(self.options), least)


@dataclass(frozen=True)
class Boundary:
    """One of two readings of "counts smaller than N∧", for both SPIBB algorithms.

    The text bootstraps N < N∧, as these columns do. The released code bootstraps N ≤ N∧, which is
    N < N∧ + 1: its N∧ = 5 is n_wedge=6.
    """

    released: bool
    words: str

    def at(self, algorithm: str, n_wedge: int) -> str:
        """The column that the paper calls N∧ = n_wedge."""
        return f"{algorithm}:n_wedge={n_wedge + self.released}"

    def columns(self, view: View, algorithm: str) -> dict[int, str]:
        """The columns of the paper's N∧ that the results have, by increasing N∧; at least two."""
        there = {column.key for column in view.results.experiment.columns}
        found = {n: key for n in N_WEDGES if (key := self.at(algorithm, n)) in there}
        if len(found) < 2:
            raise AbsentError(f"{algorithm} at several values of n_wedge")
        view.ask("N∧", N_WEDGES, found)
        return found


def _versions(
    name: str, algorithm: str, option: str, benchmark: tuple[float, float], fixed: Options = ()
) -> tuple[Version, Version]:
    """A competitor as released and as defined; the two may differ in the benchmark's value."""
    as_released, correct = benchmark
    return (
        Version(True, f"{name} as released", algorithm, option, as_released, (*fixed, *RELEASED)),
        Version(False, f"correct {name}", algorithm, option, correct, fixed),
    )


RAMDP = _versions("RaMDP", "ramdp", "kappa", (0.003, 0.003))
HCPI = _versions("HCPI", "hcpi", "delta", (0.9, 0.9), (("estimator", "dr"),))
ROBUST_MDP = _versions("Robust MDP", "robust-mdp", "delta", (0.001, 0.1), (("safety_test", False),))
"""δ is 0.1 in the paper, and 0.001 in the released code."""
SPIBB = (
    Boundary(True, "SPIBB as released, N ≤ N_∧ bootstrapped"),
    Boundary(False, "SPIBB of the text, N < N_∧ bootstrapped"),
)
BASIC, HCPI_DR, ROBUST = "basic-rl", HCPI[1].main, ROBUST_MDP[1].main
"""Columns of the benchmark: Basic RL, and the two that have only one hyper-parameter each."""
