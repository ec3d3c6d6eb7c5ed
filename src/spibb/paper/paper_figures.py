"""Every figure of the paper, by its number and label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spibb.experiments.assurance import OLD_RULE, PROTOTYPE, covered, worse
from spibb.experiments.finite import COMPETITORS, ETAS, N_WEDGES, ROBUST_RELEASED
from spibb.paper.assurance_figures import CellDots, GainPanels, ReliabilityPanels
from spibb.paper.competitors import BASIC, HCPI, RAMDP, ROBUST, ROBUST_MDP
from spibb.paper.curves import Curves
from spibb.paper.domain import Domain
from spibb.paper.heatmaps import EtaMap, HyperMap, Selection
from spibb.paper.helicopter_figures import (
    MassCurves,
    NoiseCurves,
    OptionCurves,
    PassesCurves,
    Scenery,
)
from spibb.paper.plot import Plot
from spibb.paper.style import STATISTIC_NAMES

RAMDP_VERSIONS, HCPI_VERSIONS, ROBUST_VERSIONS = (
    tuple(Selection(version.title, version.options) for version in versions)
    for versions in (RAMDP, HCPI, ROBUST_MDP)
)
HCPI_PANELS, ROBUST_PANELS = (
    tuple((version.title, version.main) for version in versions) for versions in (HCPI, ROBUST_MDP)
)
OTHERS = (
    ("basic", "Basic RL", (("", BASIC),)),
    ("HCPI", "HCPI, doubly robust", HCPI_PANELS),
    ("RobustMDP", "Robust MDP", ROBUST_PANELS),
)
"""Competitors whose maps have no hyper-parameter: name of the file, name, panels."""
SHOWN_KAPPAS = (0.001, 0.002, 0.003, 0.004, 0.005)
PRINTED_WEDGES = (5, 10, 20, 50, 100)
"""N∧ of the heat maps in Figure 10; the paper keeps the others for its supplementary package."""
PI_B, PI_LEQ_B = "Π_b-SPIBB", "Π_≤b-SPIBB"
BOTH = ("mean", "cvar1")


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper: its number, a label and a caption of what it shows, how it is drawn.

    A number that ends in s is a figure that the paper mentions as part of its supplementary
    package, or a wider version of a printed one.
    """

    number: str
    label: str
    caption: str
    plot: Plot

    @property
    def supplementary(self) -> bool:
        """Whether the paper does not print it."""
        return self.number.endswith("s")

    @property
    def illustration(self) -> bool:
        """Whether it shows a world, and no result of any run."""
        return isinstance(self.plot, (Domain, Scenery))

    @property
    def statistics(self) -> tuple[str, ...]:
        """What it shows of a finite study: means or tails, by name."""
        match self.plot:
            case Curves(statistics=names):
                return names
            case HyperMap(statistic=name) | EtaMap(statistic=name):
                return (name,)
        return ()

    @property
    def stem(self) -> str:
        """File name without ending: fig1d_benchmark_mean_maze_N=5."""
        return f"fig{self.number}_{self.label.replace('<', 'leq')}"


def paper_figures(study: str) -> list[PaperFigure]:
    """The figures of a study, in the paper's order."""
    makers = {
        "gridworld": (_figure_1, _figure_5, _figure_6, _figure_7_gridworld, _figure_8),
        "gridworld-random": (_figure_2, _figure_9),
        "random-mdps": (
            _figure_3, _figure_7_random_mdps, _figure_10, _figure_10_supplement, _figure_11,
            _figure_11_supplement,
        ),
        "helicopter": (_figure_4, _figure_12),
        "assurance": (_assurance,),
    }  # fmt: skip
    return [figure for maker in makers[study] for figure in maker()]


def _spibb(n_wedge: int) -> tuple[str, str]:
    return f"pi-b:n_wedge={n_wedge}", f"pi-leq-b:n_wedge={n_wedge}"


def _benchmark(statistic: str, n_wedge: int, eta: float | None = None) -> Curves:
    """All algorithms, the SPIBB ones with the given N∧."""
    return Curves((statistic,), _spibb(n_wedge), COMPETITORS, eta, others=True)


def _benchmark_caption(statistic: str, n_wedge: int, eta: float | None = None) -> str:
    where = "" if eta is None else f" with baselines of η = {eta:g}"
    return f"{_capital(statistic)} of all algorithms{where}; SPIBB with N_∧ = {n_wedge}."


def _spibb_curves(number: str, label: str, n_wedge: int) -> PaperFigure:
    caption = f"Mean and 1 %-CVaR of both SPIBB algorithms with N_∧ = {n_wedge}."
    return PaperFigure(number, label, caption, Curves(BOTH, _spibb(n_wedge)))


