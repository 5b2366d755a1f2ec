"""A hub: a program's relations and views at scale, kept by Spark.

What Spark cannot compute exactly is refused when the hub is opened.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.relational import compile_plan
from everview.engines.spark.session import defaults, start_session
from everview.engines.spark.types import column_names, rows_of
from everview.errors import DataError, ProgramError, StoreError
from everview.hub.cluster import ClusterWorkshop
from everview.hub.contents import contents, local_rows
from everview.hub.explain import explain_view
from everview.hub.files import Files, open_files
from everview.hub.inbox import Arrival
from everview.hub.lease import Lease, hold
from everview.hub.opening import begin_epoch, recover
from everview.hub.record import commit, require_epoch
from everview.hub.refresh import Refreshing, RefreshReport
from everview.hub.screening import Rejected, Screening
from everview.hub.tables import Catalog, catalog
from everview.hub.workshop import DriverWorkshop, Workshop
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.relations import Relation, Semantics
from everview.planner.circuit.parts import plans_of

__all__ = ["Hub"]

DRIVER_ROWS = 1_000_000
"""How many rows the driver collects at once; more are left to the executors. Some 100 MB."""

_EACH_ARRIVAL = 8
"""How many rows a lookup may find for a row that has arrived, before the driver is not even tried."""

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]


class Hub:
    """What a program declares, at a folder or URI; open it with `Hub.open`."""

    def __init__(self, spark: SparkSession, files: Files, catalog: Catalog, name: str, lease: Lease) -> None:
        self.name = name
        self.program = catalog.program
        self._spark = spark
        self._files = files
        self._catalog = catalog
        self._lease = lease
        self._record = begin_epoch(files, catalog.program.hash)
        self._inbox = recover(files, self._record)
        self._screening = Screening(files, catalog.program)
        self._rejected: tuple[Rejected, ...] = ()
        self._driver_rows = DRIVER_ROWS
        self._closed = False

    @classmethod
    def open(
        cls, uri: str | Path, program: Program, *, spark: SparkSession | None = None, name: str = "hub"
    ) -> Hub:
        """The hub at a folder or URI, at its last refresh; `spark` None starts a local session.

        The hub works in a session of its own beside the given one, with the settings that its SQL needs.
        StoreError when a live hub has the store open (see `lease`).
        """
        files = open_files(uri)
        _check(program)
        kept = catalog(program)
        _check_plans(kept)
        lease = hold(files)
        try:
            return cls(_session(spark), files, kept, name, lease)
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
        """Bring everything that has arrived into the relations and all views, at once or not at all."""
        self._require_store()
        waiting = self._inbox.waiting(self._record.arrived)
        arrivals, rejected = self._screening.screen(waiting, self._driver_rows // _EACH_ARRIVAL)
        self._rejected += rejected
        if arrivals or not self._record.refresh:
            report = self._refresh(arrivals)
        else:
            report = RefreshReport(self._record.refresh, 0)
        told, self._rejected = self._rejected, ()
        return dataclasses.replace(report, rejected=told)

    def _refresh(self, arrivals: Sequence[Arrival]) -> RefreshReport:
        tasks = self._spark.sparkContext.defaultParallelism
        refreshing = Refreshing(self._catalog, self._workshop(arrivals, tasks), self._record)
        try:
            report = refreshing.run(arrivals)
        except Exception as error:
            unreadable = self._screening.blame(arrivals, error)
            if unreadable is None:
                raise
            raise unreadable from error
        commit(self._files, refreshing.record)
        self._record = refreshing.record
        self._inbox.forget(self._record.arrived)
        return report

    def table(self, name: str) -> DataFrame:
        """A relation or view as of the last refresh, its rows as often as they occur."""
        fields = self.program.schema(name)
        columns = zip(column_names(len(fields)), fields, strict=True)
        names = [f"{column} AS `{field.name.replace('`', '``')}`" for column, field in columns]
        return self._current(name).selectExpr(*names)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a relation or view as of the last refresh, sorted (see `language.order`)."""
        self._require_open()
        schema = self.program.schema(name)
        few = local_rows(self._files, self._catalog, self._record, name, self._driver_rows)
        return sorted_rows(rows_of(self._current(name), schema) if few is None else few)

    def explain(self, name: str) -> str:
        """How a view is kept: each operator, and how much is read to carry a change through it."""
        if name not in self.program.views:
            raise DataError(f"there is no view {name}", relation=name)
        return explain_view(self._catalog, name)

    def close(self) -> None:
        """Give the store up; the Spark session goes on, for others may use it."""
        if not self._closed:
            self._closed = True
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

    def _workshop(self, arrivals: Sequence[Arrival], tasks: int) -> Workshop:
        def enlarge(small: DriverWorkshop | None) -> Workshop:
            return ClusterWorkshop(self._spark, self._files, tasks, small)

        if _EACH_ARRIVAL * sum(arrival.rows for arrival in arrivals) > self._driver_rows:
            return enlarge(None)
        return DriverWorkshop(self._spark, self._files, tasks, self._driver_rows, enlarge)

    def _relation(self, name: str) -> Relation:
        if name in self.program.relations:
            return self.program.relations[name]
        if name in self.program.views:
            raise DataError(f"{name} is a view: write into the relations it reads", relation=name)
        raise DataError(f"there is no relation {name}", relation=name)

    def _current(self, name: str) -> DataFrame:
        self._require_open()
        self.program.schema(name)
        return contents(self._spark, self._files, self._catalog, self._record, name)


def _session(spark: SparkSession | None) -> SparkSession:
    session = (spark if spark is not None else start_session()).newSession()
    for setting in defaults():
        if setting.name.startswith("spark.sql.") and session.conf.isModifiable(setting.name):
            session.conf.set(setting.name, setting.value)
    return session


_LATER = {
    Semantics.KEYED: "PRIMARY KEY",
    Semantics.BAG: "semantics = 'bag'",
    Semantics.ADD_WINS: "semantics = 'add_wins'",
}


def _check(program: Program) -> None:
    """Refuse what the hub cannot keep yet, by name, before anything is stored."""
    for relation in program.relations.values():
        if relation.semantics in _LATER:
            raise ProgramError(
                f"{relation.name}: relations with {_LATER[relation.semantics]} are not supported "
                "on the hub yet",
                hint="declare it as a set relation",
            )


def _check_plans(catalog: Catalog) -> None:
    """Refuse, by the view's name, what Spark cannot run exactly: the rows may be few now and many later."""
    circuit = catalog.circuit
    for name in catalog.program.views:
        try:
            for plan in plans_of(circuit, name):
                compile_plan(plan, lambda scan: scan.name)
        except ProgramError as error:
            raise ProgramError(f"view {name}: {error.message}", hint=error.hint) from error
