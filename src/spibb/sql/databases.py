"""Databases by their address: which table is read, by whom, and with which password.

Nothing is ever written: connections are read-only, and queries are subqueries of a SELECT. A
password is taken from the address only to be handed to the driver; what is printed, written or
raised has names without it (`Source.name`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from spibb.checks import did_you_mean, some
from spibb.errors import InputError, cause_of, install, without_people
from spibb.sql.duck import SETTINGS, private_path
from spibb.sql.engines import Engine, open_arrow, open_relation, quoted
from spibb.sql.rows import rows_table
from spibb.sql.sources import Source, check_readable

SECONDS = 30
"""How long a database may take to accept a connection."""


@dataclass(frozen=True)
class Address:
    """The parts of a database's address; the password is shown nowhere."""

    user: str
    host: str
    port: int | None
    database: str
    options: dict[str, str]
    password: str | None = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        """Read ``scheme://user:password@host:port/database?option=value``."""
        person, _, rest = url.partition("://")[2].rpartition("@")
        user, _, secret = person.partition(":")
        place, _, more = rest.partition("?")
        host, _, database = place.partition("/")
        host, _, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
        options = dict(parse_qsl(more))
        given = options.pop("password", None) or unquote(secret) or None
        return cls(unquote(user), unquote(host.strip("[]")), int(port) if port else None,
                   unquote(database), options, _from_environment(given))  # fmt: skip

    @property
    def people(self) -> tuple[str, ...]:
        """Whose names a driver may repeat."""
        return self.user, self.options.get("user", ""), os.environ.get("PGUSER", "")


def _from_environment(secret: str | None) -> str | None:
    """``$NAME`` and ``${NAME}`` stand for a variable of the environment."""
    named = re.fullmatch(r"\$(?:\{(\w+)\}|(\w+))", secret or "")
    if named is None:
        return secret
    name = named[1] or named[2]
    if name not in os.environ:
        raise InputError(
            f"the address takes its password from the variable {name}, which is not set: set it"
        )
    return os.environ[name]


def open_database(source: Source, scheme: str) -> Engine:
    """Open a table or a query of a database."""
    return OPENERS[scheme](source)


def _open_duckdb(source: Source) -> Engine:
    """A DuckDB file, read where it is; what its views say cannot reach other files."""
    import duckdb

    path = _file(source)
    spill = private_path("").with_name("spill")
    config: dict[str, Any] = {**SETTINGS, "temp_directory": str(spill)}
    with answering(source):
        connection = duckdb.connect(str(path), read_only=True, config=config)
        connection.execute("SET enable_external_access = false; SET TimeZone = 'UTC'")
        found = connection.execute(TABLES).fetchall()
        names = {name: f"{quoted(schema)}.{quoted(table)}" for name, schema, table in found}
        relation = connection.sql(f"SELECT * FROM {_chosen(source, names)}")
        return open_relation(relation, repr(source.name))


TABLES = """
SELECT CASE WHEN table_schema = current_schema() THEN '' ELSE table_schema || '.' END || table_name,
table_schema, table_name
FROM information_schema.tables ORDER BY table_schema <> current_schema(), 1
"""
"""All tables as they can be named, those of the usual schema without it."""


def _open_sqlite(source: Source) -> Engine:
    """A SQLite file; its rows are read into memory."""
    import sqlite3

    path = _file(source)
    with answering(source):
        live = path.with_name(f"{path.name}-wal").exists()
        uri = f"file:{quote(str(path.absolute()))}?mode=ro{'' if live else '&immutable=1'}"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1"
            ).fetchall()
            chosen = _chosen(source, {name: quoted(name) for (name,) in found})
            cursor = connection.execute(f"SELECT * FROM {chosen}")
            return _in_memory(cursor, source)


def _open_mysql(source: Source) -> Engine:
    """A MySQL or MariaDB table; its rows are read into memory."""
    try:
        import pymysql
    except ImportError:
        raise InputError(
            f"cannot read {source.name!r}: PyMySQL is not installed: {install('mysql')}"
        ) from None
    address = Address.of(str(source.place))
    secret = address.password or os.environ.get("MYSQL_PWD", "")
    with answering(source):
        connection = pymysql.connect(
            host=address.host or "localhost", port=address.port or 3306, user=address.user or None,
            password=secret.encode(), database=address.database,
            read_default_file=None if secret else _existing("~/.my.cnf"), connect_timeout=SECONDS,
            charset="utf8mb4",
            cursorclass=pymysql.cursors.SSCursor, local_infile=False, **_mysql_options(address),
        )  # fmt: skip
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SHOW TABLES")
            names = {name: _backticks(name) for (name,) in cursor.fetchall()}
            cursor.execute(f"SELECT * FROM {_chosen(source, names, _backticks)}")
            return _in_memory(cursor, source)


