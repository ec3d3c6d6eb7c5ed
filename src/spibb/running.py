"""From any log to a policy, what is known about it, and a folder: in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from spibb import checks
from spibb.algorithms import Algorithm, Improvement, configured
from spibb.algorithms.baselines import is_of_log
from spibb.arrays import release_memory
from spibb.binning import Bins, Request
from spibb.defaults import DISCOUNT
from spibb.errors import InputError, masked
from spibb.estimate import Baseline
from spibb.files import Held, write_text
from spibb.handling import ERROR
from spibb.ingest import open_log
from spibb.ingest.inspection import Finding, Inspection, inspect_log
from spibb.ingest.mapping import ColumnMap, ColumnNames
from spibb.log import Log
from spibb.names import DQN
from spibb.pipeline import hold_out, load_problem
from spibb.policies import need_deep
from spibb.report.assessment import Assessment, assess
from spibb.report.folder import claim, write_result
from spibb.report.origin import Origin
from spibb.report.page import render
from spibb.sceptic import doubts
from spibb.showing import Shown
from spibb.sql.sources import Source
from spibb.tables import Stage
from spibb.verdict import Verdict

if TYPE_CHECKING:
    from spibb.deep.improving import VectorDQN, VectorImprovement
    from spibb.deep.policy import SoftmaxBaseline
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


@overload
def run(  # type: ignore[overload-overlap]  # a name that is known to be "dqn"
    source: Any,
    out: str | Path | None = None,
    *,
    algorithm: Literal["dqn"] | VectorDQN | type[VectorDQN],
    baseline: SoftmaxBaseline | str | Path | Source | None = None,
    **others: Any,
) -> VectorRun: ...


@overload
def run(
    source: Any,
    out: str | Path | None = None,
    *,
    baseline: Baseline | str | Path | Source | None = None,
    algorithm: str | type[Algorithm] | Algorithm = "pi-b",
    columns: ColumnNames | None = None,
    bins: Mapping[str, Request | Bins] | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
    discount: float = DISCOUNT,
    delta: float | None = None,
    v_max: float | None = None,
    holdout: float | None = None,
    seed: int = 0,
    sceptic: bool = False,
    force: bool = False,
    spreadsheet_safe: bool = False,
    checkpoint: str | Path | None = None,
    progress: Stage | None = None,
    announce: Callable[[str], None] | None = None,
    command: str | None = None,
    **options: Any,
) -> Run: ...


def run(  # noqa: PLR0913 (one parameter per option of the command line)
    source: Any,
    out: str | Path | None = None,
    *,
    baseline: Any = None,
    algorithm: Any = "pi-b",
    columns: ColumnNames | None = None,
    bins: Mapping[str, Request | Bins] | None = None,
    bandit: bool = False,
    missing: str = ERROR,
    duplicates: str = ERROR,
    discount: float = DISCOUNT,
    delta: float | None = None,
    v_max: float | None = None,
    holdout: float | None = None,
    seed: int = 0,
    sceptic: bool = False,
    force: bool = False,
    spreadsheet_safe: bool = False,
    checkpoint: str | Path | None = None,
    progress: Stage | None = None,
    announce: Callable[[str], None] | None = None,
    command: str | None = None,
    **options: Any,
) -> Run | VectorRun:
    """Improve a policy from its log and write the result, as ``spibb improve`` does.

    Rows are read once. A log of more than 2,000,000 rows is only counted, unless the algorithm
    needs the episodes.

    Parameters:
        source: a `Log` (or for ``"dqn"`` a `VectorLog`), or whatever `open_log` takes: a file, a
            pattern, a folder, a list of these, a `Source`, a dataframe, a DuckDB relation, an Ibis
            table.
        out: folder for policy.csv, policy.parquet, policy.json, summary.json, report.html … (of
            ``"dqn"``: policy.npz and policy.onnx), which appear all at once; None writes nothing.
        baseline: the policy that made the log: a file, or what `Problem.from_log` takes, where
            ``"estimate:SMOOTHING"`` estimates it with a smoothing. None takes the log's
            `action_prob`, and estimates the baseline where there is none. ``"dqn"`` takes a
            `spibb.deep.SoftmaxBaseline`, or a file of one, and clones it where there is none.
        algorithm: a registry name, an import path, a class, or a configured algorithm; or
            ``"dqn"``, which trains a network on the numbers of the state's columns.
        columns: our column names mapped to yours, as in `count_log`.
        bins: numeric columns to cut, as in `count_log`.
        bandit: whether every row is an episode of one step that ends.
        missing: ``"error"``, ``"as-level"`` or ``"drop"``, as in `count_log`.
        duplicates: ``"error"`` or ``"drop"``, as in `count_log`.
        discount: γ in [0, 1); it does not matter where every episode has one step.
        delta: failure probability of the certificate and of the other bounds; 0.05, or the
            algorithm's own where it certifies.
        v_max: largest absolute return; derived from the rewards if None.
        holdout: share of the episodes that trains nothing and tests the result; 0 keeps none apart.
            None is 0, and 0.3 for ``"dqn"``.
        seed: seed of the posterior draws and of the split.
        sceptic: ask what a sceptic would (`spibb.sceptic`), which takes some ten seconds.
        force: write into a folder that is not empty.
        spreadsheet_safe: put an apostrophe before labels that a spreadsheet might execute.
        checkpoint: for ``"dqn"``, an .npz file that keeps the training: a stopped run continues.
        progress: called with the stage of the work and the share that is done, from 0 to 1.
        announce: called with a sentence on how long the work will take, if it is long.
        command: what the report shows as the way to make the result again; this call if None.
        options: options of the algorithm, such as ``n_wedge=10``.

    Returns:
        The improvement, its assessment, the inspection of the log, and the folder: a `Run`, or for
        ``"dqn"`` a `VectorRun`, which has no inspection.

    >>> done = spibb.run(log, "improved", baseline=baseline, discount=0.9, n_wedge=1, force=True)
    >>> done.folder.name, done.assessment.verdict.grade
    ('improved', <Grade.NOT_SUPPORTED: 'not supported'>)
    """
    reading = {"columns": columns, "bins": bins, "bandit": bandit, "missing": missing,
               "duplicates": duplicates}  # fmt: skip
    asked = {"delta": delta, "v_max": v_max, "holdout": holdout, "seed": checks.seed(seed),
             "sceptic": checks.flag("sceptic", sceptic),
             "spreadsheet_safe": checks.flag("spreadsheet_safe", spreadsheet_safe)}  # fmt: skip
    checks.discount(discount)  # also where it does not matter
    work = _work(algorithm)(
        algorithm, options, baseline=baseline, discount=0.0 if bandit else discount,
        checkpoint=checkpoint, announce=announce, **asked,
    )  # fmt: skip
    named = {"baseline": baseline, "algorithm": algorithm, **reading, "discount": discount, **asked,
             "holdout": holdout or None}  # fmt: skip
    shown = command or _call(source, out, **_told(named), **options)

    def origin() -> Origin:
        return Origin.of(shown, seed, [*_files("log", source), *_baseline_file(baseline)])

    tell = progress or (lambda stage, share: None)
    with nullcontext() if out is None else _claimed("out", out, force) as held:
        tell("reading", 0.0)
        assessment, inspection = work.assess(source, reading, origin, tell)
        if held is not None:
            tell("writing", 0.0)
            held.publish(lambda aside: work.write(assessment, aside))
    folder = None if held is None else held.folder
    return (
        VectorRun(assessment, folder) if inspection is None else Run(assessment, inspection, folder)
    )


def _work(algorithm: Any) -> Callable[..., Any]:
    """What does the work of an algorithm: on labels, or on vectors."""
    kind = algorithm if isinstance(algorithm, type) else type(algorithm)
    named = isinstance(algorithm, str) and algorithm.lower() == DQN
    if not named and not getattr(kind, "learns_from_vectors", False):
        return TableWork.of
    need_deep()
    from spibb.vector_running import VectorWork

    return VectorWork.of


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
        apart = 0.0 if holdout is None else checks.number("holdout", holdout, 0, 1, "[)")
        return cls(chosen, baseline, discount, apart, sure, seed, v_max, sceptic, spreadsheet_safe)

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
        inspection = inspect_log(table, problem.counts, problem.log)
        read = None if in_memory else ColumnMap.read_by(table)
        del table  # and with it what the engine holds in memory
        release_memory()
        made = origin()
        tell("improving", 0.0)
        apart = self.holdout
        kept, held_out = hold_out(problem, apart, self.seed) if apart else (problem, None)
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


def save_result(
    result: Improvement, folder: str | Path, delta: float | None, seed: int, force: bool, safe: bool
) -> Path:
    """What `Improvement.save` does, where the report is known."""
    with _claimed("folder", folder, force) as held:
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
    looked = () if problem.log is None else inspect_log(problem.log, problem.counts).findings
    command = (
        f"{result.algorithm!r}.improve(Problem.from_log(log, baseline, "
        f"discount={problem.discount:g}, v_max={problem.v_max:g}))"
    )
    return assess(result, Origin.of(command, checks.seed(seed)), delta=delta, findings=looked)


def _claimed(name: str, folder: str | Path, force: bool) -> AbstractContextManager[Held]:
    checks.instance(name, folder, (str, Path), "give the name of a folder")
    return claim(Path(folder), checks.flag("force", force))


def _files(role: str, given: Any) -> list[tuple[str, Any]]:
    """The sources behind an argument; none where it is in memory."""
    if isinstance(given, str | Path | Source):
        return [(role, given)]
    several = isinstance(given, list | tuple) and all(isinstance(g, str | Path) for g in given)
    return [(role, one) for one in given] if several else []


def _baseline_file(given: Any) -> list[tuple[str, Any]]:
    """The file of a baseline; none where it was estimated."""
    return [] if is_of_log(given) else _files("baseline", given)


def _told(named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say something: not false, and not what raises an error by default."""
    usual = (False, ERROR)
    return {
        name: value
        for name, value in named.items()
        if not (isinstance(value, bool | str) and value in usual)
    }


def _call(*given: Any, **named: Any) -> str:
    """A call of `spibb.run` as it is written; what is in memory is shown by its type."""
    parts = [_written(value) for value in given]
    parts += [f"{name}={_written(value)}" for name, value in named.items() if value is not None]
    return f"spibb.run({', '.join(parts)})"


def _written(value: Any) -> str:
    if isinstance(value, Path):
        return checks.shown(str(value))
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, str):
        return checks.shown(masked(value))
    plain = isinstance(value, Source | int | float | list | tuple | dict | Algorithm | None)
    return checks.shown(value) if plain else f"<{type(value).__name__}>"
