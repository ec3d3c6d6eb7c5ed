"""From any log to a policy, what is known about it, and a folder: in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from spibb import checks
from spibb.algorithms import Algorithm
from spibb.behaviour import Baseline
from spibb.binning import Bins, Request
from spibb.defaults import DISCOUNT
from spibb.ingest.mapping import ColumnNames
from spibb.irregular_tables import ERROR
from spibb.names import DQN
from spibb.report.origin import Origin
from spibb.running.results import Run, VectorRun
from spibb.running.saving import claimed
from spibb.running.shown_call import baseline_files, files_of, shown_call, telling
from spibb.running.table_work import TableWork
from spibb.sql.sources import Source
from spibb.stored_policies import need_deep
from spibb.tables import Stage

if TYPE_CHECKING:
    from spibb.deep.improving import VectorDQN
    from spibb.deep.policy import SoftmaxBaseline

__all__ = ["Run", "VectorRun", "run"]


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


@checks.takes(command=(type(None), str))
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

    `delta` and `seed` are of the verdict. `auto` and `certified` answer at the same `delta`. An
    algorithm that has a `seed` of its own, or another `delta`, keeps it: give it configured to set
    it, as in ``algorithm=spibb.Auto(seed=3)``.

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
        sceptic: ask what a sceptic would (`spibb.sceptic`), which takes some seconds.
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
    checks.callable_("progress", progress, "progress=lambda stage, share: print(stage, share)")
    checks.callable_("announce", announce, "announce=print")
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
    shown = command or shown_call(source, out, **telling(named), **options)

    def origin() -> Origin:
        return Origin.of(shown, seed, [*files_of("log", source), *baseline_files(baseline)])

    tell = progress or (lambda stage, share: None)
    with nullcontext() if out is None else claimed("out", out, force) as held:
        tell("reading", 0.0)
        assessment, inspection = work.assess(source, reading, origin, tell)
        if held is not None:
            tell("writing", 0.0)
            held.publish(lambda aside: work.write(assessment, aside))
    return work.done(assessment, inspection, None if held is None else held.folder)


def _work(algorithm: Any) -> Callable[..., Any]:
    """What does the work of an algorithm: on labels, or on vectors."""
    kind = algorithm if isinstance(algorithm, type) else type(algorithm)
    named = isinstance(algorithm, str) and algorithm.lower() == DQN
    if not named and not getattr(kind, "learns_from_vectors", False):
        return TableWork.of
    need_deep()
    from spibb.running.vector_work import VectorWork

    return VectorWork.of
