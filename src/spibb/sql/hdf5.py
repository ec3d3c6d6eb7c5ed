"""HDF5 files of other libraries as tables: d3rlpy's, those with flat arrays, and Minari's.

Nothing outside the file that was named is opened: links and datasets that lead to other files are
refused, and so is what claims to be larger than memory should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.checks import some
from spibb.errors import InputError, install

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 4 * 2**30
"""What the arrays of a file may take in memory."""
ENDS = ("timeouts", "episode_terminals", "truncations")
"""Arrays that say where the record of an episode was cut, or where an episode is over."""


def read_hdf5(path: Path) -> pa.Table:
    """The transitions of a file that d3rlpy wrote, or one with flat arrays, as D4RL's are."""
    h5py = _h5py(path)
    with h5py.File(path, "r") as file:
        check_inside(file, str(path))
        columns = _episodes(file, path) if "num_episodes" in file else _flat(file, path)
    return vectors_table(columns, repr(str(path)))


def _h5py(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError(
            f"cannot read {str(path)!r}: h5py is not installed: {install('minari')}"
        ) from None
    return h5py


def check_inside(group: Any, path: str) -> None:
    """Refuse links and data that are elsewhere, and arrays that are too large to be read."""
    import h5py

    size = 0
    waiting = [group]
    while waiting:
        inside = waiting.pop()
        for name in inside:
            link = inside.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise InputError(f"{path!r}: {name!r} is a link: copy the data that it points to")
            found = inside[name]
            if isinstance(found, h5py.Group):
                waiting.append(found)
                continue
            if found.external or found.is_virtual:
                raise InputError(
                    f"{path!r}: {name!r} keeps its data in other files: write all into one file"
                )
            size += found.nbytes
            if size > MOST_BYTES:
                raise InputError(
                    f"{path!r} unpacks to more than {MOST_BYTES / 2**30:.3g} GiB, our limit: write "
                    "it as .parquet"
                )


def _flat(file: Any, path: Path) -> dict[str, np.ndarray]:
    """Arrays of one length: observations, actions, rewards, terminals, and where records end."""
    for name in ("observations", "actions", "rewards", "terminals"):
        if name not in file:
            raise InputError(
                f"{str(path)!r} has no array {name!r}: it has {some(file)}; write it with d3rlpy, "
                "or as a table"
            )
    arrays = {name: file[name][()] for name in ("observations", "actions", "rewards", "terminals")}
    terminated = _flags(arrays["terminals"])
    cut = [_flags(file[name][()]) for name in ENDS if name in file]
    over = np.logical_or.reduce([terminated, *cut])
    _check_lengths({**arrays, "ends": over}, path)
    columns = {
        "episode_id": np.concatenate([[0], np.cumsum(over)[:-1]]),
        "state": arrays["observations"], "action": arrays["actions"],
        "reward": np.ravel(arrays["rewards"]), "terminated": terminated,
        "truncated": over & ~terminated,
    }  # fmt: skip
    if "next_observations" in file:
        columns["next_state"] = file["next_observations"][()]
    return {**columns, "step": _steps(columns["episode_id"])}


def _episodes(file: Any, path: Path) -> dict[str, np.ndarray]:
    """d3rlpy's second format: arrays of each episode, and whether it terminated."""
    number = int(file["num_episodes"][()])
    names = ("observations", "actions", "rewards", "terminated")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in (*names, "episode_id")}
    for i in range(number):
        arrays = {}
        for name in names:
            if f"{name}_{i}" not in file:
                raise InputError(
                    f"{str(path)!r} has no array '{name}_{i}', and {number} episodes: observations "
                    "of several parts are not read; write them as a table"
                )
            arrays[name] = np.asarray(file[f"{name}_{i}"][()])
        length = len(arrays["rewards"])
        arrays["terminated"] = (np.arange(length) == length - 1) & bool(arrays["terminated"])
        _check_lengths(arrays, path)
        for name in names:
            parts[name].append(arrays[name])
        parts["episode_id"].append(np.full(length, i))
    if number < 1:
        raise InputError(f"{str(path)!r} has no episodes: check what wrote it")
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    last = np.append(np.diff(joined["episode_id"]) != 0, True)
    return {
        "episode_id": joined["episode_id"], "step": _steps(joined["episode_id"]),
        "state": joined["observations"], "action": joined["actions"],
        "reward": np.ravel(joined["rewards"]), "terminated": joined["terminated"],
        "truncated": last & ~joined["terminated"],
    }  # fmt: skip


