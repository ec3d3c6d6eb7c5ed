"""Arrays on disk: written whole or not at all, read without pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spibb.errors import InputError
from spibb.files import write_whole
from spibb.loading import (
    Form,
    Place,
    anything,
    array,
    check,
    described,
    parse_json,
    read_npz,
    record,
    table_of,
)


def write_arrays(path: str | Path, arrays: Mapping[str, Any]) -> Path:
    """Write an .npz file whole, with the hash of what is in it; its path."""
    named = {name: np.asarray(value) for name, value in arrays.items()}

    def write(place: Path) -> None:
        with place.open("wb") as file:
            np.savez(file, **named, **{HASH: digest(named)})  # type: ignore[arg-type]

    write_whole(Path(path), write)
    return Path(path)


HASH = "sha256"
"""The entry that has the hash of all others."""


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of named arrays: names, types, shapes and contents."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        found.update(value.tobytes())
    return found.hexdigest()


REMEDY = "it is damaged, or not one of ours; name another file"


def read_arrays(path: str | Path, kind: str, forms: Mapping[str, Form]) -> dict[str, np.ndarray]:
    """Read an .npz that `write_arrays` wrote with `kind=…`, or say what the file is."""
    what = f"{kind} {str(path)!r}"
    arrays = read_npz(path, record({}, {"kind": array("U")}, more=True), what, REMEDY)
    found = str(arrays.get("kind", "unknown"))
    if found != kind:
        raise InputError(f"{str(path)!r} holds {found!r}, expected a {kind}: check the path")
    _check_hash(arrays, what, required=kind == "policy")
    check(arrays, record(forms, more=True), Place(what, REMEDY))
    return arrays


def _check_hash(arrays: dict[str, np.ndarray], what: str, *, required: bool) -> None:
    """Refuse arrays that are not those which were written."""
    stored = arrays.pop(HASH, None)
    if stored is None and required:
        raise InputError(f"{what} has no {HASH!r}: it is damaged or incomplete; write it again")
    if stored is not None and str(stored) != digest(arrays):
        raise InputError(f"{what} was changed after it was written, as its hash shows: restore it")


CHECKPOINT = {
    "settings": array("U"),
    "rounds": array("iu"),
    "loss_rounds": array("iu", 1),
    "losses": array("f", 2),
}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """How far training has come: rounds done, the networks' state, and the losses [T, K] so far."""

    rounds: int
    state: Any
    loss_rounds: tuple[int, ...]
    losses: tuple[np.ndarray, ...]


def save_snapshot(path: Path, snapshot: Snapshot, settings: Mapping[str, Any]) -> None:
    """Write a checkpoint; `settings` says what it may be resumed with."""
    leaves = jax.tree.leaves(snapshot.state)
    arrays = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    n_networks = len(leaves[0])
    write_arrays(
        path,
        {
            "kind": "checkpoint",
            "settings": json.dumps(settings),
            "rounds": snapshot.rounds,
            "loss_rounds": np.array(snapshot.loss_rounds, np.int64),
            "losses": np.array(snapshot.losses, np.float32).reshape(-1, n_networks),
            **arrays,
        },
    )


def load_snapshot(path: Path, template: Any, settings: Mapping[str, Any]) -> Snapshot:
    """Read a checkpoint made with the same settings; name the first that differs."""
    arrays = read_arrays(path, "checkpoint", CHECKPOINT)
    what = f"checkpoint {str(path)!r}"
    stored = parse_json(str(arrays["settings"]), table_of(anything()), f"{what}: settings", REMEDY)
    for name, mine in parse_json(
        json.dumps(settings), table_of(anything()), "settings", ""
    ).items():
        if stored.get(name) != mine:
            raise InputError(
                f"checkpoint {str(path)!r} was made with {name} = {_short(stored.get(name))}, and "
                f"this run has {_short(mine)}: use the same configuration, or another file"
            )
    leaves, structure = jax.tree.flatten(template)
    names = {f"leaf_{i}": leaf for i, leaf in enumerate(leaves)}
    check(arrays, record({name: _like(leaf) for name, leaf in names.items()}, more=True),
          Place(what, REMEDY))  # fmt: skip
    leaves = [jnp.asarray(arrays[name]) for name in names]
    return Snapshot(
        int(arrays["rounds"]),
        jax.tree.unflatten(structure, leaves),
        tuple(arrays["loss_rounds"].tolist()),
        tuple(arrays["losses"]),
    )


def _like(leaf: Any) -> Form:
    """An array of the type and the shape of another."""
    return Form(
        f"{leaf.dtype} of shape {leaf.shape}",
        lambda value: (value.dtype, value.shape) == (leaf.dtype, leaf.shape),
        describe=described,
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
