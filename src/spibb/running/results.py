"""What `spibb.run` returns: on labelled states, and on vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.algorithms import Improvement
from spibb.ingest.assumptions import Finding
from spibb.inspection import Inspection
from spibb.report.assessment import Assessment
from spibb.showing import Shown
from spibb.verdict import Verdict

if TYPE_CHECKING:
    from spibb.deep.improving import VectorImprovement
    from spibb.deep.vector_policy import VectorPolicy
    from spibb.policy import Policy
    from spibb.report.vectors import VectorAssessment


@dataclass(frozen=True, eq=False)
class Run(Shown):
    """The result of `spibb.run` on labelled states.

    Attributes:
        assessment: all that is known about the improvement: evidence, verdict, certificate.
        inspection: what was found in the log.
        folder: where the files are; None if none were asked for.

    >>> spibb.run(log, baseline=baseline, discount=0.9, n_wedge=1).policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    """

    assessment: Assessment
    inspection: Inspection
    folder: Path | None

    def _facts(self) -> Mapping[str, Any]:
        """The improvement's, the grade, and the folder."""
        return _facts(self)

    @property
    def improvement(self) -> Improvement:
        """The trained policy with its values."""
        return self.assessment.result

    @property
    def verdict(self) -> Verdict:
        """How sure the log is: certified, supported, or not supported."""
        return self.assessment.verdict

    @property
    def policy(self) -> Policy:
        """The new policy."""
        return self.improvement.policy

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Facts and suspicions about the log."""
        return self.assessment.findings

    @property
    def assumptions(self) -> tuple[Finding, ...]:
        """What the log does not say itself, and what was left out of it."""
        return self.inspection.assumptions


@dataclass(frozen=True, eq=False)
class VectorRun(Shown):
    """The result of `spibb.run` where states are vectors (``algorithm="dqn"``).

    Attributes:
        assessment: all that is known about the improvement.
        folder: where the files are; None if none were asked for.
        inspection: None, since nothing inspects states that are vectors.
    """

    assessment: VectorAssessment
    folder: Path | None
    inspection: None = None

    def _facts(self) -> Mapping[str, Any]:
        """The improvement's, the grade, and the folder."""
        return _facts(self)

    @property
    def improvement(self) -> VectorImprovement:
        """The trained network with what is known about it."""
        return self.assessment.result

    @property
    def verdict(self) -> Verdict:
        """How sure the held-out episodes are."""
        return self.assessment.verdict

    @property
    def policy(self) -> VectorPolicy:
        """The new policy."""
        return self.improvement.policy

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the log does not say itself, and what was left out of it."""
        return self.assessment.findings

    assumptions = findings


def _facts(done: Run | VectorRun) -> Mapping[str, Any]:
    folder = {} if done.folder is None else {"folder": str(done.folder)}
    return {**done.improvement._facts(), "verdict": str(done.verdict.grade), **folder}
