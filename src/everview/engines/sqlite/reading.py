"""Reading: queries, whole tables, and what there is to know about a store."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everview.engines.sqlite.batch import Batch
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.partitions import said
from everview.engines.sqlite.rows.conflicts import lost_sql
from everview.engines.sqlite.rows.keyed import KeyedRows
from everview.engines.sqlite.rows.ledger import hosted_parts
from everview.engines.sqlite.rows.merged import MergedRows
from everview.engines.sqlite.scalars.expressions import bind_parameters
from everview.engines.sqlite.scalars.storage import load_rows
from everview.engines.sqlite.store import Store
from everview.language.conflicts import conflicts_schema
from everview.language.expressions import Parameter
from everview.language.plan import Plan, Scan, Schema
from everview.language.relations import Relation
from everview.planner.rewrite import rewrite

Row = tuple[Any, ...]

KNOWN_PLANS = 256
"""How many rewritten plans are remembered, for queries that are asked again."""


class Reading:
    """Runs plans over the stored relations and views; `inside` a transaction it sees that one's writes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._rewrite = functools.lru_cache(maxsize=KNOWN_PLANS)(rewrite)

    def rows_of(
        self,
        plan: Plan,
        parameters: Mapping[Parameter, Any] | None = None,
        *,
        inside: bool,
        strict: bool = True,
    ) -> list[Row]:
        """Return the rows of a plan, duplicates repeated; a failing expression raises unless not strict."""
        sql = self.batch(parameters, strict=strict).query(self._rewrite(plan))
        return self.fetch(sql, plan, parameters, inside=inside)

    def batch(self, parameters: Mapping[Parameter, Any] | None = None, *, strict: bool = True) -> Batch:
        """Return a compiler of plans over the stored tables."""
        return Batch(self.store.engine.rows_sql, strict, parameters)

    def fetch(
        self, sql: str, plan: Plan, parameters: Mapping[Parameter, Any] | None = None, *, inside: bool
    ) -> list[Row]:
        """Run a SELECT of a plan's columns and weight; return Python rows, duplicates repeated."""
        bound = bind_parameters(parameters or {})
        with self.store.reading(inside=inside) as handle, handle.failures.surfaced():
            return _loaded(plan.schema, handle.connection.execute(sql, bound).fetchall())

    def sorted_rows(self, name: str, *, inside: bool) -> list[Row]:
        """Return all rows of a relation or view, column by column, NULLs last, NaN greatest."""
        schema = self.store.program.schema(name)
        order = ", ".join(f"{column} NULLS LAST" for column in columns(len(schema)))
        sql = f"SELECT * FROM ({self.store.engine.rows_sql(name)}) ORDER BY {order}"
        with self.store.reading(inside=inside) as handle:
            return _loaded(schema, handle.connection.execute(sql).fetchall())

    def conflicts(self, relation: Relation, *, inside: bool) -> list[Row]:
        """Return the rows of a relation that lost, each with its author's name and its time."""
        stored: Any = self.store.engine.relations[relation.name]
        if not isinstance(stored, KeyedRows | MergedRows):
            return []
        shown = [f"h.{column}" for column in stored.table.columns]
        order = ", ".join(f"h.{key}" for key in stored.table.key())
        sql = f"{lost_sql(stored, [*shown])} ORDER BY {order}, time, author"
        types = [field.type for field in conflicts_schema(relation)]
        with self.store.reading(inside=inside) as handle:
            return list(load_rows(types, handle.connection.execute(sql).fetchall()))

    def count(self, name: str, *, inside: bool) -> int:
        """Return how many rows a relation or view has."""
        sql = f"SELECT coalesce(sum(w), 0) FROM ({self.store.engine.rows_sql(name)})"
        with self.store.reading(inside=inside) as handle:
            return int(handle.connection.execute(sql).fetchone()[0])

    def status(self, *, inside: bool) -> dict[str, Any]:
        """Return the site's name, incarnation, commits, sizes and failed expressions."""
        with self.store.snapshot(inside=inside):
            return self._status(inside=inside)

    def _status(self, *, inside: bool) -> dict[str, Any]:
        with self.store.reading(inside=inside) as handle:
            digest, site, incarnation, version, failures = handle.connection.execute(
                f"SELECT program_hash, site, incarnation, version, failures FROM {STORE}"
            ).fetchone()
            parts = hosted_parts(handle.connection)
        path = Path(self.store.file)
        program, hosted = self.store.program, self.store.engine.hosted()
        values = {
            name: [said(program.relations[name], choice) for choice in sorted(choices)]
            for name, choices in parts.items()
        }
        return {
            "path": self.store.path,
            "name": self.store.name or site,
            "incarnation": incarnation,
            "commits": version,
            "program": digest,
            "failed_expressions": failures,
            "bytes": path.stat().st_size if not self.store.in_memory else 0,
            "relations": {n: self.count(n, inside=inside) for n in hosted if n in program.relations},
            "views": {n: self.count(n, inside=inside) for n in hosted if n in program.views},
        } | ({"values": values} if values else {})


def scanned(plan: Plan) -> set[str]:
    """The relations and views that a plan reads."""
    found, wanted = set(), [plan]
    while wanted:
        part = wanted.pop()
        if isinstance(part, Scan):
            found.add(part.name)
        wanted += part.inputs
    return found


def _loaded(schema: Schema, found: list[Row]) -> list[Row]:
    """Values from stored rows that end with how often they are there."""
    repeated = [row[:-1] for row in found for _ in range(row[-1])]
    return list(load_rows([column.type for column in schema], repeated))