def _wedge_map(number: str, label: str, algorithm: str, eta: float | None = None) -> PaperFigure:
    name = PI_B if algorithm == "pi-b" else PI_LEQ_B
    where = "" if eta is None else f", with baselines of η = {eta:g}"
    caption = f"1 %-CVaR of {name} against |D| and N_∧{where}."
    # columns of N∧ + 1 are the released code's N∧, which has no map of its own
    plot = HyperMap(algorithm, "n_wedge", "cvar1", eta=eta, preferred=N_WEDGES)
    return PaperFigure(number, label, caption, plot)


def _eta_map(
    number: str, label: str, name: str, statistic: str, *columns: tuple[str, str]
) -> PaperFigure:
    caption = f"{_capital(statistic)} of {name} against |D| and η."
    return PaperFigure(number, label, caption, EtaMap(columns, statistic))


def _ramdp_eta_map(number: str, label: str, kappa: float, statistic: str) -> PaperFigure:
    key = f"ramdp:kappa={kappa:g}"
    columns = (("as released", f"{key},released=true"), ("correct", key))
    return _eta_map(number, label, f"RaMDP with κ = {kappa:g}", statistic, *columns)


def _capital(statistic: str) -> str:
    name = STATISTIC_NAMES[statistic]
    return name[0].upper() + name[1:]


def _figure_1() -> Iterator[PaperFigure]:
    caption = "The gridworld: start S, goal G, walls in red, and an optimal trajectory."
    yield PaperFigure("1a", "gridworld", caption, Domain())
    yield _wedge_map("1b", "heatmap_maze_pib", "pi-b")
    yield _wedge_map("1c", "heatmap_maze_pi<b", "pi-leq-b")
    for letter, name, statistic in (("d", "mean", "mean"), ("e", "CVaR", "cvar1")):
        yield PaperFigure(
            f"1{letter}", f"benchmark_{name}_maze_N=5", _benchmark_caption(statistic, 5),
            _benchmark(statistic, 5),
        )  # fmt: skip
    yield _spibb_curves("1f", "maze_spibb_N=20", 20)


def _figure_2() -> Iterator[PaperFigure]:
    caption, plot = _benchmark_caption("cvar1", 20), _benchmark("cvar1", 20)
    yield PaperFigure("2a", "benchmark_CVaR_rand_N=20", caption, plot)
    yield _wedge_map("2b", "heatmap_CVaR_rand_pi_b", "pi-b")
    yield _wedge_map("2c", "heatmap_CVaR_rand_pi_<b", "pi-leq-b")


def _figure_3() -> Iterator[PaperFigure]:
    for letter, name, statistic, eta in (
        ("a", "mean", "mean", 0.1), ("b", "mean", "mean", 0.9), ("c", "1-CVaR", "cvar1", 0.9),
    ):  # fmt: skip
        yield PaperFigure(
            f"3{letter}", f"random_MDPs_{name}_eta={eta:g}",
            _benchmark_caption(statistic, 10, eta), _benchmark(statistic, 10, eta),
        )  # fmt: skip
    yield _ramdp_eta_map("3d", "random_MDPs_heat_RaMDP_kappa=0.003", 0.003, "cvar1")
    yield _eta_map(
        "3e", "random_MDPs_heat_pi<b_N=10", f"{PI_LEQ_B} with N_∧ = 10", "cvar1",
        ("", "pi-leq-b:n_wedge=10"),
    )  # fmt: skip
    yield _wedge_map("3f", "random_MDPs_heat_pi<b_eta=0.9", "pi-leq-b", 0.9)


def _figure_4() -> Iterator[PaperFigure]:
    caption = "The helicopter: where it starts (teal), and what landing pays: orange −1, blue 10."
    yield PaperFigure("4a", "helicopter", caption, Scenery())
    caption = "Mean and 10 %-CVaR of SPIBB-DQN against N_∧."
    yield PaperFigure("4b", "spibb-dqn-by-size", caption, OptionCurves("n_wedge"))
    caption = "Mean and 10 %-CVaR against the helicopter's noise factor."
    yield PaperFigure("4c", "noise-factor", caption, NoiseCurves())
    caption = "The baseline's mass on bootstrapped actions against N_∧, by size of the data set."
    yield PaperFigure("4s", "bootstrapped-mass", caption, MassCurves())


