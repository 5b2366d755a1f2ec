"""Spark's format `everview`: any Spark job reads and follows relations and views, and writes relations.

    everview.hub.register(spark)
    spark.read.format("everview").option("name", "v").load(uri)
    spark.readStream.format("everview").option("name", "v").load(uri)
    frame.write.format("everview").option("name", "r").mode("append").save(uri)

Nothing of it needs a hub in the same process, nor the lease of the store: what is read are files that never
change, and what is written waits beside the inbox until a refresh adopts it (see `offers`). Spark starts a
process of Python for most of what is asked here, so each part is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import types as st
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from everview.errors import DataError, StoreError

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter

    from everview.hub.files import Files
    from everview.hub.offering import StreamWriter

__all__ = ["EverviewSource", "PushingSource", "register"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_OWN = (
    "cache_",
    "gate_",
    "retry_",
    "spark_uri",
    "allow_http",
    "allow_invalid",
    "connect_timeout",
    "proxy_url",
)


def register(spark: SparkSession) -> None:
    """Let a session read and write with `format("everview")`; it may be done again.

    On a cluster it also sends this package to the executors, as a hub does (see `shipping`).
    Filters are pushed down if the session has `spark.sql.python.filterPushdown.enabled` set by now.
    """
    from everview.hub.session import is_connect  # noqa: PLC0415  (tasks import this module, and not these)
    from everview.hub.shipping import findable, ship  # noqa: PLC0415

    if is_connect(spark):
        raise StoreError(
            'format("everview") cannot be registered through Spark Connect: register it with the session of '
            "a driver, such as SparkSession.builder.master(...) makes, or by spark-submit"
        )
    ship(spark.sparkContext)
    with findable(spark.sparkContext):
        _register(spark)
        # Where a DataFrame is written, Spark looks for the format in the active session, be it another.
        active = SparkSession.getActiveSession()
        if active is not None and not _is_same(active, spark):
            _register(active)


def _register(session: SparkSession) -> None:
    pushes = session.conf.get(_PUSHDOWN, "false") == "true"
    with _active(session):
        session.dataSource.register(PushingSource if pushes else EverviewSource)


def _is_same(one: SparkSession, other: SparkSession) -> bool:
    return bool(one._jsparkSession.equals(other._jsparkSession))  # noqa: SLF001


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Have a session be the active one: else Spark takes a format of that one's for its own, and refuses."""
    before = SparkSession.getActiveSession()
    if before is None or _is_same(before, session):
        yield
        return
    sessions = session.sparkContext._jvm.SparkSession  # type: ignore[union-attr]  # noqa: SLF001
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        sessions.setActiveSession(before._jsparkSession)  # noqa: SLF001


class EverviewSource(DataSource):
    """A relation or view of a store; see docs/SPARK.md for the options."""

    _refresh: int | None = None

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "everview"

    def _files(self) -> Files:
        from everview.hub.files import open_files  # noqa: PLC0415

        uri = self.options.get("store") or self.options.get("path")
        if not uri:
            raise DataError('say which store: option("store", uri), or load(uri)', expected="a folder or URI")
        return open_files(uri, _of_the_store(self.options))

    def _name(self) -> str:
        name = self.options.get("name")
        if not name:
            raise DataError(
                'say which relation or view: option("name", …)', expected="the name of a relation or view"
            )
        return name

    def schema(self) -> st.StructType:
        """The columns as they are declared; of a stream also the weight and the refresh of a change.

        Spark asks for it once, when a DataFrame is made: from then on that one shows one refresh.
        """
        from everview.hub.reading import read_schema  # noqa: PLC0415

        found, self._refresh = read_schema(self._files(), self._name(), self.options)
        return found

    def reader(self, schema: st.StructType) -> DataSourceReader:
        """A refresh as it is, or was."""
        from everview.hub.reading import SnapshotReader  # noqa: PLC0415

        return SnapshotReader(self._files(), self._name(), self.options, self._refresh, schema)

    def streamReader(self, schema: st.StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's)
        """The changes, refresh by refresh."""
        from everview.hub.following import ChangeReader  # noqa: PLC0415

        return ChangeReader(self._files(), self._name(), self.options, schema)

    def writer(self, schema: st.StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Into a relation, at the next refresh."""
        from everview.hub.offering import writer  # noqa: PLC0415

        return writer(self._files(), self._name(), self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: st.StructType, overwrite: bool) -> StreamWriter:  # noqa: N802, FBT001
        """The same, batch by batch."""
        from everview.hub.offering import stream_writer  # noqa: PLC0415

        return stream_writer(self._files(), self._name(), self.options, schema, overwrite=overwrite)


class PushingSource(EverviewSource):
    """The same for sessions in which Spark asks a source about filters; in others it refuses one that can."""

    def reader(self, schema: st.StructType) -> DataSourceReader:
        """A refresh as it is, or was."""
        from everview.hub.reading import PushingReader  # noqa: PLC0415

        return PushingReader(self._files(), self._name(), self.options, self._refresh, schema)


def _of_the_store(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are for an object store, or Hadoop (docs/OBJECT_STORES.md)."""
    kinds = ("aws_", "azure_", "google_", "fs.", "spark.hadoop.", *_OWN)
    return {name: value for name, value in options.items() if name.startswith(kinds)}
