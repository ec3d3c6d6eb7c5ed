"""A real PostgreSQL and a real Spark count the log where it is stored, by the same function."""

from __future__ import annotations

import pytest
from logs import COLUMNS, assert_same_counts, assert_same_counts_and_policy, hospital
from parts import needed
from servers import start_postgres

from spibb import Counts, Log, count_log, open_log
from spibb.errors import InputError
from spibb.inspection import inspect_log

TABLE = hospital(40)
TRUTH = Counts.from_log(Log.from_frame(TABLE, columns=COLUMNS))
NAME = 'log "of" the; DROP TABLE x'


@pytest.fixture(scope="module")
def postgres():
    ibis = needed("ibis")
    _, running = start_postgres()
    connection = ibis.connect(running.get_uri())
    connection.create_table(NAME, TABLE)
    yield connection.table(NAME)
    connection.disconnect()
    running.cleanup()


@pytest.fixture(scope="module")
def spark():
    sql = needed("pyspark.sql")
    needed("ibis")
    settings = {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        # For forty episodes to compile is most of the work: Java thoroughly, and Spark its plans.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }  # fmt: skip
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session.createDataFrame(TABLE.to_pandas())
    session.stop()


def test_postgres_counts_in_any_order(postgres, monkeypatch):
    monkeypatch.setattr("spibb.ingest.aggregate.ORDER_UP_TO", 0)
    monkeypatch.setattr("spibb.ingest.aggregate.LogTable._in_order", None)
    assert_same_counts(count_log(postgres, columns=COLUMNS), TRUTH)


def test_postgres_counts_in_order_and_gives_the_same_policy(postgres):
    assert_same_counts_and_policy(count_log(postgres, columns=COLUMNS), TRUTH)


def test_postgres_derives_successors_and_bins_by_quantiles(postgres):
    columns, bins = {**COLUMNS, "action": "severity", "state": "ward"}, {"severity": 3}
    counts = count_log(postgres.drop("next_ward"), columns=columns, bins=bins)
    here = count_log(TABLE.drop_columns(["next_ward"]), columns=columns, bins=bins)
    assert_same_counts(counts, here)
    assert counts.bins == here.bins


def test_postgres_is_inspected_where_it_is(postgres):
    found, here = (inspect_log(open_log(t, columns=COLUMNS)) for t in (postgres, TABLE))
    assert found.coverage == here.coverage
    assert found.lengths == here.lengths
    assert (found.backwards, here.backwards is not None) == (None, True)


def test_nothing_in_a_column_name_is_executed_by_postgres(postgres):
    evil = 'w"; DROP TABLE log; --'
    renamed = postgres.rename({evil: "ward"})
    columns = {**COLUMNS, "state": [evil, "severity"], "next_state": ["next_ward", "next_severity"]}
    assert_same_counts(count_log(renamed, columns=columns), TRUTH)


def drawn_alike(source):
    """Single decisions, all or one of each unit: the same rows as in memory, counted and read."""
    assert_same_counts(*(count_log(t, columns=COLUMNS, bandit=True) for t in (source, TABLE)))
    columns = {**COLUMNS, "unit": ["ward", "step"]}
    here, there = (open_log(one, columns=columns, bandit=True) for one in (TABLE, source))
    assert_same_counts(there.counts(), here.counts())
    assert_same_counts(Counts.from_log(there.log()), here.counts())
    assert (there.rows, there.whole.rows) == (here.rows, len(TABLE)) != (len(TABLE),) * 2


def test_postgres_draws_the_same_row_of_each_unit(postgres):
    drawn_alike(postgres)


def test_text_in_the_place_of_numbers_is_told(postgres):
    with pytest.raises(InputError, match="reward is text in column 'drug', expected numbers"):
        count_log(postgres, columns={"state": "ward", "action": "severity", "reward": "drug"})


@pytest.mark.slow
def test_spark_gives_the_same_counts_and_policy(spark):
    assert_same_counts_and_policy(count_log(spark, columns=COLUMNS), TRUTH)


@pytest.mark.slow
def test_spark_draws_the_same_row_of_each_unit(spark):
    drawn_alike(spark)


@pytest.mark.slow
def test_a_spark_frame_is_read_through_narwhals(spark):
    log = Log.from_frame(spark, columns=COLUMNS)
    assert_same_counts(Counts.from_log(log), TRUTH)


@pytest.mark.slow
def test_a_killed_database_is_told_in_one_line_without_its_password():
    ibis = needed("ibis")
    _, running = start_postgres()
    connection = ibis.connect(running.get_uri())
    connection.create_table("log", TABLE)
    log = open_log(connection.table("log"), columns=COLUMNS)
    running.stop()
    with pytest.raises(InputError, match="the warehouse did not answer a query") as told:
        log.counts()
    assert "\n" not in str(told.value)
    running.cleanup()