def _figure_5() -> Iterator[PaperFigure]:
    for letter, delta in (("a", 0.1), ("b", 0.9)):
        columns = tuple(f"hcpi:delta={delta:g},estimator={e}" for e in ("is", "pdis", "dr"))
        released = f"hcpi:delta={delta:g},estimator=dr,released=true"
        caption = f"Mean and 1 %-CVaR of HCPI with δ = {delta:g}, by estimator."
        plot = Curves(BOTH, columns, (released,))
        yield PaperFigure(f"5{letter}", f"HCPI_delta={delta:g}", caption, plot)
    for letter, name, statistic in (("c", "mean", "mean"), ("d", "CVaR", "cvar1")):
        caption = f"{_capital(statistic)} of HCPI against |D| and δ."
        plot_map = HyperMap("hcpi", "delta", statistic, HCPI_VERSIONS)
        yield PaperFigure(f"5{letter}", f"HCPI_heatmap_{name}", caption, plot_map)


def _figure_6() -> Iterator[PaperFigure]:
    caption = "Mean and 1 %-CVaR of Robust MDP without its safety test, beside Basic RL."
    plot = Curves(BOTH, (ROBUST,), (ROBUST_RELEASED, BASIC))
    yield PaperFigure("6a", "RobustMDP_delta=0.1", caption, plot)
    yield PaperFigure(
        "6b", "RobustMDP_heatmap_mean",
        "Mean of Robust MDP without its safety test against |D| and δ.",
        HyperMap("robust-mdp", "delta", "mean", ROBUST_VERSIONS),
    )  # fmt: skip


def _figure_7_gridworld() -> Iterator[PaperFigure]:
    for letter, kappa in (("a", "0.002"), ("b", "0.003")):
        key = f"ramdp:kappa={kappa}"
        caption = (
            f"Mean and 1 %-CVaR of RaMDP with κ = {kappa}, correct and as released, beside "
            "Basic RL."
        )
        plot = Curves(BOTH, (key, f"{key},released=true"), (BASIC,))
        yield PaperFigure(f"7{letter}", f"RaMDP_kappa={kappa}", caption, plot)
    for letter, name, statistic in (("c", "mean", "mean"), ("d", "CVaR", "cvar1")):
        caption = f"{_capital(statistic)} of RaMDP against |D| and κ."
        shown = HyperMap("ramdp", "kappa", statistic, RAMDP_VERSIONS, SHOWN_KAPPAS)
        yield PaperFigure(f"7{letter}", f"RaMDP_heatmap_{name}", caption, shown)
        searched = HyperMap("ramdp", "kappa", statistic, RAMDP_VERSIONS)
        caption = f"{_capital(statistic)} of RaMDP against |D| and every κ of the search."
        yield PaperFigure("7s", f"RaMDP_heatmap_{name}_all", caption, searched)


def _figure_7_random_mdps() -> Iterator[PaperFigure]:
    for letter, kappa in (("e", 0.002), ("f", 0.003)):
        label = f"random_MDPs_heat_RaMDP_kappa={kappa:g}"
        yield _ramdp_eta_map(f"7{letter}", label, kappa, "cvar1")


def _figure_8() -> Iterator[PaperFigure]:
    for letter, name, statistic in (("a", "10CVaR", "cvar10"), ("b", "0.1CVaR", "cvar0.1")):
        label, caption = f"benchmark_{name}_maze_N=5", _benchmark_caption(statistic, 5)
        yield PaperFigure(f"8{letter}", label, caption, _benchmark(statistic, 5))
    for letter, n_wedge in (("c", 5), ("d", 10), ("e", 50), ("f", 100)):
        yield _spibb_curves(f"8{letter}", f"maze_spibb_N={n_wedge}", n_wedge)


def _figure_9() -> Iterator[PaperFigure]:
    for letter, name, statistic in (
        ("a", "mean", "mean"), ("b", "10CVaR", "cvar10"), ("c", "0.1CVaR", "cvar0.1"),
    ):  # fmt: skip
        caption = _benchmark_caption(statistic, 20)
        label, plot = f"benchmark_{name}_rand_N=20", _benchmark(statistic, 20)
        yield PaperFigure(f"9{letter}", label, caption, plot)
    for letter, n_wedge in (("d", 5), ("e", 10), ("f", 50)):
        yield _spibb_curves(f"9{letter}", f"rand_spibb_N={n_wedge}", n_wedge)


def _figure_10() -> Iterator[PaperFigure]:
    for letter, (label, name, panels) in zip("abc", OTHERS):
        yield _eta_map(f"10{letter}", f"random_MDPs_heat_{label}", name, "cvar1", *panels)
    printed = [("pi<b", n) for n in (5, 20, 50, 100)] + [("pib", n) for n in PRINTED_WEDGES]
    for letter, (algorithm, n_wedge) in zip("defghijkl", printed):
        yield _spibb_eta_map(f"10{letter}", "heat", algorithm, n_wedge, "cvar1")


