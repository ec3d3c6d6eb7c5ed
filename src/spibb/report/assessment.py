"""All that is known about an improvement, gathered once for terminal, summary and report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spibb.algorithms.auto import Auto
from spibb.algorithms.candidate import Candidate
from spibb.algorithms.improvement import Improvement
from spibb.arrays import release_memory
from spibb.assurance.posterior import Posterior
from spibb.certificate import Certificate
from spibb.episodes.returns import EpisodeReturns
from spibb.ingest.assumptions import ENDS, Finding, doubts
from spibb.ingest.mapping import ColumnMap
from spibb.log import Log
from spibb.ope import BOUNDS, OffPolicyReport
from spibb.report.origin import Origin
from spibb.sceptic import Sceptic
from spibb.showing import Shown, main_options
from spibb.solve import DENSE_UP_TO
from spibb.verdict import Evidence, Verdict, gather_for, judge_by


@dataclass(frozen=True, eq=False)
class Assessment(Shown):
    """An improvement with the evidence, the verdict, its certificate and its alternatives.

    `sweep` is empty where the problem is too large to try every N∧. `returns` are those of
    all episodes of the log, held-out ones included; None where only counts were kept. `sceptic` is
    there if it was asked for. `reading` says how the log was read, None where that is not known.

    >>> spibb.run(log, baseline=baseline, n_wedge=1).assessment.verdict.grade
    <Grade.NOT_SUPPORTED: 'not supported'>
    """

    result: Improvement
    evidence: Evidence
    verdict: Verdict
    certificate: Certificate
    sweep: tuple[Candidate, ...]
    findings: tuple[Finding, ...]
    origin: Origin
    returns: EpisodeReturns | None = None
    sceptic: Sceptic | None = None
    reading: ColumnMap | None = None

    def _facts(self) -> Mapping[str, Any]:
        """What was made, and how it was judged."""
        return {
            "algorithm": main_options(self.result.algorithm), "verdict": self.verdict.headline,
            "gain_in_model": self.result.value - self.result.baseline_value,
            "lower_bound": self.verdict.lower_bound, "delta": self.evidence.delta,
            "candidates": len(self.sweep), "findings": len(self.findings),
        }  # fmt: skip

    @property
    def posterior(self) -> Posterior:
        """The gain in models drawn given the log."""
        return self.evidence.posterior

    @property
    def estimates(self) -> OffPolicyReport | None:
        """Off-policy estimates on the log itself."""
        return self.evidence.estimates

    @property
    def held_out(self) -> OffPolicyReport | None:
        """Off-policy estimates on episodes that trained nothing."""
        return self.evidence.held_out

    @property
    def swept(self) -> bool:
        """Whether the result was chosen among thresholds: then `sweep` has these."""
        return _chose_threshold(self.result)

    @property
    def chosen(self) -> Candidate | None:
        """The candidate of the sweep that is the result, if one is."""
        if self.swept:
            return self.result.chosen
        mine = self.result.algorithm.name, self.n_wedge
        return next((c for c in self.sweep if (c.algorithm, c.n_wedge) == mine), None)

    @property
    def n_wedge(self) -> float:
        """The threshold that made the policy; infinite where the baseline was kept, else NaN."""
        if self.result.sweep:
            return math.inf if self.result.chosen is None else self.result.chosen.n_wedge
        return float(getattr(self.result.algorithm, "n_wedge", math.nan))


def _chose_threshold(result: Improvement) -> bool:
    """Whether the log chose among candidates that all have an N∧."""
    return bool(result.sweep) and not any(
        math.isnan(candidate.n_wedge) for candidate in result.sweep
    )


def assess(
    result: Improvement,
    origin: Origin,
    *,
    delta: float | None = None,
    findings: Sequence[Finding] = (),
    held_out: Log | None = None,
) -> Assessment:
    """Ask everything about an improvement; all draws come from the origin's seed."""
    problem = result.problem
    evidence = gather_for(result, delta=delta, seed=origin.seed, held_out=held_out, bounds=BOUNDS)
    release_memory()  # what the estimators needed, before the sweep draws its models
    if any(found.what == ENDS for found in findings):  # also known where only counts were kept
        evidence = replace(evidence, ends_assumed=True)
    if _chose_threshold(result):
        sweep = result.sweep
    else:
        small = len(problem.states) <= DENSE_UP_TO
        sweep = Auto.over_thresholds(evidence.delta).sweep(problem) if small else ()
    verdict, certificate = judge_by(evidence, result)
    verdict = replace(verdict, doubts=(*verdict.doubts, *doubts(findings)))
    logs = [log for log in (problem.log, held_out) if log is not None]
    returns = EpisodeReturns.of(logs, problem.discount) if logs else None
    return Assessment(
        result, evidence, verdict, certificate, sweep, tuple(findings), origin, returns
    )  # fmt: skip
