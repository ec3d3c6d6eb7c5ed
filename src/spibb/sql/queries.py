"""The SQL that counts a log: one text for every engine, in DuckDB's dialect.

Every query reads a table called `log`; `expressions` says how its columns are read, and `kept`
which of its rows count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spibb.sql.engines import quoted
from spibb.sql.expressions import Expressions, Reader, finite, possible
from spibb.sql.kept import Kept


def profile_query(
    x: Expressions, names: Mapping[str, tuple[str, ...]], read: Reader
) -> tuple[list[str], str]:
    """Names and values: rows, how many values are there, how many can be read, and ranges.

    Parquet files answer this from their footers.
    """
    parts = {
        "rows": "COUNT(*)", "low": f"MIN({x.reward})", "high": f"MAX({x.reward})",
        "first": f"MIN({x.step})",
    }  # fmt: skip
    if x.action_prob is not None:
        parts["possible"] = _times(possible(x.action_prob))
    for name, column, expression in x.by_column(names):
        if name == "next_state" and expression == quoted(column):
            continue  # may be missing, and is read as it stands
        parts[f"there {name} {column}"] = f"COUNT({read.present(name, column)})"
        if expression != quoted(column):
            parts[f"read {name} {column}"] = f"COUNT({expression})"
    for column in read.engine.loose.intersection(names["episode_id"]):
        parts["pointed"] = _times(f"{quoted(column)} LIKE '%.0'")
    return list(parts), f"SELECT {_aliased(list(parts.values()))} FROM {x.kept.table}"


def twice_written(table: str, column: str) -> str:
    """The condition that a number in text ends in .0, and stands elsewhere without."""
    name = quoted(column)
    return (
        f"{name} LIKE '%.0' AND TRY_CAST({name} AS DOUBLE) IS NOT NULL "
        f"AND LEFT({name}, LENGTH({name}) - 2) IN (SELECT {name} FROM {table})"
    )


def size_query(table: str, episode: str | None) -> str:
    """How many rows and episodes a table has."""
    return f"SELECT COUNT(*) AS n, COUNT(DISTINCT {episode or 'NULL'}) AS episodes FROM {table}"


def range_query(kept: Kept, number: str) -> str:
    """The least and the largest of finite numbers."""
    known = f"SELECT CASE WHEN {finite(number)} THEN {number} END AS x FROM {kept.table}"
    return f"SELECT MIN(x) AS low, MAX(x) AS high FROM ({known}) AS known"


def distinct_query(kept: Kept, columns: Sequence[str]) -> str:
    """How many values each of some columns has."""
    counts = [f"COUNT(DISTINCT {quoted(column)})" for column in columns]
    return f"SELECT {_aliased(counts)} FROM {kept.repeating}"


def times_query(kept: Kept, condition: str) -> str:
    """How many rows meet a condition."""
    return f"SELECT {_times(condition)} AS n FROM {kept.table}"


def first_row_query(kept: Kept, column: str, condition: str, episode: str) -> str:
    """The first row that meets a condition, its value in a column and its episode, and how many
    rows do."""
    rows = (
        f"SELECT {kept.row} AS i, CAST({quoted(column)} AS VARCHAR) AS value, "
        f"{episode} AS e, {condition} AS found FROM {kept.numbered}"
    )
    return (
        "SELECT MIN(i) AS i, ARG_MIN(COALESCE(value, ''), i) AS value, "
        f"ARG_MIN(COALESCE(e, ''), i) AS e, COUNT(*) AS n FROM ({rows}) AS numbered WHERE found"
    )


def some_row_query(kept: Kept, column: str, condition: str, episode: str) -> str:
    """The query for any such row, where rows have no order."""
    shown = f"CAST({quoted(column)} AS VARCHAR) AS value, {episode} AS e"
    n = f"(SELECT {_times(condition)} FROM {kept.table}) AS n"
    return f"SELECT {shown}, {n} FROM {kept.table} WHERE {condition} LIMIT 1"


OUTCOME_SUMS = ("n", "reward", "squares", "steps")
"""The last columns of `outcomes_query`."""
ORDERED_SUMS = ("n", "reward", "squares", "starts", "repeated", "goes_on")
"""The last columns of `ordered_query`."""


def outcomes_query(x: Expressions, first: str, centre: float, unit: float) -> str:
    """N, Σr, Σ((r − c)/u)² and Σ(step − first) for each outcome as it is written, in one pass.

    Outcomes are (state, action, next state, terminated[, truncated]). The last sum tells the
    lengths of episodes where the rows are ends; as a float it costs less than a wide integer.
    """
    keys = [*x.labels, *x.ends]
    sums = ["COUNT(*)", f"SUM({x.reward})", _squares(x.reward, centre, unit),
            f"SUM(CAST({x.step} - {first} AS DOUBLE))"]  # fmt: skip
    return f"SELECT {_aliased([*keys, *sums])} FROM {x.table} GROUP BY {_positions(len(keys))}"


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
    rows = f"SELECT {columns} FROM {x.table} WHERE {x.step} = {first}"
    pairs = f"SELECT {names}, e, {before} AS e0 FROM ({rows}) AS started"
    return (
        f"SELECT {names}, COUNT(*) AS n, {_times('e <= e0')} AS descents "
        f"FROM ({pairs}) AS pairs GROUP BY {names}"
    )


def beginnings_query(x: Expressions, first: str) -> str:
    """How often the episode that begins most often does."""
    rows = f"SELECT {x.episode} AS e, COUNT(*) AS n FROM {x.table} WHERE {x.step} = {first}"
    return f"SELECT MAX(n) AS n FROM ({rows} GROUP BY 1) AS started"


def _sequence(
    x: Expressions, more: str = "", table: str | None = None, order: str | None = None
) -> tuple[list[str], list[str], str]:
    """Label columns, those of the successor, and typed rows with what precedes and follows each.

    Where a successor is absent it is the state of the episode's next row. `more` are columns to
    carry along. Where nothing says what ended, the last row of an episode did unless it was cut.
    With an `order` by episode and step, the rows are sorted so, and stay so.
    """
    state, action, given = (
        _named(letter, part) for letter, part in zip("sag", (x.state, x.action, x.next_state))
    )
    base = [*state, *action, *given, (x.truncated or "FALSE", "cut"),
            (x.reward, "r"), (x.episode, "e"), (x.step, "t")]  # fmt: skip
    if x.terminated is not None:
        base.append((x.terminated, "ended"))
    lead, lag = (_neighbour(name, order is not None) for name in ("LEAD", "LAG"))
    if x.single:
        lead = lag = "CASE WHEN FALSE THEN {} END"
    leads = ", ".join(f"{lead.format(name)} AS l{i}" for i, (_, name) in enumerate(state))
    around = f"{lead.format('t')} AS following, {lag.format('t')} AS previous"
    if x.terminated is None:
        around += f", {lead.format('t')} IS NULL AND NOT cut AS ended"
    missing = " OR ".join(f"{name} IS NULL" for _, name in given) or "TRUE"
    successor = [f"CASE WHEN {missing} THEN l{i} ELSE {name} END" for i, (_, name)
                 in enumerate(given)] or [f"l{i}" for i in range(len(state))]  # fmt: skip
    columns = ", ".join(f"{text} AS {name}" for text, name in base)
    typed = f"SELECT {columns}{more} FROM {table or x.table}"
    if order is not None:
        typed = f"SELECT * FROM ({typed}) AS unsorted ORDER BY {order}"
    rows = f"SELECT *, {leads}, {around} FROM ({typed}) AS typed"
    return [name for _, name in (*state, *action)], successor, rows


def _neighbour(function: str, is_sorted: bool) -> str:
    """A column in the next or previous row of the episode, NULL where there is none."""
    if not is_sorted:
        return f"{function}({{}}) OVER (PARTITION BY e ORDER BY t)"
    return f"CASE WHEN e = {function}(e) OVER () THEN {function}({{}}) OVER () END"


def _squares(reward: str, centre: float, unit: float) -> str:
    """Σ((r − c)/u)²."""
    scaled = f"(({reward} - CAST('{centre!r}' AS DOUBLE)) / CAST('{unit!r}' AS DOUBLE))"
    return f"SUM({scaled} * {scaled})"


REPEATED = "following = t"
GOES_ON = "(ended OR cut) AND following IS NOT NULL"


def ordered_query(x: Expressions, centre: float, unit: float) -> str:
    """The outcomes with successors from the next row of the episode where they are absent.

    Besides: Σ of first rows, of rows that repeat a step, and of ends that are not the last row.
    """
    labels, successor, rows = _sequence(x)
    keys = [*labels, *successor, "ended"]
    sums = ["COUNT(*)", "SUM(r)", _squares("r", centre, unit), _times("previous IS NULL"),
            _times(REPEATED), _times(GOES_ON)]  # fmt: skip
    return (
        f"SELECT {_aliased([*keys, *sums])} FROM ({rows}) AS ordered "
        f"GROUP BY {_positions(len(keys))}"
    )


def rows_query(x: Expressions, by_number: bool, sort_once: bool) -> str:
    """Every row, by episode and step: labels, successor, ended, cut, reward, propensity, and ends.

    The last three columns say whether a row begins its episode, repeats a step, and goes on after
    an end. `by_number` puts episodes whose names are text in the order of the numbers they show.
    To `sort_once` takes half the memory, where a query on rows that were sorted keeps their order.
    """
    prob = "" if x.action_prob is None else f", {x.action_prob} AS p"
    order = "TRY_CAST(e AS BIGINT), e, t" if by_number else "e, t"
    labels, successor, rows = _sequence(x, prob, order=order if sort_once else None)
    columns = [*labels, *successor, "ended", "cut", "r", "p" if prob else "CAST(NULL AS BOOLEAN)",
               "previous IS NULL", f"COALESCE({REPEATED}, FALSE)", GOES_ON]  # fmt: skip
    found = f"SELECT {_aliased(columns)} FROM ({rows}) AS ordered"
    return found if sort_once else f"{found} ORDER BY {order}"


def places_query(x: Expressions, value: str, by_number: bool) -> str:
    """The place of each episode by its smallest `value`, and how many values cannot be read.

    Episodes come in the order of `rows_query`.
    """
    table = x.kept.numbered if x.single else x.kept.repeating
    rows = f"SELECT {x.episode} AS e, {value} AS v FROM {table}"
    each = (
        f"SELECT e, MIN(v) AS first, COUNT(*) - COUNT(v) AS bad FROM ({rows}) AS typed GROUP BY e"
    )
    order = "TRY_CAST(e AS BIGINT), e" if by_number else "e"
    return (
        f"SELECT RANK() OVER (ORDER BY first) AS place, bad FROM ({each}) AS started "
        f"ORDER BY {order}"
    )


def names_query(x: Expressions, by_number: bool) -> str:
    """The names of the episodes as text, in the order of `rows_query`."""
    names = f"SELECT DISTINCT {x.episode} AS e FROM {x.kept.repeating}"
    order = "TRY_CAST(e AS BIGINT), e" if by_number else "e"
    return f"SELECT CAST(e AS VARCHAR) AS name FROM ({names}) AS named ORDER BY {order}"


def units_query(x: Expressions) -> str:
    """The labels of the unit of each row, in the order of `rows_query`."""
    return f"SELECT {_aliased(list(x.unit))} FROM {x.table} ORDER BY {x.episode}"


def repeated_query(x: Expressions, step: str) -> str:
    """The first row that repeats a step of its episode, and the step as it is written."""
    rows = f"SELECT {x.episode} AS e, {x.step} AS t{_numbered(x, step)} FROM {x.kept.numbered}"
    times = "ROW_NUMBER() OVER (PARTITION BY e, t ORDER BY i) AS k"
    return f"{FIRST_CULPRIT} FROM (SELECT *, {times} FROM ({rows}) AS typed) AS counted WHERE k = 2"


def goes_on_query(x: Expressions, step: str) -> str:
    """The first row that ends an episode which goes on, and its step as it is written."""
    _, _, rows = _sequence(x, _numbered(x, step), x.kept.numbered)
    return f"{FIRST_CULPRIT} FROM ({rows}) AS ordered WHERE {GOES_ON}"


FIRST_CULPRIT = (
    "SELECT MIN(i) AS i, ARG_MIN(shown, i) AS t, ARG_MIN(CAST(e AS VARCHAR), i) AS episode"
)


def _numbered(x: Expressions, step: str) -> str:
    return f", {x.kept.row} AS i, CAST({quoted(step)} AS VARCHAR) AS shown"


def quantile_query(kept: Kept, number: str, bins: int) -> str:
    """The inner quantiles of a column as values that occur in it."""
    cuts = (
        f"PERCENTILE_DISC({k / bins!r}) WITHIN GROUP (ORDER BY {number})" for k in range(1, bins)
    )
    return f"SELECT {_aliased(list(cuts))} FROM {kept.table} WHERE {number} IS NOT NULL"


def episodes_query(x: Expressions) -> str:
    """Number of episodes, their lengths, and how many terminate."""
    if x.single:
        return (
            "SELECT COUNT(*) AS episodes, 1 AS shortest, 1 AS longest, 1 AS median, "
            f"COUNT(*) AS terminated FROM {x.kept.table}"
        )
    ended = f"MAX(CASE WHEN {x.terminated} THEN 1 ELSE 0 END)"
    if x.terminated is None:
        ended = f"1 - MAX(CASE WHEN {x.truncated or 'FALSE'} THEN 1 ELSE 0 END)"
    inner = f"SELECT {x.episode} AS e, COUNT(*) AS n, {ended} AS ended FROM {x.table} GROUP BY 1"
    return (
        "SELECT COUNT(*) AS episodes, MIN(n) AS shortest, MAX(n) AS longest, "
        "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n) AS median, SUM(ended) AS terminated "
        f"FROM ({inner}) AS lengths"
    )


def backwards_query(x: Expressions) -> str:
    """Rows whose step is below that of the row before, in the same episode and in file order."""
    rows = f"SELECT {x.episode} AS e, {x.step} AS t FROM {x.table}"
    before = f"SELECT e, t, LAG(e) OVER () AS e0, LAG(t) OVER () AS t0 FROM ({rows}) AS typed"
    return f"SELECT {_times('e = e0 AND t < t0')} AS n FROM ({before}) AS pairs"


def neighbours_query(x: Expressions, steps_are_numbers: bool, loose: bool) -> str:
    """How each row fits the next of its episode: successors, and steps.

    `followed` rows name a successor and have a next row, whose state is another one for
    `contradicted` of them. Of `steps` differences of steps below 2⁵³, `unit` are the smallest of
    the log and `fractions` are not whole; `gapped` episodes have a larger one. In `loose` columns 1
    and 1.0 may be one label.
    """
    _, _, rows = _sequence(x)
    given = [f"g{i}" for i in range(len(x.next_state))]
    both = " AND ".join(["following IS NOT NULL", *(f"{name} IS NOT NULL" for name in given)])
    other = " OR ".join(f"{_bare(name, loose)} <> {_bare(f'l{i}', loose)}"
                        for i, name in enumerate(given)) or "FALSE"  # fmt: skip
    exact = " AND ".join(f"ABS(CAST({t} AS DOUBLE)) < 9007199254740992" for t in ("t", "following"))
    step = "CAST(following AS DOUBLE) - CAST(t AS DOUBLE)"
    step = f"CASE WHEN {exact} THEN {step} END" if steps_are_numbers else "CAST(NULL AS DOUBLE)"
    pairs = (
        f"SELECT e, CASE WHEN {both} THEN CASE WHEN {other} THEN 1 ELSE 0 END END AS differs, "
        f"{step} AS d FROM ({rows}) AS ordered"
    )
    return (
        "SELECT COUNT(differs) AS followed, SUM(differs) AS contradicted, COUNT(d) AS steps, "
        f"{_times('d = least')} AS unit, {_times('d <> FLOOR(d)')} AS fractions, "
        "COUNT(DISTINCT CASE WHEN d > least THEN e END) AS gapped "
        f"FROM (SELECT *, MIN(d) OVER () AS least FROM ({pairs}) AS pairs) AS compared"
    )


def _bare(name: str, loose: bool) -> str:
    return f"REGEXP_REPLACE(CAST({name} AS VARCHAR), '\\.0$', '')" if loose else name


def _named(letter: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(text, f"{letter}{i}") for i, text in enumerate(texts)]


def _times(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


def _aliased(parts: list[str]) -> str:
    return ", ".join(f"{part} AS c{i}" for i, part in enumerate(parts))


def _positions(n: int) -> str:
    return ", ".join(str(i + 1) for i in range(n))
