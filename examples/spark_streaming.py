"""Structured Streaming on both sides of a hub, and between two of its relations.

    files of readings ──(stream)──>  reading ──> hourly      a relation, and a view of it
                                                  │
                                                  │ changes: rows, weights, refreshes
                                                  v
                       alarm  <──(stream)──  a plain Spark job: what is too hot, in Fahrenheit

Run it: `python examples/spark_streaming.py`. The jobs and the hub could each be in a process of their own:
the jobs know the store by its folder, and hold nothing of it. A job that is killed and started again goes on
where it was, and writes no batch twice. Here each is run until it has nothing more to do.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import everview as ev
import everview.hub
from everview.engines.spark.session import start_session

PROGRAM = ev.Program.parse("""
    CREATE TABLE reading (id BIGINT NOT NULL, hour BIGINT NOT NULL, place TEXT NOT NULL, celsius DOUBLE);
    CREATE TABLE alarm (place TEXT, hour BIGINT, fahrenheit DOUBLE) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW hourly AS
        SELECT place, hour, max(celsius) AS celsius, count(*) AS n FROM reading GROUP BY place, hour;
""")

DAYS = [
    [(1, 9, "ridge", 18.0), (2, 9, "ridge", 19.0), (3, 9, "ford", 31.0)],
    [(4, 9, "ridge", 33.5), (5, 10, "ford", 30.5)],
]


def main() -> int:
    """Two days: files come, a job brings them in, the hub refreshes, another job tells what is too hot."""
    with tempfile.TemporaryDirectory() as folder:
        store, files = f"{folder}/store", Path(folder, "files")
        spark = start_session()
        everview.hub.register(spark)
        with ev.Hub.open(store, PROGRAM, spark=spark) as hub:
            for day, readings in enumerate(DAYS):
                frame = spark.createDataFrame(
                    readings, "id BIGINT, hour BIGINT, place STRING, celsius DOUBLE"
                )
                frame.write.mode("append").parquet(str(files))
                bring_in(spark, files, store, f"{folder}/in")
                hub.refresh()
                tell_alarms(spark, store, f"{folder}/out")
                hub.refresh()
                sys.stdout.write(
                    f"day {day + 1}\n  hourly {hub.rows('hourly')}\n  alarm  {hub.rows('alarm')}\n"
                )
            # One of them was wrong. What was told of it is taken back, as the view takes it back.
            hub.delete("reading", [DAYS[0][2]])
            hub.refresh()
            tell_alarms(spark, store, f"{folder}/out")
            hub.refresh()
            sys.stdout.write(f"corrected\n  alarm  {hub.rows('alarm')}\n")
    return 0


def bring_in(spark: SparkSession, files: Path, store: str, checkpoint: str) -> None:
    """Any stream becomes a relation's rows."""
    readings = spark.readStream.schema("id BIGINT, hour BIGINT, place STRING, celsius DOUBLE").parquet(
        str(files)
    )
    sink = readings.writeStream.format("everview").option("name", "reading")
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(store).awaitTermination()


def tell_alarms(spark: SparkSession, store: str, checkpoint: str) -> None:
    """A view's changes become another relation's: what filters and projects is right for changes too."""
    changes = spark.readStream.format("everview").option("name", "hourly").load(store)
    hot = changes.where("celsius > 30").selectExpr(
        "place", "hour", "celsius * 1.8 + 32 AS fahrenheit", "_weight", "_commit"
    )
    sink = hot.writeStream.format("everview").option("name", "alarm")
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(store).awaitTermination()


if __name__ == "__main__":
    sys.exit(main())
