"""A store under its one driver: its last record, what waits, and how the next record is made."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence

import msgspec
from pyspark.sql import SparkSession

from everview.errors import DataError, StoreError
from everview.hub.compact import Compactor
from everview.hub.comparing import compared
from everview.hub.costs import Sampler
from everview.hub.exporting import Export
from everview.hub.files import Files
from everview.hub.gate import Gate
from everview.hub.inbox import Arrival
from everview.hub.jobs import working
from everview.hub.lease import Lease
from everview.hub.opening import begin_epoch, recover
from everview.hub.past import Past
from everview.hub.peering import Peering
from everview.hub.record import Record, commit, read, require_epoch
from everview.hub.refresh import EACH_ARRIVAL, Refreshing, RefreshReport
from everview.hub.retention import Retention
from everview.hub.screening import Rejected, Screening
from everview.hub.shapes import write_program, write_shapes
from everview.hub.tables import Catalog
from everview.hub.timing import Timing
from everview.hub.vacuum import VacuumReport, vacuum
from everview.replication.transports.report import OnProgress

__all__ = ["DRIVER_ROWS", "Store"]

DRIVER_ROWS = 1_000_000
"""How many rows the driver collects at once; more are left to the executors. Some 100 MB."""


class Store:
    """What a hub's files hold, from when it has the lease until it gives that up."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        catalog: Catalog,
        name: str,
        lease: Lease,
        retention: Retention,
    ) -> None:
        self.name = name
        self.spark = spark
        self.files = files
        self.lease = lease
        self.retention = retention
        self.record = begin_epoch(files, catalog.program.hash, name)
        """The last refresh."""
        self.catalog = dataclasses.replace(catalog, ids=self.record.ids)
        self.past = Past(files, self.catalog)
        write_shapes(files, self.catalog)
        write_program(files, catalog.program)
        self.inbox = recover(files, self.record, name)
        self.peering = Peering(files, catalog, name, self.record, self._require_epoch)
        self.inbox.pass_over(self.peering.arrived)
        self.peering.announce(self.record, self._alike)
        self.compactor = Compactor(spark, files, catalog.layouts, catalog.words)
        self.sampler = Sampler(files)
        self.driver_rows = DRIVER_ROWS
        self.timing = Timing()
        self.turn = threading.RLock()
        """Held by whoever makes files or removes them: no vacuum meets half a refresh."""
        self._screening = Screening(files, catalog.program)
        self._rejected: tuple[Rejected, ...] = ()
        self.is_closed = False
        vacuum(files, retention, grace=0)

    def close(self) -> None:
        """Give it up, when what goes on in the background has ended."""
        self.is_closed = True
        self.compactor.wait()
        self.peering.close()
        self.lease.give_up()

    def require_open(self) -> None:
        """StoreError when it was given up by us."""
        if self.is_closed:
            raise StoreError(f"{self.name} is closed: open it again")

    def _require_epoch(self) -> None:
        require_epoch(self.files, self.record)

    def require_ours(self) -> None:
        """StoreError when it is no longer ours, as far as can be known."""
        self.require_open()
        self.lease.check()
        require_epoch(self.files, self.record)

    def at(self, refresh: int | None) -> Record:
        """The record of a retained refresh; of None the last one."""
        if refresh is None or refresh == self.record.refresh:
            return self.record
        retained = self.retention.retained(self.files)
        if refresh in retained:
            return read(self.files, retained[refresh])
        there = f"{min(retained)} to {max(retained)} are" if retained else "none has been made yet"
        raise DataError(f"refresh {refresh} is not retained: {there}", value=refresh)

    def _alike(self, refresh: int | None) -> Record:
        """The same, of the present program alone: what changed since can be told from the files."""
        record = self.at(refresh)
        if record.program != self.record.program:
            raise DataError(f"refresh {refresh} was made under an earlier program", value=refresh)
        return record

    def vacuum(self) -> VacuumReport:
        """Remove the files that nothing needs that is retained."""
        with self.turn:
            return vacuum(self.files, self.retention, since_us=self.compactor.since_us())

    # The gate.

    def gate(self, on_progress: OnProgress | None) -> Gate:
        """The gate, made when it is first needed; StoreError when it does not go with the last refresh."""
        self.require_ours()
        if not self.record.gate:
            with self.turn:
                if not self.record.gate:
                    self.make_gate(on_progress)
        return self.peering.gate

    def make_gate(self, progress: OnProgress | None) -> None:
        """A gate by the last refresh, instead of any that is there."""
        with self.turn:
            record = self.peering.make(self.record, progress)
            commit(self.files, record)
            self.record = record
            self.peering.announce(record, self._alike)

    # Refreshes.

    def take_in(self, *, whole: bool = False) -> RefreshReport:
        """Set aside what cannot be taken in, and refresh by the rest, or by what it changes in the gate.

        `whole` compares the gate with the last refresh in full.
        """
        with self.turn, working(self.name, f"refresh {self.record.refresh + 1}"):
            with self.timing.of("screen"):
                self._rejected += self._screening.missed(self.inbox.vanished())
                self._rejected += self._screening.refuse(self.inbox.adopt(self.record.writers))
                waiting = self.inbox.waiting(self.record.arrived)
                arrivals, rejected = self._screening.screen(waiting, self.driver_rows // EACH_ARRIVAL)
                self._rejected += rejected
                if rejected:
                    self.inbox.vanished()  # these have, and are known
            with self.timing.of("export"):
                export = self._exported(arrivals, whole=whole)
            if arrivals or (export is not None and (export.arrivals or whole)) or not self.record.refresh:
                report = self._refresh(arrivals, export)
            else:
                report = RefreshReport(self.record.refresh, 0)
            self.peering.announce(self.record, self._alike)
            told, self._rejected = self._rejected, ()
            return dataclasses.replace(report, rejected=told)

    def _exported(self, arrivals: list[Arrival], *, whole: bool) -> Export | None:
        """What arrivals, and what came from other sites, change in the gate; None where there is none."""
        if not self.record.gate:
            return None
        export = self.peering.take_in(arrivals, self.record, self._reject, self.timing.count, whole=whole)
        return compared(self.spark, self.files, self.catalog, self.record, export) if whole else export

    def _reject(self, arrival: Arrival, reason: str) -> None:
        self._rejected += (self._screening.reject(arrival, reason),)

    def _refresh(self, arrivals: Sequence[Arrival], export: Export | None) -> RefreshReport:
        written = len(arrivals)
        writers = self.inbox.writers(self.record.writers, arrivals)
        arrivals = [piece for arrival in arrivals for piece in arrival.pieces()]
        if export is not None:
            arrivals = export.arrivals
        refreshing = Refreshing(
            self.spark,
            self.files,
            self.catalog,
            self.compactor,
            self.record,
            self.sampler,
            tasks=self.spark.sparkContext.defaultParallelism,
            most=self.driver_rows,
        )
        try:
            with self.timing.of("compute"):
                report = refreshing.run(arrivals)
        except Exception as error:
            unreadable = self._screening.blame(arrivals, error)
            if unreadable is None:
                raise
            raise unreadable from error
        record = refreshing.record
        record = msgspec.structs.replace(record, refreshed_us=record.made_us, writers=writers)
        report = dataclasses.replace(report, arrivals=written)
        if export is not None:
            record = self.peering.recorded(export, record)
            report = dataclasses.replace(report, arrivals=max(export.commits, written))
        with self.timing.of("commit"):
            commit(self.files, record)
            self.record = record
        with self.timing.of("tidy"):
            for path in refreshing.merged_away:
                self.files.remove_file(path)
            self.compactor.start(record.tables)
            self.inbox.forget(record.arrived)
            if export is not None:
                self.peering.finish(export, record)
        return report
