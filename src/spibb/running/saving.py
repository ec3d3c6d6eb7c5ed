"""How an improvement that was made in Python is saved and reported."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from spibb import checks
from spibb.algorithms import Improvement
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.files import Held, possible, write_text
from spibb.ingest.aggregate import LogTable
from spibb.ingest.assumptions import Finding
from spibb.inspection import look_at
from spibb.log import Log
from spibb.report.assessment import Assessment, assess
from spibb.report.folder import claim, write_result
from spibb.report.origin import Origin
from spibb.report.page import render


def save_result(
    result: Improvement, folder: str | Path, delta: float | None, seed: int, force: bool, safe: bool
) -> Path:
    """What `Improvement.save` does, where the report is known."""
    with claimed("folder", folder, force) as held:
        known = _assessed(result, delta, seed)
        held.publish(lambda aside: write_result(known, aside, safe=safe))
        return held.folder


def save_report(result: Improvement, path: str | Path, delta: float | None, seed: int) -> Path:
    """What `Improvement.report` does, where the report is known."""
    checks.instance("path", path, (str, Path), "give the name of a file, such as report.html")
    written = Path(path)
    if written.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"cannot write {written.name!r}: the name must end in .html")
    write_text(written, render(_assessed(result, delta, seed)))
    return written


def _assessed(result: Improvement, delta: float | None, seed: int) -> Assessment:
    """All about an improvement that was made in Python."""
    problem = result.problem
    looked = () if problem.log is None else _findings(problem.log, problem.counts)
    origin = Origin.of(_command(result), checks.seed(seed))
    return assess(result, origin, delta=delta, findings=looked)


def _findings(log: Log, counts: Counts) -> tuple[Finding, ...]:
    return look_at(LogTable.of(log), counts, log).findings


def _command(result: Improvement) -> str:
    """The call that makes the improvement again, of the log and the baseline that were given."""
    problem = result.problem
    data = "from_counts(counts" if problem.log is None else "from_log(log"
    limit = f", v_max={float(problem.v_max)!r}" if problem.v_max_given else ""
    return (
        f"{result.algorithm!r}.improve(Problem.{data}, baseline, "
        f"discount={float(problem.discount)!r}{limit}))"
    )


def claimed(name: str, folder: str | Path, force: bool) -> AbstractContextManager[Held]:
    """A folder to write into, which an argument of that name gave."""
    checks.instance(name, folder, (str, Path), "give the name of a folder")
    return claim(possible(folder), checks.flag("force", force))
