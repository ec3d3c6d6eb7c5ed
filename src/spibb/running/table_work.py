"""The part of `spibb.run` that is about labelled states: read, improve, judge, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spibb import checks
from spibb.algorithms import Algorithm, configured
from spibb.arrays import release_memory
from spibb.errors import InputError
from spibb.ingest import open_log
from spibb.ingest.mapping import ColumnMap
from spibb.inspection import Inspection, look_at
from spibb.log import Log
from spibb.names import DQN
from spibb.report.assessment import Assessment, assess
from spibb.report.folder import write_result
from spibb.report.origin import Origin
from spibb.running.problems import hold_out, load_problem
from spibb.running.results import Run
from spibb.sceptic import doubts
from spibb.tables import Stage


@dataclass(frozen=True)
class TableWork:
    """What to improve, and how to judge it; `run` says what each field means."""

    algorithm: Algorithm
    baseline: Any
    discount: float
    holdout: float
    delta: float
    seed: int
    v_max: float | None
    sceptic: bool
    safe: bool

    @classmethod
    def of(  # noqa: PLR0913 (one parameter per option of `run`)
        cls, algorithm: Any, options: Mapping[str, Any], *, baseline: Any, discount: float,
        holdout: float | None, delta: float | None, seed: int, checkpoint: Any, announce: Any,
        v_max: float | None, sceptic: bool, spreadsheet_safe: bool,
    ) -> TableWork:  # fmt: skip
        """Check all that was asked for, before anything is read."""
        chosen, sure = configured(algorithm, options, delta)
        if checkpoint is not None:
            raise InputError(f"checkpoint is for the algorithm {DQN}: leave it out")
        share = 0.0 if holdout is None else checks.number("holdout", holdout, 0, 1, "[)")
        return cls(chosen, baseline, discount, share, sure, seed, v_max, sceptic, spreadsheet_safe)

    def assess(
        self, source: Any, reading: Mapping[str, Any], origin: Callable[[], Origin], tell: Stage
    ) -> tuple[Assessment, Inspection]:
        """Read the log, improve, and judge."""
        table = open_log(source, **reading, progress=lambda share: tell("reading", share))
        in_memory = isinstance(source, Log)
        problem = load_problem(
            source if in_memory else table, self.baseline, self.algorithm, discount=self.discount,
            v_max=self.v_max,
        )  # fmt: skip
        inspection = look_at(table, problem.counts, problem.log)
        read = None if in_memory else ColumnMap.read_by(table)
        del table  # and with it what the engine holds in memory
        release_memory()
        made = origin()
        tell("improving", 0.0)
        share = self.holdout
        kept, held_out = hold_out(problem, share, self.seed) if share else (problem, None)
        improved = self.algorithm.improve(kept)
        tell("judging the new policy", 0.0)
        found = assess(
            improved, made, delta=self.delta, findings=inspection.findings, held_out=held_out
        )
        release_memory()
        if self.sceptic:
            tell("asking what a sceptic would", 0.0)
            found = replace(found, sceptic=doubts(improved, problem.log, self.seed))
        return replace(found, reading=read), inspection

    def write(self, assessment: Assessment, folder: Path) -> None:
        """Write all files of the result."""
        write_result(assessment, folder, safe=self.safe)

    def done(self, assessment: Assessment, inspection: Inspection, folder: Path | None) -> Run:
        """What `run` returns."""
        return Run(assessment, inspection, folder)
