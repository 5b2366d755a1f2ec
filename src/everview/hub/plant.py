"""What all tasks of a large refresh know, and how what they make is sent on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from everview.engines.spark.hashing import Hashes
from everview.engines.spark.types import arrow_schema
from everview.hub.files import Files
from everview.hub.memory import Memory
from everview.hub.operating import operate
from everview.hub.outcome import Change
from everview.hub.routing import Parcel, packed_for, scattered, target_of_all, with_hashes
from everview.hub.runs import Layout, Part
from everview.hub.tables import Hashed
from everview.language.plan import Plan, Scan, Schema, walk_plan
from everview.planner.circuit import Kept, Operator
from everview.planner.circuit.parts import delta_scan, sources
from everview.planner.circuit.weighted import present, sum_up

__all__ = ["RESULTS", "TICKET", "Plant", "Result"]

RESULTS = "!"
"""The stream of what the driver is told in the end."""

TICKET = "?"
"""The stream of what brings a task to a range where nothing has come."""


@dataclass(frozen=True, slots=True)
class Result:
    """A part of a table that was written, or how many rows of a relation or view came and went."""

    name: str
    part: Part | None = None
    change: Change | None = None

    def encoded(self) -> bytes:
        """As JSON, for which a task needs no more than Python has."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True)
class Plant:
    """What all tasks know."""

    files: Files
    targets: int
    version: int
    kept: tuple[Kept, ...]
    """The kept rows that may change."""
    stateless: tuple[Operator, ...]
    views: Mapping[str, str]
    """The table of a view → its name."""
    layouts: Mapping[str, Layout]
    hashed: Mapping[str, Hashed]
    parts: Mapping[str, tuple[Part, ...]]
    """The runs in which something is looked up."""
    anew: frozenset[str] = frozenset()
    """The operators and kept rows that are computed anew, from nothing."""
    scanned: frozenset[str] = frozenset()
    """The relations all of whose rows these read."""
    replaced: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """The runs of the views among them as they were."""

    def emit(
        self, memory: Memory, produced: Mapping[str, pa.Table], whole: Mapping[str, pa.Table]
    ) -> Iterator[Parcel]:
        """Send on what follows from the changes of relations and operators; what is anew, from whole ones.

        All of it goes row by row, so that it does not matter where the rest of a change is.
        """
        anew = {name: rows for name, rows in produced.items() if name in self.anew}
        changed = {name: rows for name, rows in produced.items() if name not in self.anew}
        yield from self._follow(memory, changed, anew=False)
        yield from self._follow(memory, {**whole, **anew}, anew=True)

    def _follow(self, memory: Memory, produced: dict[str, pa.Table], *, anew: bool) -> Iterator[Parcel]:
        for name, rows in produced.items():
            memory.put(delta_scan(name, ()).name, (), rows)
        for operator in self.stateless:
            if (operator.name in self.anew) != anew:
                continue
            if operator.reads & produced.keys() and operator.change is not None:
                _put_missing(memory, operator.change, produced)
                rows = operate(memory, operator, touched=True, first=False)
                if rows is not None:
                    produced[operator.name] = rows
                    memory.put(delta_scan(operator.name, ()).name, operator.schema, rows)
        for kept in self.kept:
            if (kept.name in self.anew) == anew and sources(kept.change) & produced.keys():
                _put_missing(memory, kept.change, produced)
                yield from self._send(kept, self._changed(memory, kept))

    def _changed(self, memory: Memory, kept: Kept) -> pa.Table:
        """A part of the change of kept rows; where few groups have many rows, summed up already."""
        grouped = len(kept.keys) == kept.width and kept.name not in self.views
        memory.run("@sent", present(sum_up(kept.change, kept.width), kept.width) if grouped else kept.change)
        return memory.table("@sent")

    def _send(self, kept: Kept, rows: pa.Table) -> Iterator[Parcel]:
        if not rows.num_rows:
            return
        hashes = self.hashes(kept.name, kept.schema, rows)
        if kept.keys:
            yield from scattered(kept.name, rows, hashes, self.targets)
            return
        targets = range(self.targets) if kept.everywhere else [target_of_all(self.targets)]
        for target in targets:
            yield from packed_for(target, kept.name, with_hashes(rows, hashes))

    def hashes(self, table: str, schema: Schema, rows: pa.Table) -> Hashes:
        """The hashes by which the rows of a table are found."""
        return self.hashed[table].of(schema, rows)


def _put_missing(memory: Memory, plan: Plan, produced: Mapping[str, pa.Table]) -> None:
    """Deltas that others make are empty here."""
    for node in walk_plan(plan):
        if isinstance(node, Scan) and node.name.removesuffix("@delta") not in produced:
            memory.put(node.name, node.schema, arrow_schema(node.schema).empty_table())
