"""From a log of vectors where it lies to a trained policy and a folder: in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spibb import checks
from spibb.deep.checkpoint import read_arrays
from spibb.deep.improving import VectorDQN, VectorImprovement, improve_vectors
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.proposals import propose_passes
from spibb.deep.vector_policy import KIND
from spibb.errors import InputError
from spibb.ingest.vectors import read_vectors
from spibb.report.folder import claim
from spibb.report.origin import Origin
from spibb.report.vectors import write_vectors
from spibb.sql.sources import Source
from spibb.tables import Stage

ESTIMATE = "estimate"
UPDATE = 1e-4
"""Seconds of an update with 32 transitions, roughly."""
LONG = 20.0
"""Seconds of training from which on it is said how long it will take."""


def run_vectors(  # noqa: PLR0913 (one parameter per option of the command line)
    source: Any,
    out: str | Path,
    settings: VectorDQN | None = None,
    *,
    baseline: str | Path | Source | SoftmaxBaseline | None = None,
    reading: Mapping[str, Any] | None = None,
    discount: float = 0.95,
    holdout: float = 0.3,
    delta: float = 0.05,
    seed: int = 0,
    force: bool = False,
    checkpoint: str | Path | None = None,
    progress: Stage | None = None,
    announce: Callable[[str], None] | None = None,
    command: str = "spibb.vector_running.run_vectors(…)",
) -> VectorImprovement:
    """Train SPIBB-DQN on a log of vectors and write the result: ``improve --algorithm dqn``.

    Parameters:
        source: whatever `read_vectors` takes.
        out: folder for policy.npz, policy.onnx, summary.json, report.html, which appear at once.
        settings: how to train; what it leaves open is proposed from the data.
        baseline: the policy that made the log: a file that `SoftmaxBaseline.save` wrote, or the
            policy; None or "estimate" clones it from the log.
        reading: columns, and how rows are handled, as keywords of `read_vectors`.
        discount: γ in [0, 1).
        holdout: share of the episodes that trains nothing and tests the result.
        delta: failure probability of the lower bounds.
        seed: seed of training and split.
        force: write into a folder that is not empty.
        checkpoint: a file that keeps the state of training.
        progress: told stage and share.
        announce: told a sentence on how long it will take, where it takes long.
        command: what the report shows as the way to make the result again.

    Returns:
        The policy with what is known about it.
    """
    settings = VectorDQN() if settings is None else settings
    tell = progress or (lambda stage, share: None)
    given = _baseline(baseline)
    checks.discount(discount)
    checks.number("holdout", holdout, 0, 1, "[)")
    _check_checkpoint(checkpoint)
    with claim(Path(out), force) as held:
        tell("reading", 0)
        log = read_vectors(source, progress=lambda share: tell("reading", share), **(reading or {}))
        if announce is not None and (cost := cost_of(settings, len(log) * (1 - holdout))):
            announce(cost)
        result = improve_vectors(
            log, settings, baseline=given, discount=discount, holdout=holdout, delta=delta,
            seed=seed, progress=progress, checkpoint=checkpoint,
        )  # fmt: skip
        files = [("log", source), ("baseline", baseline if given else None)]
        known = [(role, path) for role, path in files if isinstance(path, str | Path | Source)]
        origin = Origin.of(command, seed, known)
        tell("writing", 0)
        held.publish(lambda aside: write_vectors(result, origin, aside))
    return result


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


def _baseline(given: str | Path | Source | SoftmaxBaseline | None) -> SoftmaxBaseline | None:
    if given is None or isinstance(given, SoftmaxBaseline):
        return given
    source = Source.of(given)
    path = source.path
    if str(source.place) == ESTIMATE:
        return None
    if path is None or path.suffix.lower() != ".npz" or path.is_dir():
        raise InputError(
            f"baseline {str(source.place)!r} is not an .npz file: dqn takes what "
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
