"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from spibb.algorithms.base import Improvement
from spibb.assurance.posterior import ASSUMES
from spibb.ope import FEW_EPISODES
from spibb.report import charts, words
from spibb.report.assessment import Assessment
from spibb.report.changes import Change, changed, changes
from spibb.report.coverage import Coverage, bins
from spibb.report.verdict import believed, verdict

MAX_STATES = 300
"""Changed states shown; the policy file holds all."""
MAX_ACTIONS = 8
"""Actions shown per state, the likeliest first."""


@dataclass(frozen=True)
class ActionRow:
    """One action of a changed state."""

    action: str
    baseline: float
    new: float
    count: int
    why: str


@dataclass(frozen=True)
class StateRow:
    """One changed state: the summary, the glyph, and its actions."""

    change: Change
    state: str
    more: str
    less: str
    glyph: Markup
    actions: tuple[ActionRow, ...]
    actions_left_out: int


def render(assessment: Assessment) -> str:
    """The whole page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spibb.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "number": words.number, "signed": words.signed, "percent": words.percent,
        "clipped": words.clipped,
    }  # fmt: skip
    result, posterior = assessment.result, assessment.posterior
    values = value_lines(assessment)
    return environment.get_template("report.html.jinja").render(
        a=assessment, result=result, problem=result.problem, posterior=posterior,
        verdict=verdict(assessment), values=values, values_chart=_values_chart(values),
        gains_chart=_gains_chart(assessment), probability=believed(posterior),
        states=state_rows(assessment), n_changed=int(changed(result).sum()),
        coverage=Coverage.of(result), coverage_chart=_coverage_chart(result),
        sweep_chart=_sweep_chart(assessment), few=FEW_EPISODES, n_wedge=assessment.n_wedge,
        sure=1 - assessment.certificate.delta, assumes=ASSUMES,
    )  # fmt: skip


# ---- values -------------------------------------------------------------------------------------


def value_lines(assessment: Assessment) -> tuple[charts.Whisker, charts.Whisker]:
    """Values of the current and of the new policy with intervals.

    The current policy's is ρ(π_b, M̂) and the new one's adds the posterior mean gain; the intervals
    have the spread of both policies' values over the drawn models. The drawn values themselves
    are lower, because drawn models end in places that the log has not shown.
    """
    posterior, old = assessment.posterior, assessment.result.baseline_value
    tail = (1 - posterior.level) / 2
    spread = np.quantile(posterior.values, [tail, 1 - tail], axis=0) - posterior.values.mean(axis=0)
    (new_low, old_low), (new_high, old_high) = spread.tolist()
    new = old + posterior.gain
    return (
        charts.Whisker("current policy", old, old + old_low, old + old_high, new=False),
        charts.Whisker("new policy", new, new + new_low, new + new_high, new=True),
    )


def _values_chart(lines: Sequence[charts.Whisker]) -> Markup:
    said = "; ".join(
        f"{w.label} {words.number(w.value)}, {words.number(w.low)} to {words.number(w.high)}"
        for w in lines
    )
    return charts.whiskers(lines, f"Value per episode with 95 % intervals: {said}.")


def _gains_chart(assessment: Assessment) -> Markup | None:
    """The distribution of the gain; nothing to draw where no state changes."""
    posterior = assessment.posterior
    if not changed(assessment.result).any():
        return None
    low, high = posterior.interval
    return charts.histogram(
        posterior.gains,
        f"Histogram of the gain over {len(posterior.gains):,} models drawn given the log: mean "
        f"{words.number(posterior.gain)}, 95 % between {words.number(low)} and "
        f"{words.number(high)}; {words.percent(posterior.probability)} of the models lose nothing.",
    )


# ---- what changes -------------------------------------------------------------------------------


def state_rows(assessment: Assessment) -> list[StateRow]:
    """The changed states of most impact, with their actions."""
    return [_state_row(assessment, change) for change in changes(assessment.result, MAX_STATES)]


def _state_row(assessment: Assessment, change: Change) -> StateRow:
    result, s = assessment.result, change.code
    problem = result.problem
    new, old = result.policy.probs[s], problem.baseline.probs[s]
    shown = np.argsort(-np.maximum(new, old), kind="stable")
    relevant = int(((new > 0) | (old > 0) | (problem.counts.pairs[s] > 0)).sum())
    shown = np.sort(shown[: min(MAX_ACTIONS, relevant)])
    rows = tuple(
        ActionRow(
            words.clipped(problem.actions[a]), float(old[a]), float(new[a]),
            int(problem.counts.pairs[s, a]), _why(assessment, s, a),
        )
        for a in shown.tolist()
    )  # fmt: skip
    return StateRow(
        change, words.clipped(change.state), words.clipped(change.more),
        words.clipped(change.less), charts.pairs_glyph(old[shown].tolist(), new[shown].tolist()),
        rows, relevant - len(rows),
    )  # fmt: skip


def _why(assessment: Assessment, s: int, a: int) -> str:
    """Why a pair's probability is what it is."""
    result, n_wedge = assessment.result, assessment.n_wedge
    new, old = result.policy.probs[s, a], result.problem.baseline.probs[s, a]
    if not result.bootstrapped[s, a]:
        return "trusted" if np.isnan(n_wedge) else f"trusted (≥\N{NO-BREAK SPACE}{n_wedge:g})"
    limit = "" if np.isnan(n_wedge) else f" (<\N{NO-BREAK SPACE}{n_wedge:g})"
    return f"lowered{limit}" if new < old - 1e-9 else f"copied{limit}"


# ---- the evidence -------------------------------------------------------------------------------


def _coverage_chart(result: Improvement) -> Markup:
    shown = bins(result)
    said = ", ".join(f"{b.trusted + b.copied:,} seen {b.name} times" for b in shown)
    return charts.coverage(
        [(b.name, b.trusted, b.copied) for b in shown],
        f"Pairs of state and action by how often the log has them: {said}.",
    )


def _sweep_chart(assessment: Assessment) -> Markup | None:
    if not assessment.sweep:
        return None
    allowed = sum(candidate.lower > 0 for candidate in assessment.sweep)
    return charts.sweep_chart(
        assessment.sweep, assessment.chosen,
        f"Posterior mean gain with 95 % interval for {len(assessment.sweep)} candidates; "
        f"{allowed} of them gain for sure. The table below has the numbers.",
    )  # fmt: skip
