"""A policy for use elsewhere: one file, SQL, rules, or a tree."""

from __future__ import annotations

from pathlib import Path

from spibb.checks import choice, flag, takes
from spibb.errors import InputError
from spibb.files import write_text
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.prose import prose_of
from spibb.serving.sql_case import DIALECTS, sql_of
from spibb.serving.tree import DEPTH, tree_text
from spibb.sql.writing import check_free

KINDS = ("file", "sql", "rules", "tree")


@takes(loaded=LoadedPolicy, out=(str, Path), table=(type(None), str), uniform=(type(None), str))
def export_policy(
    loaded: LoadedPolicy,
    kind: str,
    out: str | Path,
    *,
    dialect: str | None = None,
    table: str | None = None,
    uniform: str | None = None,
    deterministic: bool = False,
    depth: int | None = None,
    force: bool = False,
) -> Path:
    """Write a policy for use elsewhere.

    Parameters:
        loaded: a policy, from `load_policy`.
        kind: ``"file"`` (one ``.spibb`` file with everything and a hash), ``"sql"`` (a SELECT with
            CASE), ``"rules"`` (for people), or ``"tree"`` (a decision tree with its fidelity).
        out: the file to write.
        dialect: of SQL: ``"duckdb"`` (the default) or ``"postgres"``.
        table: SQL: the table of cases; ``cases`` if not given.
        uniform: SQL: the column with a number in [0, 1) per row that draws; random() if not given.
        deterministic: SQL and rules: the most probable action instead of draws.
        depth: of the tree; 4 if not given.
        force: overwrite an existing file.

    Returns:
        The path of the file.

    >>> _ = spibb.run(log, "improved", baseline=baseline, n_wedge=1, force=True)
    >>> loaded = spibb.load_policy("improved")
    >>> spibb.export_policy(loaded, "file", "policy.spibb", force=True).name
    'policy.spibb'
    """
    choice("kind (--as)", kind, KINDS)
    flag("deterministic", deterministic)
    flag("force", force)
    path = Path(out)
    check_free(path, force=force)
    _check_options(
        kind, dialect=dialect, table=table, uniform=uniform, depth=depth,
        deterministic=deterministic or None,
    )  # fmt: skip
    if kind == "file":
        loaded.save(path)
    elif kind == "sql":
        dialect = next(iter(DIALECTS)) if dialect is None else dialect
        text = sql_of(
            loaded, dialect=dialect, table=table or "cases", uniform=uniform,
            deterministic=deterministic,
        )  # fmt: skip
        write_text(path, text)
    elif kind == "rules":
        write_text(path, prose_of(loaded, deterministic=deterministic))
    else:
        write_text(path, tree_text(loaded, depth=DEPTH if depth is None else depth))
    return path


TAKES = {
    "file": (),
    "sql": ("dialect", "table", "uniform", "deterministic"),
    "rules": ("deterministic",),
    "tree": ("depth",),
}
"""Which options each kind has."""


def _check_options(kind: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None and name not in TAKES[kind]:
            kinds = " and ".join(other for other in KINDS if name in TAKES[other])
            raise InputError(f"{name} is for {kinds}, and not for {kind}: leave it out")
        if isinstance(value, str) and not value:
            raise InputError(f"{name} is empty: give a name, or leave it out")
