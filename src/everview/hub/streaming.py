"""The inbox as a source of Structured Streaming, and the stream that has a hub refresh.

An offset is the greatest number of a whole write that lay there, the last commit of the gate, by which sites
write, and a word for what other processes have offered, beside the run that saw them. So every run begins
with a batch, whatever its checkpoint says; what a batch takes in is for the record to say, which has the
number up to which all writes are in. The checkpoint is therefore of no more use than to Spark: it may be
lost, of another time, or ahead of the store.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from everview.errors import DataError
from everview.hub.files import Files
from everview.hub.marks import gate_head, whole_writes
from everview.hub.offers import offered

__all__ = ["FOLDER", "InboxSource", "Stream", "check_trigger", "inbox_source"]

FOLDER = "stream"
"""Where the checkpoint is."""

_TRIGGER = re.compile(r"\s*\d{1,9} +(millisecond|second|minute|hour)s?\s*", re.IGNORECASE)
_SETTINGS = {
    # How long a stream sleeps when there is nothing and its trigger is 0.
    "spark.sql.streaming.pollingDelay": "20ms",
    # How many of its batches the checkpoint remembers; the last one would do.
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def check_trigger(trigger: object) -> str:
    """How often to look for what has arrived, as Spark understands it; DataError when it would not."""
    if isinstance(trigger, str) and _TRIGGER.fullmatch(trigger):
        return trigger.strip()
    raise DataError(
        f"the trigger is {trigger!r}: give a whole number and milliseconds, seconds, minutes or hours, "
        "such as '1 second', or '0 seconds' for as soon as possible",
        value=trigger,
        expected="a time such as '1 second'",
    )


class InboxSource(DataSource):
    """The writes that have arrived in a store, as a stream of their numbers and folders' names."""

    files: ClassVar[Files]
    """Where they lie. Spark shows the options of a source, and these files may have secrets in theirs."""

    @classmethod
    def name(cls) -> str:
        """The format that `readStream` is given."""
        return "everview_inbox"

    def schema(self) -> str:
        """The columns."""
        return "number BIGINT, name STRING"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002  (Spark's)
        """Made in the process that Spark asks for offsets."""
        return _Reader(self.files, self.options["run"])


class _Reader(DataSourceStreamReader):
    def __init__(self, files: Files, run: str) -> None:
        self._files = files
        self._run = run

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name, like those below)
        """Before any run."""
        return {"run": "", "number": 0, "gate": 0, "offered": ""}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802, ARG002
        """As it was if nothing has arrived, but in this run."""
        numbers = [number for number, _ in whole_writes(self._files)]
        head = gate_head(self._files.near())
        gate = start.get("gate", 0) if head is None else head
        # Once they are taken in they are gone, and there is no news in that.
        waiting = [f"{writer}/{batch}" for writer, batch in offered(self._files)]
        told = hashlib.sha256("\n".join(waiting).encode()).hexdigest()[:16] if waiting else ""
        return {
            "run": self._run,
            "number": max(numbers, default=start["number"]),
            "gate": gate,
            "offered": told or start.get("offered", ""),
        }

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        """What is there up to the end: what came up to the start is not, for it was taken in."""
        there = [write for write in whole_writes(self._files) if write[0] <= end["number"]]
        return [InputPartition(there)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        """The rows."""
        return iter(partition.value)


def inbox_source(files: Files) -> type[InboxSource]:
    """The source of the writes in these files."""
    return type("Source", (InboxSource,), {"files": files})


class Stream:
    """Starts the stream of a store's inbox."""

    def __init__(self, spark: SparkSession, files: Files, hub: str) -> None:
        self._spark = spark
        self._hub = hub
        self._files = files
        from everview.hub.shipping import findable  # noqa: PLC0415  (tasks import this module, and not that)

        with findable(spark.sparkContext):
            spark.dataSource.register(inbox_source(files))
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)

    def start(self, trigger: str, batch: Callable[[], object]) -> StreamingQuery:
        """Have `batch` called, at least once and then whenever something has arrived."""

        def call(_rows: DataFrame, _number: int) -> None:
            # Its rows are no news to the hub, and to read them takes a job.
            batch()

        source = self._spark.readStream.format(InboxSource.name()).options(run=uuid.uuid4().hex)
        sink = source.load().writeStream.foreachBatch(call).trigger(processingTime=trigger)
        # So Spark's page of streams knows it; a session has no two streams of one name at once.
        sink = sink.queryName(f"{self._hub}: inbox")
        return sink.option("checkpointLocation", self._files.uri(FOLDER)).start()

    def forget(self) -> None:
        """Remove the checkpoint."""
        self._files.remove(FOLDER)
