"""A hub: a program's relations and views at scale, kept by Spark."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.by_python import register_functions
from everview.engines.spark.session import defaults, start_session
from everview.engines.spark.types import column_names, rows_of
from everview.errors import DataError, StoreError
from everview.hub.compact import Compactor
from everview.hub.comparing import compared
from everview.hub.contents import contents, local_rows
from everview.hub.costs import Costs, Sampler
from everview.hub.explain import explain_view
from everview.hub.exporting import Export
from everview.hub.files import Files, open_files
from everview.hub.gate import Gate
from everview.hub.inbox import Arrival
from everview.hub.lease import Lease, hold
from everview.hub.opening import begin_epoch, recover
from everview.hub.peering import Peering
from everview.hub.publish import PublishReport, is_due, publish
from everview.hub.record import Record, commit, read, require_epoch
from everview.hub.refresh import EACH_ARRIVAL, Refreshing, RefreshReport
from everview.hub.retention import Retention
from everview.hub.running import Running, Work
from everview.hub.screening import Rejected, Screening
from everview.hub.streaming import Stream, check_trigger
from everview.hub.tables import Catalog, catalog
from everview.hub.vacuum import EVERY, VacuumReport, vacuum
from everview.hub.why import Refreshed, why
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.relations import Relation
from everview.planner.why.answer import Provenance
from everview.replication.replica import Replica
from everview.replication.report import OnProgress, SyncReport
from everview.replication.transports.base import Transport
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.reach import Peer, sync_with

__all__ = ["Hub"]

DRIVER_ROWS = 1_000_000
"""How many rows the driver collects at once; more are left to the executors. Some 100 MB."""

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]


class Hub:
    """What a program declares, at a folder or URI; open it with `Hub.open`."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        catalog: Catalog,
        name: str,
        lease: Lease,
        *,
        retention: Retention | None = None,
        freshness: float | None = None,
    ) -> None:
        self.name = name
        self.program = catalog.program
        self._spark = spark
        self._files = files
        self._lease = lease
        self._record = begin_epoch(files, catalog.program.hash)
        self._catalog = dataclasses.replace(catalog, ids=self._record.ids)
        self._inbox = recover(files, self._record, name)
        self._peering = Peering(files, catalog, name, self._record)
        self._inbox.pass_over(self._peering.arrived)
        self._screening = Screening(files, catalog.program)
        self._rejected: tuple[Rejected, ...] = ()
        self._tasks = spark.sparkContext.defaultParallelism
        self._compactor = Compactor(spark, files, catalog.layouts, self._tasks)
        self._sampler = Sampler(files)
        self._retention = retention if retention is not None else Retention()
        self._freshness = freshness
        self._driver_rows = DRIVER_ROWS
        self._closed = False
        self._stream: Stream | None = None
        self._running: Running | None = None
        self._runs = threading.Lock()
        # Held by whoever makes files or removes them: no vacuum meets half a refresh.
        self._turn = threading.RLock()
        vacuum(files, self._retention, grace=0)

    @classmethod
    def open(
        cls,
        uri: str | Path,
        program: Program,
        *,
        spark: SparkSession | None = None,
        name: str = "hub",
        freshness: float | None = None,
        retain_refreshes: int = 100,
        retain_days: float = 7,
    ) -> Hub:
        """The hub at a folder or URI, at its last refresh; `spark` None starts a local session.

        The hub works in a session of its own beside the given one, with the settings that its SQL needs.
        With `freshness`, a refresh also publishes when what is published is older than so many seconds. The
        last `retain_refreshes` refreshes that are younger than `retain_days` days can be read as they were.
        StoreError when a live hub has the store open (see `lease`).
        """
        files = open_files(uri)
        retention = Retention(retain_refreshes, retain_days)
        kept = catalog(program)
        lease = hold(files)
        try:
            session = _session(spark)
            return cls(session, files, kept, name, lease, retention=retention, freshness=freshness)
        except BaseException:
            lease.give_up()
            raise

    def insert(self, relation: str, rows: DataFrame | Rows) -> int:
        """Write rows, or a DataFrame's, into a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=True)

    def delete(self, relation: str, rows: DataFrame | Rows) -> int:
        """Delete rows, or a DataFrame's, from a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=False)

    def refresh(self) -> RefreshReport:
        """Bring everything that has arrived into the relations and all views, at once or not at all.

        It is made once its record is written. What is done after that, to publish or to vacuum, may fail and
        leaves the refresh; the next one tries again.
        """
        self._require_store()
        with self._turn:
            report = self._take_in()
            if report.arrivals and report.refresh % EVERY == 0:
                self.vacuum()
            if is_due(self._files, self._record, self._freshness):
                self.publish()
        return report

    def run(self, trigger: str = "1 second") -> Running:
        """Refresh whenever something has arrived, looking for it at each `trigger`, until that is stopped.

        It begins with a refresh. `trigger` is a time such as "1 second"; "0 seconds" is as soon as possible.
        """
        checked = check_trigger(trigger)
        with self._runs:
            self._require_store()
            if self._running is not None:
                if self._running.is_active:
                    raise StoreError(f"{self.name} is running already: stop that run first")
                self._running.end()
            if self._stream is None:
                self._stream = Stream(self._spark, self._files)
            inbox = self._inbox
            work = Work(self.name, self.refresh, self._require_store, inbox.given, inbox.is_settled)
            self._running = Running(work, self._stream, checked)
            return self._running

    # Other sites.

    def sync(
        self,
        peer: Peer,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        progress: OnProgress | None = None,
    ) -> SyncReport:
        """Push and pull, as a site does; what came is in the relations and views after the next refresh.

        The peer is a site, a hub, a server's URL or a folder that sites share (see `Site.sync`).
        """
        return sync_with(self._talking(progress).replica, peer, token=token, ca=ca, progress=progress)

    def transport(self, on_progress: OnProgress | None = None) -> Transport:
        """Return the way to this hub for others in this process."""
        return MemoryTransport(self._talking(on_progress).replica, self.name)

    @property
    def replica(self) -> Replica:
        """The hub as transports and servers see it."""
        return self._talking(None).replica

    def _talking(self, on_progress: OnProgress | None) -> Gate:
        """The gate, made when it is first needed; StoreError when it does not go with the last refresh."""
        self._require_store()
        if not self._record.gate:
            with self._turn:
                if not self._record.gate:
                    self._make_gate(on_progress)
        return self._peering.gate

    def rebuild_gate(self, *, progress: OnProgress | None = None) -> None:
        """Make a new gate by the last refresh, where the one that goes with it is lost.

        What the hub shows becomes its own rows; see docs/HUB.md for what that means to others.
        """
        self._require_store()
        with self._turn:
            self._make_gate(progress)

    def adopt_gate(self) -> RefreshReport:
        """Go by what the gate has, where it does not go with the last refresh, and refresh.

        What only the last refresh has goes, unless a site brings it again.
        """
        self._require_store()
        with self._turn:
            return self._take_in(whole=True)

    def _make_gate(self, progress: OnProgress | None) -> None:
        record = self._peering.make(self._record, progress)
        commit(self._files, record)
        self._record = record

    def _take_in(self, *, whole: bool = False) -> RefreshReport:
        """Set aside what cannot be taken in, and refresh by the rest, or by what it changes in the gate.

        `whole` compares the gate with the last refresh in full.
        """
        self._rejected += self._screening.missed(self._inbox.vanished())
        waiting = self._inbox.waiting(self._record.arrived)
        arrivals, rejected = self._screening.screen(waiting, self._driver_rows // EACH_ARRIVAL)
        self._rejected += rejected
        if rejected:
            self._inbox.vanished()  # these have, and are known
        export = None
        if self._record.gate:
            export = self._peering.take_in(arrivals, self._record, self._reject, whole=whole)
        if export is not None and whole:
            export = compared(self._spark, self._files, self._catalog, self._record, export)
        if arrivals or (export is not None and (export.arrivals or whole)) or not self._record.refresh:
            report = self._refresh(arrivals, export)
        else:
            report = RefreshReport(self._record.refresh, 0)
        told, self._rejected = self._rejected, ()
        return dataclasses.replace(report, rejected=told)

    def _reject(self, arrival: Arrival, reason: str) -> None:
        self._rejected += (self._screening.reject(arrival, reason),)

    def _refresh(self, arrivals: Sequence[Arrival], export: Export | None = None) -> RefreshReport:
        written = len(arrivals)
        if export is not None:
            arrivals = export.arrivals
        refreshing = Refreshing(
            self._spark,
            self._files,
            self._catalog,
            self._compactor,
            self._record,
            self._sampler,
            tasks=self._tasks,
            most=self._driver_rows,
        )
        try:
            report = refreshing.run(arrivals)
        except Exception as error:
            unreadable = self._screening.blame(arrivals, error)
            if unreadable is None:
                raise
            raise unreadable from error
        record = refreshing.record
        record = msgspec.structs.replace(record, refreshed_us=record.made_us)
        if export is not None:
            record = self._peering.recorded(export, record)
            report = dataclasses.replace(report, arrivals=max(export.commits, written))
        commit(self._files, record)
        self._record = record
        for path in refreshing.merged_away:
            self._files.remove_file(path)
        self._compactor.start(self._record.tables)
        self._inbox.forget(self._record.arrived)
        if export is not None:
            self._peering.finish(export, record)
        return report

    def publish(self) -> PublishReport:
        """Bring the published tables to the last refresh: Delta tables of plain rows, under `published/`."""
        self._require_open()
        with self._turn:
            return publish(self._spark, self._files, self._catalog, self._record)

    def vacuum(self) -> VacuumReport:
        """Remove the files that no retained refresh and no version published from one needs.

        It waits for a refresh that is under way. A hub vacuums by itself when it is opened, and now and then.
        """
        self._require_open()
        with self._turn:
            return vacuum(self._files, self._retention, since_us=self._compactor.since_us())

    def table(self, name: str, *, at: int | None = None) -> DataFrame:
        """A relation or view as of the last refresh, or of refresh `at`, its rows as often as they occur."""
        fields = self.program.schema(name)
        columns = zip(column_names(len(fields)), fields, strict=True)
        names = [f"{column} AS `{field.name.replace('`', '``')}`" for column, field in columns]
        return self._contents(name, self._at(at)).selectExpr(*names)

    def rows(self, name: str, *, at: int | None = None) -> list[tuple[Any, ...]]:
        """The rows of a relation or view as of the last refresh, or of refresh `at`, sorted.

        The order is that of `language.order`.
        """
        self._require_open()
        schema = self.program.schema(name)
        record = self._at(at)
        few = local_rows(self._files, self._catalog, record, name, self._driver_rows)
        return sorted_rows(rows_of(self._contents(name, record), schema) if few is None else few)

    def why(self, name: str, row: Mapping[str, Any] | Sequence[Any], *, at: int | None = None) -> Provenance:
        """Which rows of relations a row is there for, as of the last refresh, or of refresh `at`.

        LimitError when that takes more rows than the driver collects.
        """
        self._require_open()
        state = Refreshed(self._spark, self._files, self._catalog, self._at(at), self._driver_rows)
        return why(state, self._peering.origin, name, row)

    def explain(self, name: str) -> str:
        """How a view is kept: each operator, how much is read to carry a change through it, and the cost."""
        if name not in self.program.views:
            raise DataError(f"there is no view {name}", relation=name)
        self._require_open()
        return explain_view(self._catalog, Costs(self._catalog, self._record, self._sampler), name)

    def close(self) -> None:
        """Give the store up, having stopped what runs; the Spark session goes on, for others may use it."""
        if not self._closed:
            with self._runs:
                if self._running is not None:
                    self._running.end()
                self._closed = True
            self._compactor.wait()
            self._peering.close()
            self._lease.give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} is closed: open it again")

    def _require_store(self) -> None:
        """StoreError when the store is no longer ours, as far as can be known."""
        self._require_open()
        self._lease.check()
        require_epoch(self._files, self._record)

    def _put(self, name: str, rows: DataFrame | Rows, *, present: bool) -> int:
        self._require_store()
        relation = self._relation(name)
        if isinstance(rows, DataFrame):
            accepted = self._inbox.put_frame(relation, rows, present=present)
        else:
            accepted = self._inbox.put_rows(relation, rows, present=present)
        # Who takes the store over makes a record, then looks into the inbox. If there is none now, this write
        # will be seen; else it may have come too late, with a number that is in a refresh already.
        require_epoch(self._files, self._record)
        return accepted

    def _relation(self, name: str) -> Relation:
        if name in self.program.relations:
            return self.program.relations[name]
        if name in self.program.views:
            raise DataError(f"{name} is a view: write into the relations it reads", relation=name)
        raise DataError(f"there is no relation {name}", relation=name)

    def _contents(self, name: str, record: Record) -> DataFrame:
        self._require_open()
        return contents(self._spark, self._files, self._catalog, record, name)

    def _at(self, at: int | None) -> Record:
        """The record of a retained refresh."""
        if at is None or at == self._record.refresh:
            return self._record
        retained = self._retention.retained(self._files)
        if at in retained:
            return read(self._files, retained[at])
        there = f"{min(retained)} to {max(retained)} are" if retained else "none has been made yet"
        raise DataError(f"refresh {at} is not retained: {there}", value=at)


def _session(spark: SparkSession | None) -> SparkSession:
    session = (spark if spark is not None else start_session()).newSession()
    for setting in defaults():
        if setting.name.startswith("spark.sql.") and session.conf.isModifiable(setting.name):
            session.conf.set(setting.name, setting.value)
    # Each shuffle would be a job of its own, and a refresh has many small ones.
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return register_functions(session)
