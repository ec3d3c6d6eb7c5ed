"""The part of `spibb.run` that is about vectors: read, train, judge, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spibb import checks
from spibb.deep.checkpoint import read_arrays
from spibb.deep.improving import VectorDQN, improve_vectors
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.proposals import propose_passes
from spibb.deep.vector_policy import KIND
from spibb.defaults import DELTA
from spibb.errors import InputError
from spibb.ingest.assumptions import assumptions
from spibb.ingest.mapping import ColumnMap
from spibb.ingest.vectors import VectorLog, open_vectors
from spibb.log import Log
from spibb.names import DQN
from spibb.report.origin import Origin
from spibb.report.vectors import VectorAssessment, write_vectors
from spibb.running.results import VectorRun
from spibb.sql.sources import Source
from spibb.tables import Stage

ESTIMATE, RECORDED = "estimate", "recorded"
HOLDOUT = 0.3
UPDATE = 1e-4
"""Seconds of an update with 32 transitions, roughly."""
LONG = 20.0
"""Seconds of training from which on it is said how long it will take."""


@dataclass(frozen=True)
class VectorWork:
    """What to train, and how to judge it; `spibb.run` says what each field means."""

    settings: VectorDQN
    baseline: SoftmaxBaseline | None
    recorded: bool
    discount: float
    holdout: float
    delta: float
    seed: int
    checkpoint: str | Path | None
    announce: Callable[[str], None] | None

    @classmethod
    def of(
        cls, algorithm: Any, options: Mapping[str, Any], *, baseline: Any, discount: float,
        holdout: float | None, delta: float | None, seed: int, checkpoint: str | Path | None,
        announce: Callable[[str], None] | None, **others: Any,
    ) -> VectorWork:  # fmt: skip
        """Check all that was asked for, before anything is read."""
        for name, value in others.items():
            if value:
                raise InputError(f"{name} applies to tables only, not to dqn: leave it out")
        _check_checkpoint(checkpoint)
        return cls(
            settings_of(algorithm, options), _baseline(baseline), _named(baseline) == RECORDED,
            checks.discount(discount),
            HOLDOUT if holdout is None else checks.number("holdout", holdout, 0, 1, "[)"),
            DELTA if delta is None else checks.delta(delta), checks.seed(seed), checkpoint,
            announce,
        )  # fmt: skip

    def assess(
        self, source: Any, reading: Mapping[str, Any], origin: Callable[[], Origin], tell: Stage
    ) -> tuple[VectorAssessment, None]:
        """Read the log, train, and judge; nothing looks at states that are vectors."""
        log, found, read = _read(source, reading, tell)
        if self.recorded and log.action_prob is None:
            raise InputError(
                "baseline is 'recorded', and the log has no column action_prob: name the column, "
                "or leave baseline out to clone the policy from the logged actions"
            )
        cost = cost_of(self.settings, len(log) * (1 - self.holdout))
        if self.announce is not None and cost:
            self.announce(cost)
        result = improve_vectors(
            log, self.settings, baseline=self.baseline, discount=self.discount,
            holdout=self.holdout, delta=self.delta, seed=self.seed, progress=tell,
            checkpoint=self.checkpoint,
        )  # fmt: skip
        return VectorAssessment(result, found, origin(), read), None

    def write(self, assessment: VectorAssessment, folder: Path) -> None:
        """Write all files of the result."""
        write_vectors(assessment, folder)

    def done(
        self, assessment: VectorAssessment, inspection: None, folder: Path | None
    ) -> VectorRun:
        """What `run` returns."""
        return VectorRun(assessment, folder)


def _read(source: Any, reading: Mapping[str, Any], tell: Stage) -> tuple[VectorLog, Any, Any]:
    """The log, what was assumed about it, and how it was read."""
    bins = reading.get("bins")
    if bins:
        raise InputError(
            f"bins cut the column {next(iter(bins))!r}, and dqn takes it as a number: leave them "
            "out, or choose another algorithm"
        )
    if isinstance(source, VectorLog):
        return source, (), None
    if isinstance(source, Log):
        raise InputError(
            "the source is a Log, whose states are labels, and dqn learns from numbers: give the "
            "table, or what spibb.read_vectors read"
        )
    others = {name: value for name, value in reading.items() if name != "bins"}
    table = open_vectors(source, progress=lambda share: tell("reading", share), **others)
    return table.log(), assumptions(table), ColumnMap.read_by(table)


def settings_of(algorithm: Any, options: Mapping[str, Any]) -> VectorDQN:
    """How to train: as configured, or by the options of a name."""
    if isinstance(algorithm, VectorDQN):
        if options:
            raise InputError(
                f"{next(iter(options))} is given with a configured VectorDQN: give options to "
                "its constructor"
            )
        return algorithm
    checks.options(DQN, VectorDQN, options)
    return VectorDQN(**options)


def cost_of(settings: VectorDQN, n_transitions: float) -> str | None:
    """How long training will take, in a sentence, where that is long."""
    passes = settings.passes or propose_passes(max(int(n_transitions), 1))
    updates = passes * n_transitions / settings.batch_size
    seconds = updates * UPDATE * max(settings.batch_size / 32, 0.5)
    if seconds < LONG:
        return None
    about = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    return (
        f"Training takes about {about}: {passes:,} passes over {int(n_transitions):,} transitions, "
        f"{updates:,.0f} updates; --option passes=… makes fewer, --checkpoint FILE survives a stop"
    )


def _named(given: Any) -> str | None:
    """What a baseline is called, where it is a name."""
    return str(Source.of(given).place) if isinstance(given, str | Path | Source) else None


def _baseline(given: Any) -> SoftmaxBaseline | None:
    if given is None or isinstance(given, SoftmaxBaseline) or _named(given) in (ESTIMATE, RECORDED):
        return given if isinstance(given, SoftmaxBaseline) else None
    name = _named(given)
    path = None if name is None else Source.of(given).path
    if path is None or path.suffix.lower() != ".npz" or path.is_dir():
        raise InputError(
            f"baseline {name or type(given).__name__!r} is not an .npz file: dqn takes what "
            "SoftmaxBaseline.save wrote; leave it out to clone the current policy from the log"
        )
    if path.is_file() and _kind(path) == KIND:
        raise InputError(
            f"baseline {str(path)!r} was made by dqn and cannot be a baseline itself: leave it "
            "out, so that it is cloned from its log (best with a column action_prob)"
        )
    return SoftmaxBaseline.load(path)


def _kind(path: Path) -> str:
    try:
        read_arrays(path, KIND, {})
    except InputError:
        return ""
    return KIND


def _check_checkpoint(path: str | Path | None) -> None:
    if path is None:
        return
    path = Path(path)
    if path.suffix != ".npz" or not path.absolute().parent.is_dir() or path.is_dir():
        raise InputError(f"checkpoint {str(path)!r} must name an .npz file in a folder that exists")