def _spibb_eta_map(
    number: str, kind: str, algorithm: str, n_wedge: int, statistic: str
) -> PaperFigure:
    name, key = {"pib": (PI_B, "pi-b"), "pi<b": (PI_LEQ_B, "pi-leq-b")}[algorithm]
    return _eta_map(
        number, f"random_MDPs_{kind}_{algorithm}_N={n_wedge}", f"{name} with N_∧ = {n_wedge}",
        statistic, ("", f"{key}:n_wedge={n_wedge}"),
    )  # fmt: skip


def _figure_10_supplement() -> Iterator[PaperFigure]:
    """Means, the N∧ that Figure 10 leaves out, and N∧ maps at fixed η (caption of Figure 10)."""
    for label, name, panels in OTHERS:
        yield _eta_map("10s", f"random_MDPs_heat_mean_{label}", name, "mean", *panels)
    yield _ramdp_eta_map("10s", "random_MDPs_heat_mean_RaMDP", 0.003, "mean")
    for algorithm in ("pib", "pi<b"):
        for n_wedge in N_WEDGES:
            yield _spibb_eta_map("10s", "heat_mean", algorithm, n_wedge, "mean")
            if n_wedge not in PRINTED_WEDGES:
                yield _spibb_eta_map("10s", "heat", algorithm, n_wedge, "cvar1")
    for algorithm, short in (("pi-b", "pib"), ("pi-leq-b", "pi<b")):
        for eta in ETAS:
            if (short, eta) != ("pi<b", 0.9):
                yield _wedge_map("10s", f"random_MDPs_heat_{short}_eta={eta:g}", algorithm, eta)


def _figure_11() -> Iterator[PaperFigure]:
    shown = [("cvar1", 0.1), ("cvar10", 0.1), ("cvar10", 0.9)]
    shown += [(name, eta) for eta in (0.3, 0.5, 0.7) for name in ("cvar1", "cvar10", "mean")]
    for letter, (statistic, eta) in zip("abcdefghijkl", shown):
        yield _random_benchmark(f"11{letter}", statistic, eta)


def _figure_11_supplement() -> Iterator[PaperFigure]:
    """The η that Figure 11 leaves out (its caption)."""
    for eta in (0.2, 0.4, 0.6, 0.8):
        for statistic in ("cvar1", "cvar10", "mean"):
            yield _random_benchmark("11s", statistic, eta)


def _random_benchmark(number: str, statistic: str, eta: float) -> PaperFigure:
    name = {"mean": "mean", "cvar10": "10-CVaR", "cvar1": "1-CVaR"}[statistic]
    return PaperFigure(
        number, f"random_MDPs_{name}_eta={eta:g}", _benchmark_caption(statistic, 10, eta),
        _benchmark(statistic, 10, eta),
    )  # fmt: skip


def _figure_12() -> Iterator[PaperFigure]:
    caption = "Mean and 10 %-CVaR of SPIBB-DQN over seeds, all on one data set, against N_∧."
    plot = OptionCurves("n_wedge", one_log=True)
    yield PaperFigure("12a", "single-dataset-spibb-dqn", caption, plot)
    caption = "Mean and 10 %-CVaR of RaMDP-DQN against κ, in the range of the paper and beyond."
    yield PaperFigure("12b", "RaMDP-DQN-kappa", caption, OptionCurves("kappa"))
    caption = "Mean and 10 %-CVaR against the number of passes over the data set."
    yield PaperFigure("12s", "passes", caption, PassesCurves())


def _assurance() -> Iterator[PaperFigure]:
    """The assurance benchmark, which the paper does not have."""
    share = "% of the logs (square-root scale)"
    promising = "auto", "certified", "certified:delta=0.2", OLD_RULE, PROTOTYPE
    shown = (*promising, "pi-b:n_wedge=5", BASIC)
    caption = (
        "Share of the logs on which each algorithm is truly worse than the baseline; dashed: δ."
    )
    yield PaperFigure("A1", "worse", caption, CellDots(worse, shown, share))
    caption = "True gain against the size of the log, mean over three baselines."
    yield PaperFigure(
        "A2", "gain", caption, GainPanels(("auto", "certified", PROTOTYPE, *_spibb(20), BASIC))
    )
    caption = "Stated probability of being no worse, of auto's best candidate, against the truth."
    yield PaperFigure("A3", "reliability", caption, ReliabilityPanels(("auto",)))
    caption = "Share of changed logs that gain less than auto states as sure; dashed: δ."
    yield PaperFigure("A4", "coverage", caption, CellDots(covered, ("auto",), share))
