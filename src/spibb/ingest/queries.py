"""The SQL that counts a log: one text for every engine, in DuckDB's dialect.

Every query reads a table called `log`. Nothing that a user writes becomes part of a query but
quoted column names and the numbers of bin edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spibb.binning import Bins
from spibb.checks import InputError
from spibb.columns import FLAGS
from spibb.ingest.engines import FLAG, INTEGER, NUMBER, OTHER, TEXT, TIME, Engine, quoted

STEP_NUMBER, STEP_TIME = "DECIMAL(38, 9)", "TIMESTAMP"
"""How steps written as text are read: exactly, unlike floats; or as times."""


@dataclass(frozen=True)
class Expressions:
    """SQL expressions for the columns of a log; labels may span several columns."""

    episode: str
    step: str
    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...]
    reward: str
    terminated: str
    truncated: str | None
    action_prob: str | None

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys of the aggregation besides the end flag."""
        return (*self.state, *self.action, *self.next_state)

    @property
    def ends(self) -> tuple[str, ...]:
        """The end flags that there are."""
        return (self.terminated,) if self.truncated is None else (self.terminated, self.truncated)


def expressions(
    engine: Engine,
    names: Mapping[str, tuple[str, ...]],
    bins: Mapping[str, Bins],
    step_type: str = STEP_NUMBER,
) -> Expressions:
    """Expressions that type and bin the caller's columns."""
    read = Reader(engine, bins, step_type)
    return Expressions(
        episode=read.label(_only(names, "episode_id")),
        step=read.step(_only(names, "step")),
        state=tuple(read.label(column) for column in names["state"]),
        action=tuple(read.label(column) for column in names["action"]),
        next_state=tuple(
            read.label(column, like) for column, like in zip(names["next_state"], names["state"])
        ),
        reward=read.number(_only(names, "reward"), "reward"),
        terminated=read.flag(_only(names, "terminated")),
        truncated=read.flag(names["truncated"][0]) if names["truncated"] else None,
        action_prob=(
            read.number(names["action_prob"][0], "action_prob") if names["action_prob"] else None
        ),
    )


def _only(names: Mapping[str, tuple[str, ...]], name: str) -> str:
    if len(names[name]) > 1:
        raise InputError(f"{name} spans {len(names[name])} columns, expected one: map one")
    return names[name][0]


@dataclass(frozen=True)
class Reader:
    """Expressions for one engine's columns by their kinds."""

    engine: Engine
    bins: Mapping[str, Bins]
    step_type: str = STEP_NUMBER

    def label(self, column: str, like: str | None = None) -> str:
        """A label, binned like `like` where that column is."""
        bins = self.bins.get(column) or self.bins.get(like or column)
        if self.engine.kinds[column] == OTHER:
            raise InputError(
                f"column {column!r} mixes types or is nested: make every value a string, or a "
                "whole number"
            )
        return quoted(column) if bins is None else bins.sql(self.number(column, column))

    def number(self, column: str, name: str) -> str:
        """A double, NULL where text is no number."""
        kind = self.engine.kinds[column]
        if kind == TEXT and self.engine.casts_text:
            return f"TRY_CAST({quoted(column)} AS DOUBLE)"
        if kind == FLAG:
            return f"CASE WHEN {quoted(column)} THEN 1.0 WHEN NOT {quoted(column)} THEN 0.0 END"
        if kind not in (INTEGER, NUMBER):
            raise InputError(
                f"{name} is {kind} in column {column!r}, expected numbers: cast the column, or map "
                "another"
            )
        return f"CAST({quoted(column)} AS DOUBLE)"

    def step(self, column: str) -> str:
        """What sorts an episode: a number or a time."""
        kind = self.engine.kinds[column]
        if kind in (INTEGER, NUMBER, TIME):
            return quoted(column)
        if kind == TEXT and self.engine.casts_text:
            return f"TRY_CAST({quoted(column)} AS {self.step_type})"
        raise InputError(
            f"step is {kind} in column {column!r}, expected numbers or times: cast the column, or "
            "map another"
        )

    def flag(self, column: str) -> str:
        """A boolean, NULL where the value is neither."""
        kind, name = self.engine.kinds[column], quoted(column)
        if kind == FLAG:
            return name
        if kind in (INTEGER, NUMBER):
            return f"CASE WHEN {name} = 1 THEN TRUE WHEN {name} = 0 THEN FALSE END"
        if kind == TEXT:
            words = {wanted: [f"'{w}'" for w, value in FLAGS.items() if value is wanted]
                     for wanted in (True, False)}  # fmt: skip
            yes, no = ", ".join([*words[True], "'1.0'"]), ", ".join([*words[False], "'0.0'"])
            word = f"LOWER({name})"
            return f"CASE WHEN {word} IN ({yes}) THEN TRUE WHEN {word} IN ({no}) THEN FALSE END"
        raise InputError(f"column {column!r} is {kind}, expected true/false or 0/1: cast it")


def profile_query(x: Expressions, columns: tuple[str, ...]) -> tuple[list[str], str]:
    """Names and values: rows, how many values can be read, how many are there, and ranges.

    Parquet files answer this from their footers.
    """
    parts = {
        "rows": "COUNT(*)", "low": f"MIN({x.reward})", "high": f"MAX({x.reward})",
        "first": f"MIN({x.step})", "step": f"COUNT({x.step})", "reward": f"COUNT({x.reward})",
        "terminated": f"COUNT({x.terminated})",
    }  # fmt: skip
    if x.truncated is not None:
        parts["truncated"] = f"COUNT({x.truncated})"
    if x.action_prob is not None:
        prob = x.action_prob
        parts |= {"action_prob": f"COUNT({prob})", "least": f"MIN({prob})", "most": f"MAX({prob})"}
    parts |= {f"label {i}": f"COUNT({part})" for i, part in enumerate((*x.state, *x.action))}
    parts |= {f"column {column}": f"COUNT({quoted(column)})" for column in columns}
    return list(parts), f"SELECT {_aliased(list(parts.values()))} FROM log"