def _mysql_options(address: Address) -> dict[str, str]:
    known = {"unix_socket", "ssl_ca", "ssl_cert", "ssl_key"}
    for name in address.options:
        if name not in known:
            raise InputError(f"the address has the option {name!r}: MySQL takes {some(known)} here")
    return address.options


def _existing(path: str) -> str | None:
    found = Path(path).expanduser()
    return str(found) if found.is_file() else None


def _open_postgres(source: Source) -> Engine:
    """A PostgreSQL table, counted where it is."""
    from spibb.sql.warehouse import open_table, table_of_query

    try:
        import ibis
        import psycopg
    except ImportError:
        raise InputError(
            f"cannot read {source.name!r}: psycopg or Ibis is not installed: {install('postgres')}"
        ) from None
    address = Address.of(str(source.place))
    with answering(source):
        connection = psycopg.connect(
            _without_password(str(source.place)), password=address.password, autocommit=True,
            connect_timeout=SECONDS,
        )  # fmt: skip
        connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        backend = ibis.postgres.from_connection(connection)
        found = connection.execute(POSTGRES_TABLES).fetchall()
        chosen = _chosen(source, {name: quoted(name) for (name,) in found})
        return open_table(table_of_query(backend, f"SELECT * FROM {chosen}"), repr(source.name))


POSTGRES_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND "
    "pg_table_is_visible(oid) AND relnamespace <> 'pg_catalog'::regnamespace ORDER BY 1"
)


def _without_password(url: str) -> str:
    """The address as libpq reads it, all but the password."""
    person, at, rest = url.partition("://")[2].rpartition("@")
    place, _, more = rest.partition("?")
    options = "&".join(
        f"{quote(name)}={quote(value)}" for name, value in parse_qsl(more) if name != "password"
    )
    return f"postgresql://{person.partition(':')[0]}{at}{place}{options and '?'}{options}"


OPENERS: dict[str, Callable[[Source], Engine]] = {
    "duckdb": _open_duckdb, "sqlite": _open_sqlite, "mysql": _open_mysql, "mariadb": _open_mysql,
    "postgresql": _open_postgres, "postgres": _open_postgres,
}  # fmt: skip
"""What opens an address, by what it begins with."""


def _file(source: Source) -> Path:
    """The file that an address such as sqlite:///clinic.db names, or the file itself."""
    path = source.path
    if path is None:
        path = Path(unquote(re.sub(r"^\w+://", "", str(source.place)).removeprefix("/")))
    check_readable(path)
    return path


def _chosen(
    source: Source, names: Mapping[str, str], quote_name: Callable[[str], str] = quoted
) -> str:
    """What follows FROM: the table that is named, or the query in brackets.

    `names` are the tables as they can be named, each with its name in SQL.
    """
    if source.query is not None:
        return f"({source.query.strip().rstrip(';')}) AS asked"
    if source.table is None:
        has = f"it has {some(names)}" if names else "it has none that you may see"
        raise InputError(
            f"{source.name!r} is a database: name a table with --table (or after a #); {has}"
        )
    if source.table in names:
        return names[source.table]
    schema, point, table = source.table.partition(".")
    if point and schema and table:
        return f"{quote_name(schema)}.{quote_name(table)}"
    raise InputError(
        f"{source.name!r}: there is no table {source.table!r}{did_you_mean(source.table, names)}: "
        f"the database has {some(names) or 'none that you may see'}"
    )


def _backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _in_memory(cursor: Any, source: Source) -> Engine:
    """All rows of a cursor."""
    names = [column[0] for column in cursor.description]
    called = repr(source.name)
    return open_arrow(*rows_table(names, _batches(cursor), called), called)


def _batches(cursor: Any) -> Iterator[Iterable[Sequence[Any]]]:
    while rows := cursor.fetchmany(100_000):
        yield rows


@contextmanager
def answering(source: Source) -> Iterator[None]:
    """Turn whatever a driver raises into one line without a password or the name of a user."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # every driver has its own
        reason = cause_of(error)
        people = Address.of(str(source.place)).people
        raise InputError(
            f"cannot read {source.name!r} ({without_people(reason, people)}): {_remedy(reason)}"
        ) from None


def _remedy(reason: str) -> str:
    """What helps against a complaint of a driver."""
    if NO_PASSWORD.search(reason):
        return (
            "give the password, in PGPASSWORD or ~/.pgpass for PostgreSQL, in MYSQL_PWD or "
            "~/.my.cnf for MySQL"
        )
    return "check the address, the table and what you may read"


NO_PASSWORD = re.compile(r"(?i)no password supplied|using password: no")
"""What PostgreSQL and MySQL say where they wanted a password and got none."""