def _check_lengths(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    lengths = {name: len(array) for name, array in arrays.items() if np.ndim(array)}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"{str(path)!r} has arrays of different lengths, {lengths}: write it again"
        )


def _flags(array: Any) -> np.ndarray:
    return np.ravel(np.asarray(array)).astype(bool)


def _steps(episode: np.ndarray) -> np.ndarray:
    """The place of each row in its episode."""
    first = np.append(True, np.diff(episode) != 0)
    starts = np.flatnonzero(first)
    return np.arange(len(episode)) - np.repeat(starts, np.diff(np.append(starts, len(episode))))


def vectors_table(columns: Mapping[str, np.ndarray], name: str) -> pa.Table:
    """Arrays as the columns of a table; vectors become lists, which are labels of several parts."""
    import pyarrow as pa

    return pa.table(
        {key: _column(key, np.asarray(values), name) for key, values in columns.items()}
    )


def _column(key: str, array: np.ndarray, name: str) -> Any:
    import pyarrow as pa

    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind not in "biufSU" or array.ndim not in (1, 2) or 0 in array.shape:
        raise InputError(
            f"{name}: {key} is {array.dtype} of shape {array.shape}, expected numbers or vectors "
            "of them: make a table of what describes a state"
        )
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    flat = pa.array(np.ascontiguousarray(array).ravel())
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def read_minari(place: str) -> pa.Table:
    """The transitions of a Minari dataset: an id of one on this machine, or its folder."""
    dataset, name = _minari(place)
    parts: dict[str, list[np.ndarray]] = {
        key: [] for key in ("episode_id", "step", "state", "action", "reward", "next_state",
                            "terminated", "truncated")
    }  # fmt: skip
    for number, episode in enumerate(dataset.iterate_episodes()):
        seen, actions = episode.observations, episode.actions
        if isinstance(seen, dict | tuple) or isinstance(actions, dict | tuple):
            raise InputError(
                f"{name}: observations or actions have several parts: use spibb.from_minari in "
                "Python, with encode="
            )
        n = len(episode.rewards)
        rows = (np.full(n, number), np.arange(n), seen[:-1], actions, episode.rewards, seen[1:],
                episode.terminations, episode.truncations)  # fmt: skip
        for mine, values in zip(parts.values(), rows):
            mine.append(np.asarray(values))
    if not parts["state"]:
        raise InputError(f"{name} has no episodes: check its name")
    return vectors_table({key: np.concatenate(values) for key, values in parts.items()}, name)


def _minari(place: str) -> tuple[Any, str]:
    if not place:
        raise InputError("'minari:' names no dataset: write its id, as minari:lake/expert-v0")
    name = f"the Minari dataset {place!r}"
    try:
        from minari import MinariDataset
        from minari.storage.local import get_dataset_path
    except ImportError:
        raise InputError(
            f"cannot read {name}: Minari is not installed: {install('minari')}"
        ) from None
    folder = Path(place) if Path(place).is_dir() else Path(get_dataset_path(place))
    data = folder / "data" if (folder / "data").is_dir() else folder
    if not data.is_dir():
        raise InputError(
            f"{name} is not on this machine: get it with `minari download {place}`, or check "
            "the name"
        )
    for file in sorted(data.rglob("*.hdf5")):
        with _h5py(file).File(file, "r") as opened:
            check_inside(opened, str(file))
    return MinariDataset(data), name