def outcomes_query(x: Expressions, first: str) -> str:
    """N, Σr, Σr² and Σ(step − first) for each outcome as it is written, in one pass.

    Outcomes are (state, action, next state, terminated[, truncated]). The last sum tells the
    lengths of episodes where the rows are ends; as a float it costs less than a wide integer.
    """
    keys = [*x.labels, *x.ends]
    sums = ["COUNT(*)", f"SUM({x.reward})", f"SUM({x.reward} * {x.reward})",
            f"SUM(CAST({x.step} - {first} AS DOUBLE))"]  # fmt: skip
    return f"SELECT {_aliased([*keys, *sums])} FROM log GROUP BY {_positions(len(keys))}"


def starts_query(x: Expressions, first: str, streams: bool) -> str:
    """Episodes that begin in each state, where all begin with one step; and descents.

    A descent is an episode whose name is not larger than that of the one that began before it.
    Without any, no two have the same name, whatever order the rows come in. Where rows do not
    stream, all count as descents.
    """
    state = _named("s", x.state)
    columns = ", ".join(f"{text} AS {name}" for text, name in [*state, (x.episode, "e")])
    names = ", ".join(name for _, name in state)
    before = "LAG(e) OVER ()" if streams else "e"
    rows = f"SELECT {columns} FROM log WHERE {x.step} = {first}"
    pairs = f"SELECT {names}, e, {before} AS e0 FROM ({rows}) AS started"
    return (
        f"SELECT {names}, COUNT(*) AS n, {_times('e <= e0')} AS descents "
        f"FROM ({pairs}) AS pairs GROUP BY {names}"
    )


def beginnings_query(x: Expressions, first: str) -> str:
    """How often the episode that begins most often does."""
    rows = f"SELECT {x.episode} AS e, COUNT(*) AS n FROM log WHERE {x.step} = {first} GROUP BY 1"
    return f"SELECT MAX(n) AS n FROM ({rows}) AS started"


def ordered_query(x: Expressions) -> str:
    """The outcomes with successors from the next row of the episode where they are absent.

    Besides: Σ of first rows, of rows that repeat a step, and of ends that are not the last row.
    """
    state, action = _named("s", x.state), _named("a", x.action)
    given = _named("g", x.next_state)
    base = [*state, *action, *given, (x.terminated, "ended"), (x.truncated or "FALSE", "cut"),
            (x.reward, "r"), (x.episode, "e"), (x.step, "t")]  # fmt: skip
    over = "OVER (PARTITION BY e ORDER BY t)"
    leads = ", ".join(f"LEAD({name}) {over} AS l{i}" for i, (_, name) in enumerate(state))
    around = f"LEAD(t) {over} AS following, LAG(t) {over} AS previous"
    missing = " OR ".join(f"{name} IS NULL" for _, name in given) or "TRUE"
    successor = [f"CASE WHEN {missing} THEN l{i} ELSE {name} END" for i, (_, name)
                 in enumerate(given)] or [f"l{i}" for i in range(len(state))]  # fmt: skip
    keys = [name for _, name in (*state, *action)] + successor + ["ended"]
    sums = ["COUNT(*)", "SUM(r)", "SUM(r * r)", _times("previous IS NULL"),
            _times("following = t"),
            _times("(ended OR cut) AND following IS NOT NULL")]  # fmt: skip
    rows = f"SELECT {', '.join(f'{text} AS {name}' for text, name in base)} FROM log"
    sequence = f"SELECT *, {leads}, {around} FROM ({rows}) AS typed"
    return (
        f"SELECT {_aliased([*keys, *sums])} FROM ({sequence}) AS ordered "
        f"GROUP BY {_positions(len(keys))}"
    )


def quantile_query(number: str, bins: int) -> str:
    """The inner quantiles of a column as values that occur in it."""
    cuts = (
        f"PERCENTILE_DISC({k / bins!r}) WITHIN GROUP (ORDER BY {number})" for k in range(1, bins)
    )
    return f"SELECT {_aliased(list(cuts))} FROM log WHERE {number} IS NOT NULL"


def _named(letter: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(text, f"{letter}{i}") for i, text in enumerate(texts)]


def _times(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


def _aliased(parts: list[str]) -> str:
    return ", ".join(f"{part} AS c{i}" for i, part in enumerate(parts))


def _positions(n: int) -> str:
    return ", ".join(str(i + 1) for i in range(n))


def episodes_query(x: Expressions) -> str:
    """Number of episodes, their lengths, and how many terminate."""
    inner = (
        f"SELECT {x.episode} AS e, COUNT(*) AS n, "
        f"MAX(CASE WHEN {x.terminated} THEN 1 ELSE 0 END) AS ended FROM log GROUP BY 1"
    )
    return (
        "SELECT COUNT(*) AS episodes, MIN(n) AS shortest, MAX(n) AS longest, "
        "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n) AS median, SUM(ended) AS terminated "
        f"FROM ({inner}) AS lengths"
    )


def backwards_query(x: Expressions) -> str:
    """Rows whose step is below that of the row before, in the same episode and in file order."""
    rows = f"SELECT {x.episode} AS e, {x.step} AS t FROM log"
    before = f"SELECT e, t, LAG(e) OVER () AS e0, LAG(t) OVER () AS t0 FROM ({rows}) AS typed"
    return f"SELECT {_times('e = e0 AND t < t0')} AS n FROM ({before}) AS pairs"
