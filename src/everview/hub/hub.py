"""A hub: a program's relations and views at scale, kept by Spark.

Thin so far: set relations, views from the same plans as everywhere, one folder per version of a table.
What a program needs beyond that is refused when the hub is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.session import defaults, start_session
from everview.engines.spark.types import column_names, rows_of
from everview.errors import DataError, ProgramError, StoreError
from everview.hub.files import Files, open_files
from everview.hub.inbox import Inbox
from everview.hub.record import Record, commit, latest
from everview.hub.refresh import Refreshing, RefreshReport, change_text, planned
from everview.hub.tables import Table, stored_schema
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.relations import Relation, Semantics
from everview.planner.delta import State, strategies

__all__ = ["Hub"]

Rows = Iterable[Mapping[str, Any] | Sequence[Any]]


class Hub:
    """What a program declares, at a folder or URI; open it with `Hub.open`."""

    def __init__(self, spark: SparkSession, files: Files, program: Program, name: str) -> None:
        self.name = name
        self.program = program
        self._spark = spark
        self._files = files
        self._record = latest(files, program.hash)
        self._inbox = Inbox(files, self._record.arrived)
        self._closed = False

    @classmethod
    def open(
        cls, uri: str | Path, program: Program, *, spark: SparkSession | None = None, name: str = "hub"
    ) -> Hub:
        """The hub at a folder or URI, at its last refresh; `spark` None starts a local session.

        The hub works in a session of its own beside the given one, with the settings that its SQL needs.
        """
        files = open_files(uri)
        _check(program)
        session = (spark if spark is not None else start_session()).newSession()
        for setting in defaults():
            if setting.name.startswith("spark.sql.") and session.conf.isModifiable(setting.name):
                session.conf.set(setting.name, setting.value)
        return cls(session, files, program, name)

    def insert(self, relation: str, rows: DataFrame | Rows) -> int:
        """Write rows, or a DataFrame's, into a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=True)

    def delete(self, relation: str, rows: DataFrame | Rows) -> int:
        """Delete rows, or a DataFrame's, from a relation at the next refresh; how many were accepted."""
        return self._put(relation, rows, present=False)

    def refresh(self) -> RefreshReport:
        """Bring everything that has arrived into the relations and all views, at once or not at all."""
        self._require_open()
        arrivals = self._inbox.arrivals(self._record.arrived)
        if not arrivals and self._record.refresh:
            return RefreshReport(self._record.refresh, 0)
        refreshing = Refreshing(self._spark, self._files, self.program, self._record)
        report = refreshing.run(arrivals)
        commit(self._files, refreshing.record)
        self._drop(self._record, refreshing.record)
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
        return sorted_rows(rows_of(self._current(name), self.program.schema(name)))

    def explain(self, name: str) -> str:
        """How a view is kept: each operator with the way its change is found, and Spark's SQL for it."""
        if name not in self.program.views:
            raise DataError(f"there is no view {name}", relation=name)
        view = self.program.views[name]
        lines = [f"{name}: reads {', '.join(view.reads) or 'nothing'}"]
        lines += [f"  {type(node).__name__}: {how}" for node, how in strategies(planned(view.plan))]
        text = change_text(view.plan, frozenset(view.reads), lambda scan: f"`{scan.name}`")
        return "\n".join([*lines, text or "never changes"])

    def close(self) -> None:
        """Give the store up; the Spark session goes on, for others may use it."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} is closed: open it again")

    def _put(self, name: str, rows: DataFrame | Rows, *, present: bool) -> int:
        self._require_open()
        relation = self._relation(name)
        if isinstance(rows, DataFrame):
            return self._inbox.put_frame(relation, rows, present=present)
        return self._inbox.put_rows(relation, rows, present=present)

    def _relation(self, name: str) -> Relation:
        if name in self.program.relations:
            return self.program.relations[name]
        if name in self.program.views:
            raise DataError(f"{name} is a view: write into the relations it reads", relation=name)
        raise DataError(f"there is no relation {name}", relation=name)

    def _current(self, name: str) -> DataFrame:
        self._require_open()
        fields = self.program.schema(name)
        folder = self._record.tables.get(name)
        schema = stored_schema(fields)
        if folder is None:
            return self._spark.createDataFrame([], schema).select(*column_names(len(fields)))
        stored = self._spark.read.schema(schema).parquet(self._files.uri(folder))
        table = Table("{stored}", fields, is_relation=name in self.program.relations, touched=False)
        return self._spark.sql(f"SELECT * FROM {table.from_item(State.NEW)}", stored=stored)

    def _drop(self, before: Record, after: Record) -> None:
        """Remove the versions that the refresh before last still needed; readers of the last keep theirs."""
        for name, folder in before.tables.items():
            if after.tables[name] != folder:
                parent, _, kept = folder.rpartition("/")
                for entry in self._files.list(parent):
                    if entry < kept:
                        self._files.remove(f"{parent}/{entry}")


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
    for view in program.views.values():
        for touched in (None, frozenset(view.reads)):
            try:
                change_text(view.plan, touched, lambda scan: scan.name)
            except ProgramError as error:
                raise ProgramError(f"view {view.name}: {error.message}", hint=error.hint) from error
