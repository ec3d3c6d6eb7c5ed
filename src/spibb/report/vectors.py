"""The report and the folder of a policy on vectors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import spibb
from spibb import words
from spibb.deep.cases import WORTH_SHOWING, Case, coverage, typical_cases
from spibb.deep.improving import VectorImprovement
from spibb.deep.vector_policy import VectorPolicy
from spibb.episodes.departures import ALONE
from spibb.files import write_text
from spibb.ingest.assumptions import Finding, doubts
from spibb.ingest.mapping import ColumnMap
from spibb.ingest.policy_files import VECTORS
from spibb.names import DQN
from spibb.report import charts
from spibb.report.filling import FILTERS, fill
from spibb.report.folder import (
    off_policy_summary,
    options_of,
    verdict_in_short,
    verdict_summary,
    write_summary,
)
from spibb.report.origin import Origin
from spibb.verdict import Verdict
from spibb.verdict.evidence import OBSERVED

ONNX = "policy.onnx"


@dataclass(frozen=True, eq=False)
class VectorAssessment:
    """All that is known about an improvement on vectors, as `Assessment` of one on labels."""

    result: VectorImprovement
    findings: tuple[Finding, ...]
    origin: Origin
    reading: ColumnMap | None = None

    @property
    def verdict(self) -> Verdict:
        """How sure the held-out episodes are."""
        verdict = self.result.verdict
        return dataclasses.replace(verdict, doubts=(*verdict.doubts, *doubts(self.findings)))

    @property
    def policy(self) -> VectorPolicy:
        """The policy with what is known of it."""
        return dataclasses.replace(
            self.result.policy, origin=dataclasses.asdict(self.origin),
            verdict=verdict_in_short(self.verdict), reading=self.reading,
        )  # fmt: skip


def write_vectors(assessment: VectorAssessment, folder: Path) -> None:
    """Write policy.npz, policy.onnx, summary.json, report.html and the log's returns."""
    result = assessment.result
    assessment.policy.save(folder / VECTORS)
    result.policy.export_onnx(folder / ONNX)
    write_summary(summary(assessment), folder)
    write_text(folder / "report.html", render(assessment))
    result.returns.write(folder)


def summary(assessment: VectorAssessment) -> dict[str, Any]:
    """The result, for summary.json."""
    result = assessment.result
    policy, log, covered = result.policy, result.log, coverage(result)
    clone = result.clone
    return {
        "spibb_version": spibb.__version__,
        "verdict": verdict_summary(assessment.verdict),
        "algorithm": DQN,
        "options": options_of(result.settings),
        "discount": policy.discount,
        "n_wedge": policy.n_wedge,
        "radius": policy.radius,
        "passes": result.passes,
        "updates": result.loss_steps[-1],
        "loss": result.losses[-1],
        "features": policy.features,
        "centre": policy.scaling.centre,
        "spread": policy.scaling.spread,
        "actions": len(policy.actions),
        "transitions": len(log),
        "episodes": log.n_episodes,
        "return_limits": None,
        "decisions_changed": covered.changed,
        "bootstrapped_baseline_mass": covered.copied,
        "behaviour": None if clone is None else {
            "kind": clone.kind, "log_loss": clone.log_loss, "marginal_loss": clone.marginal_loss,
            "recorded": log.action_prob is not None, "rows_checked": clone.rows_checked,
        },
        "departures": None if result.departures is None else dataclasses.asdict(result.departures),
        "held_out": off_policy_summary(result.held_out),
        "cases": [_plain_case(case) for case in typical_cases(result)],
        "findings": [dataclasses.asdict(finding) for finding in assessment.findings],
        "origin": dataclasses.asdict(assessment.origin),
    }  # fmt: skip


def _plain_case(case: Case) -> dict[str, Any]:
    by_action = {
        name: [{"action": action, "value": value} for action, value in getattr(case, name).items()]
        for name in ("current", "new", "counts")
    }
    return dataclasses.asdict(case) | by_action


def render(assessment: VectorAssessment) -> str:
    """The whole page."""
    result = assessment.result
    covered = coverage(result)
    return fill(
        "vectors.html.jinja", FILTERS, r=result, policy=result.policy, verdict=assessment.verdict,
        origin=assessment.origin, cases=typical_cases(result), covered=covered,
        coverage_chart=_coverage_chart(covered.bins), loss_chart=_loss_chart(result),
        earned=result.returns.mean.value, ranges=_ranges(result), observed=OBSERVED,
        alone=ALONE, least=WORTH_SHOWING,
    )  # fmt: skip


def _ranges(result: VectorImprovement) -> list[tuple[str, float, float, float, float]]:
    """Columns with mean, deviation and range."""
    states, scaling = result.log.state, result.policy.scaling
    return list(zip(
        result.policy.features, scaling.centre.tolist(), states.std(axis=0).tolist(),
        states.min(axis=0).tolist(), states.max(axis=0).tolist(),
    ))  # fmt: skip


def _coverage_chart(bins: tuple[tuple[str, int, int], ...]) -> Any:
    said = ", ".join(f"{trusted + copied:,} with {name}" for name, trusted, copied in bins)
    return charts.coverage(
        bins, f"Logged decisions by pseudo-count: {said}.", "similar decisions in the log"
    )


def _loss_chart(result: VectorImprovement) -> Any:
    losses, steps = np.maximum(result.losses, 1e-30), result.loss_steps
    height = np.log10(losses)
    across = charts.Scale(0, float(steps[-1]), 46, 368)
    up = charts.Scale(*charts.padded(height.tolist()), 130, 8)
    points = " ".join(f"{across(float(x))},{up(float(y))}" for x, y in zip(steps, height))
    parts = charts.axis(across, 130, 8)
    for tick in charts.ticks(up.low, up.high, 4):
        parts.append(
            charts.text(42, up(tick) + 4, words.short(float(f"{10**tick:.2g}")), "tick", "end")
        )
    parts.append(f'<polyline points="{points}" class="whisker new" fill="none"/>')
    said = f"Loss from {losses[0]:.3g} to {losses[-1]:.3g} in {int(steps[-1]):,} updates."
    return charts.svg(152, said, parts)
