"""Titan's two computations in plain Structured Streaming: duplicates dropped, words counted."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.wordcount_data import SCHEMA, Tweets

STORES = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "RocksDB": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
"""Where Spark keeps the state of a stream: in the memory of Java, written out as files, or in RocksDB."""

Done = list[tuple[float, int]]
"""When each batch was done, in seconds since the start, and how many tweets were in by then."""


def stream_of(spark: SparkSession, tweets: Tweets, per_batch: int) -> DataFrame:
    """The files of tweets as a stream, some of them at a time."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_batch)
    return reader.json(str(tweets.folder))


def use(spark: SparkSession, store: str) -> None:
    """Choose where state is kept."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORES[store])
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")


class Clock:
    """Notes when batches are done."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._start = time.perf_counter()
        self.done: Done = []

    def tick(self) -> None:
        """One more batch is done."""
        self.done.append((time.perf_counter() - self._start, (len(self.done) + 1) * self._each))


def run(
    stream: DataFrame, checkpoint: Path, mode: str, batch: Callable[[DataFrame], object], clock: Clock
) -> Done:
    """Run a stream over all that is there."""

    def each(frame: DataFrame, _number: int) -> None:
        batch(frame)
        clock.tick()

    sink = stream.writeStream.outputMode(mode).foreachBatch(each).trigger(availableNow=True)
    sink.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return clock.done


def words_of(stream: DataFrame) -> DataFrame:
    """The words of tweets that were not there before."""
    return stream.dropDuplicates(["id"]).selectExpr("explode(split(text, ' ')) AS word")


def total(stream: DataFrame, checkpoint: Path, clock: Clock, found: list[Any]) -> Done:
    """Total words, in update mode."""
    counted = words_of(stream).groupBy().count()
    return run(counted, checkpoint, "update", lambda frame: found.extend(frame.collect()), clock)


def top_complete(stream: DataFrame, checkpoint: Path, clock: Clock, found: list[Any], n: int) -> Done:
    """Top-N in complete mode: every batch sorts all counts."""
    counted = words_of(stream).groupBy("word").count()
    ranked = counted.orderBy("count", "word", ascending=[False, True]).limit(n)

    def keep(frame: DataFrame) -> None:
        found[:] = [(row["word"], row["count"]) for row in frame.collect()]

    return run(ranked, checkpoint, "complete", keep, clock)


def top_for_each(stream: DataFrame, checkpoint: Path, clock: Clock, found: list[Any], n: int) -> Done:
    """Top-N with `foreachBatch`: the counts that changed are put into a dict of the driver, which is ranked.

    Such a driver would have to save its dict too; this one does not, and is the faster for it.
    """
    counts: dict[str, int] = {}
    counted = words_of(stream).groupBy("word").count()

    def keep(frame: DataFrame) -> None:
        table = frame.toArrow()
        counts.update(zip(table.column("word").to_pylist(), table.column("count").to_pylist(), strict=True))
        found[:] = heapq.nsmallest(n, counts.items(), key=lambda item: (-item[1], item[0]))

    return run(counted, checkpoint, "update", keep, clock)
