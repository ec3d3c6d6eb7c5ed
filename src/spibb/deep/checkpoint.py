"""Arrays on disk: written whole or not at all, read without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spibb.checks import InputError


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz beside its place, then move it there: a reader never sees half a file."""
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: str | Path, kind: str) -> dict[str, np.ndarray]:
    """Read an .npz that `write_arrays` wrote with `kind=…`, or say what the file is."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError(f"{kind} {str(path)!r} does not exist: check the path") from None
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError) as error:
        raise InputError(
            f"{kind} {str(path)!r} cannot be read ({error}): it is damaged, or not one of ours"
        ) from None
    found = str(arrays.get("kind", "unknown"))
    if found != kind:
        raise InputError(f"{str(path)!r} holds a {found}, expected a {kind}: check the path")
    return arrays


@dataclass(frozen=True, eq=False)
class Progress:
    """How far training has come: rounds done, the networks' state, and the losses [T, K] so far."""

    rounds: int
    state: Any
    loss_rounds: tuple[int, ...]
    losses: tuple[np.ndarray, ...]


def save_progress(path: Path, progress: Progress, settings: Mapping[str, Any]) -> None:
    """Write a checkpoint; `settings` says what it may be resumed with."""
    leaves = jax.tree.leaves(progress.state)
    arrays = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    n_networks = len(leaves[0])
    write_arrays(
        path,
        {
            "kind": "checkpoint",
            "settings": json.dumps(settings),
            "rounds": progress.rounds,
            "loss_rounds": np.array(progress.loss_rounds, np.int64),
            "losses": np.array(progress.losses, np.float32).reshape(-1, n_networks),
            **arrays,
        },
    )


def load_progress(path: Path, template: Any, settings: Mapping[str, Any]) -> Progress:
    """Read a checkpoint made with the same settings; name the first that differs."""
    arrays = read_arrays(path, "checkpoint")
    stored = json.loads(str(arrays["settings"]))
    for name, mine in json.loads(json.dumps(settings)).items():
        if stored.get(name) != mine:
            raise InputError(
                f"checkpoint {str(path)!r} was made with {name} = {_short(stored.get(name))}, and "
                f"this run has {_short(mine)}: use the same configuration, or another file"
            )
    structure: Any = jax.tree.structure(template)
    leaves = [jnp.asarray(arrays[f"leaf_{i}"]) for i in range(structure.num_leaves)]
    return Progress(
        int(arrays["rounds"]),
        jax.tree.unflatten(structure, leaves),
        tuple(arrays["loss_rounds"].tolist()),
        tuple(arrays["losses"]),
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
