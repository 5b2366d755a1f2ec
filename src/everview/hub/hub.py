"""A hub: a program's relations and views at scale, kept by Spark."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.types import column_names, rows_of
from everview.errors import DataError, StoreError
from everview.hub.contents import contents, local_rows
from everview.hub.costs import Costs
from everview.hub.events import put_events
from everview.hub.evolving import evolve_hub, planned
from everview.hub.explain import explain_view
from everview.hub.files import open_files
from everview.hub.inspecting import Inspection
from everview.hub.jobs import job, working
from everview.hub.lease import hold
from everview.hub.notebook import hub_html
from everview.hub.owning import check_writable
from everview.hub.publish import PublishReport, is_due, publish
from everview.hub.record import Record, require_epoch
from everview.hub.refresh import RefreshReport
from everview.hub.retention import Retention
from everview.hub.running import Running, Work
from everview.hub.session import hub_session, is_connect
from everview.hub.status import HubStatus, status_of
from everview.hub.store import Store
from everview.hub.streaming import Stream, check_trigger
from everview.hub.tables import catalog
from everview.hub.timing import Timing
from everview.hub.vacuum import EVERY, VacuumReport
from everview.hub.why import Refreshed, why
from everview.language.evolution import Evolution
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.relations import Relation
from everview.planner.why.answer import Provenance
from everview.replication.protocol.replica import Replica
from everview.replication.transports.base import Transport
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.reach import Peer, sync_with
from everview.replication.transports.repairs import repair_with
from everview.replication.transports.report import OnProgress, SyncReport

__all__ = ["Hub"]

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]


class Hub:
    """What a program declares, at a folder or URI; open it with `Hub.open`."""

    def __init__(self, store: Store, *, freshness: float | None = None) -> None:
        self.name = store.name
        self.program = store.catalog.program
        self._store = store
        self._freshness = freshness
        self._stream: Stream | None = None
        self._running: Running | None = None
        self._runs = threading.Lock()

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
        consumer_days: float = 7,
        options: Mapping[str, str] | None = None,
    ) -> Hub:
        """The hub at a folder or URI, at its last refresh; `spark` None starts a local session.

        The hub works in a session of its own beside the given one, with the settings that its SQL needs.
        With `freshness`, a refresh also publishes when what is published is older than so many seconds. The
        last `retain_refreshes` refreshes that are younger than `retain_days` days can be read as they were;
        what a stream of changes has not read is kept until it has given no sign for `consumer_days` days.
        `options` are those of an object store (docs/OBJECT_STORES.md).
        StoreError when a live hub has the store open (see `lease`).
        """
        files = open_files(uri, options)
        retention = Retention(retain_refreshes, retain_days, consumer_days)
        kept = catalog(program)
        lease = hold(files)
        try:
            store = Store(hub_session(spark, files.hadoop()), files, kept, name, lease, retention)
            return cls(store, freshness=freshness)
        except BaseException:
            lease.give_up()
            raise

    @classmethod
    def migrate(
        cls,
        uri: str | Path,
        program: Program,
        *,
        spark: SparkSession | None = None,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> Evolution:
        """Bring a hub's store over to a changed program: its relations stay, its views are computed anew.

        Relations and views may come, and views may change or go; ProgramError, and nothing is done, for what
        cannot be done safely. `dry_run` only says what would be done, and what is refused. StoreError when a
        live hub has the store open.
        """
        files = open_files(uri, options)
        evolution, _ = planned(files, program)
        if dry_run:
            return evolution
        lease = hold(files)
        try:
            evolution, record = planned(files, program)
            if not evolution.is_nothing:
                evolve_hub(hub_session(spark, files.hadoop()), files, evolution, record)
        finally:
            lease.give_up()
        return evolution

    def insert(self, relation: str, rows: DataFrame | Rows) -> int:
        """Write rows, or a DataFrame's, into a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=True)

    def delete(self, relation: str, rows: DataFrame | Rows) -> int:
        """Delete rows, or a DataFrame's, from a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=False)

    def close_windows(self, until: dt.datetime, relations: Iterable[str] | None = None) -> int:
        """Say that this hub, as a source, has written all events before a moment; of how many relations.

        As a site does; sites hear of it by sync, and the hub's views at the next refresh.
        """
        return self._store.gate(None).close_windows(until, relations)

    def take_charge(self, *, alone: bool = False) -> bool:
        """Write as this hub's source from here, after its gate was put back or made anew; whether it may.

        As a site does: sync and call it again until it may.
        """
        return self._store.gate(None).replica.take_charge(alone=alone)

    def refresh(self) -> RefreshReport:
        """Bring everything that has arrived into the relations and all views, at once or not at all.

        It is made once its record is written. What is done after that, to publish or to vacuum, may fail and
        leaves the refresh; the next one tries again.
        """
        store = self._store
        store.require_ours()
        with store.turn, store.timing.refresh():
            report = store.take_in()
            if report.arrivals and report.refresh % EVERY == 0:
                with store.timing.of("vacuum"):
                    store.vacuum()
            if is_due(store.files, store.record, self._freshness):
                with store.timing.of("publish"):
                    self.publish()
            return dataclasses.replace(report, stages=dict(store.timing.seconds))

    def run(
        self, trigger: str = "1 second", *, on_report: Callable[[RefreshReport], None] | None = None
    ) -> Running:
        """Refresh whenever something has arrived, looking for it at each `trigger`, until that is stopped.

        It begins with a refresh. `trigger` is a time such as "1 second"; "0 seconds" is as soon as possible.
        `on_report` is called after each refresh that took something in, or set something aside.
        """
        checked = check_trigger(trigger)
        with self._runs:
            self._store.require_ours()
            if self._running is not None:
                if self._running.is_active:
                    raise StoreError(f"{self.name} is running already: stop that run first")
                self._running.end()
            if self._stream is None:
                self._stream = Stream(self._store.spark, self._store.files, self.name)
            inbox = self._store.inbox
            work = Work(self.name, self.refresh, self._store.require_ours, inbox.given, inbox.is_settled)
            self._running = Running(work, self._stream, checked, on_report)
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
        return sync_with(self._store.gate(progress).replica, peer, token=token, ca=ca, progress=progress)

    def repair(
        self,
        relation: str,
        peer: Peer,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> SyncReport:
        """Read a relation again, whole, from a peer that is right, as a site does; a refresh shows it."""
        self.program.schema(relation)
        return repair_with(self._store.gate(None).replica, relation, peer, token=token, ca=ca)

    def give_up(self, store: str) -> str:
        """Say that another store is lost for good, as a site does; return its incarnation."""
        return self._store.gate(None).replica.give_up(store)

    def transport(self, on_progress: OnProgress | None = None) -> Transport:
        """Return the way to this hub for others in this process."""
        return MemoryTransport(self._store.gate(on_progress).replica, self.name)

    @property
    def replica(self) -> Replica:
        """The hub as transports and servers see it."""
        return self._store.gate(None).replica

    def rebuild_gate(self, *, progress: OnProgress | None = None) -> None:
        """Make a new gate by the last refresh, where the one that goes with it is lost.

        What the hub shows becomes its own rows; see docs/HUB.md for what that means to others.
        """
        self._store.require_ours()
        self._store.make_gate(progress)

    def adopt_gate(self) -> RefreshReport:
        """Go by what the gate has, where it does not go with the last refresh, and refresh.

        What only the last refresh has goes, unless a site brings it again.
        """
        self._store.require_ours()
        return self._store.take_in(whole=True)

    # What it shows.

    @property
    def refreshed(self) -> int:
        """The number of the last refresh."""
        return self._store.record.refresh

    @property
    def timing(self) -> Timing:
        """Which part of a refresh is under way, and how far it is."""
        return self._store.timing

    @property
    def spark(self) -> SparkSession:
        """The session that it works in."""
        return self._store.spark

    def check(self) -> None:
        """StoreError when the hub is closed, or another has its store."""
        self._store.require_ours()

    def status(self, *, most: int = 1_000_000) -> HubStatus:
        """The last refresh, what waits for the next and what is kept, without a Spark job.

        Rows that wait are counted up to `most`.
        """
        self._store.require_open()
        return status_of(self._store, most)

    def publish(self) -> PublishReport:
        """Bring the published tables to the last refresh: Delta tables of plain rows, under `published/`."""
        store = self._store
        store.require_open()
        with store.turn, working(self.name, f"publish refresh {store.record.refresh}"):
            return publish(store.spark, store.files, store.catalog, store.record)

    def vacuum(self) -> VacuumReport:
        """Remove the files that no retained refresh and no version published from one needs.

        It waits for a refresh that is under way. A hub vacuums by itself when it is opened, and now and then.
        """
        self._store.require_open()
        return self._store.vacuum()

    def table(self, name: str, *, at: int | None = None) -> DataFrame:
        """A relation or view as of the last refresh, or of refresh `at`, its rows as often as they occur.

        A refresh from before a migration shows the columns of then, and what has changed or gone since.
        """
        record = self._store.at(at)
        fields = self._store.past.catalog(record, name).program.schema(name)
        columns = zip(column_names(len(fields)), fields, strict=True)
        names = [f"{column} AS `{field.name.replace('`', '``')}`" for column, field in columns]
        return self._contents(name, record).selectExpr(*names)

    def rows(self, name: str, *, at: int | None = None) -> list[tuple[Any, ...]]:
        """The rows of a relation or view as of the last refresh, or of refresh `at`, sorted.

        The order is that of `language.order`.
        """
        store = self._store
        store.require_open()
        record = store.at(at)
        then = store.past.catalog(record, name)
        schema = then.program.schema(name)
        few = local_rows(store.files, then, record, name, store.driver_rows)
        if few is None:
            with working(self.name, f"read refresh {record.refresh}"), job(store.spark.sparkContext, name):
                few = rows_of(self._contents(name, record), schema)
        return sorted_rows(few)

    def why(self, name: str, row: Mapping[str, Any] | Sequence[Any], *, at: int | None = None) -> Provenance:
        """Which rows of relations a row is there for, as of the last refresh, or of refresh `at`.

        LimitError when that takes more rows than the driver collects.
        """
        store = self._store
        store.require_open()
        record = store.at(at)
        then = store.past.catalog(record, name)
        state = Refreshed(store.spark, store.files, then, record, store.driver_rows)
        with working(self.name, f"why a row of {name} is there"):
            return why(state, store.peering.origin, name, row)

    def explain(self, name: str) -> str:
        """How a view is kept: each operator, how much is read to carry a change through it, and the cost."""
        if name not in self.program.views:
            raise DataError(f"there is no view {name}", relation=name)
        store = self._store
        store.require_open()
        return explain_view(store.catalog, Costs(store.catalog, store.record, store.sampler), name)

    @functools.cached_property
    def inspection(self) -> Inspection:
        """What a console looks at: some rows, operators, and what a deletion would do."""
        return Inspection(self._store)

    def close(self) -> None:
        """Give the store up, having stopped what runs; the Spark session goes on, for others may use it."""
        if not self._store.is_closed:
            with self._runs:
                if self._running is not None:
                    self._running.end()
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Hub {self.name!r} at {self._store.files.uri('')}>"

    def _repr_html_(self) -> str:
        return hub_html(self._store, self.inspection)

    def _put(self, name: str, rows: DataFrame | Rows, *, present: bool) -> int:
        store = self._store
        store.require_ours()
        relation = self._relation(name)
        if is_connect(rows):
            raise DataError(f"{name} cannot take a DataFrame of Spark Connect: give one of the hub's Spark")
        if relation.event_time is not None and not relation.system:
            return put_events(store.gate(None), relation, rows, present=present)
        check_writable(relation)
        if isinstance(rows, DataFrame):
            accepted = store.inbox.put_frame(relation, rows, present=present)
        else:
            accepted = store.inbox.put_rows(relation, rows, present=present)
        # Who takes the store over makes a record, then looks into the inbox. If there is none now, this write
        # will be seen; else it may have come too late, with a number that is in a refresh already.
        require_epoch(store.files, store.record)
        return accepted

    def _relation(self, name: str) -> Relation:
        if name in self.program.relations:
            return self.program.relations[name]
        if name in self.program.views:
            raise DataError(f"{name} is a view: write into the relations it reads", relation=name)
        raise DataError(f"there is no relation {name}", relation=name)

    def _contents(self, name: str, record: Record) -> DataFrame:
        store = self._store
        store.require_open()
        return contents(store.spark, store.files, store.past.catalog(record, name), record, name)
