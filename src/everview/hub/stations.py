"""What a task of a large refresh does: one stage, for the rows of one range of hashes.

All that an operator reads of a key lies in the range of the key's hash: the changes come here from other
tasks, what is kept is found in files. So a task works as the driver does on few rows, and sends what it has
made on to the tasks of the next stage.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from everview.engines.spark.hashing import Hashes
from everview.engines.spark.types import arrow_schema
from everview.hub.asking import request, wanted_by
from everview.hub.finding import Stored
from everview.hub.lookup import open_part
from everview.hub.memory import Memory
from everview.hub.operating import found_table, is_too_little, operate, put_found
from everview.hub.outcome import weights
from everview.hub.plant import RESULTS, TICKET, Plant, Result
from everview.hub.relations import LatticeTable
from everview.hub.relations.base import Joined
from everview.hub.routing import Parcel, batched, parcels, range_of, read_rows, target_of_all
from everview.hub.runs import FOLDER, HASH, Part, distinct, gathered, merged, packed, sealed
from everview.hub.searching import Request, search
from everview.hub.stages import Stage
from everview.planner.circuit import Kept, Operator
from everview.planner.circuit.parts import WEIGHT, changed_scan

__all__ = ["running"]

_ALL = -(2**63), 2**63 - 1

Batches = Iterator[pa.RecordBatch]


def running(plant: Plant, stage: Stage) -> Callable[[Batches], Batches]:
    """The task of a stage."""
    needed = stage.needed

    def run(batches: Batches) -> Iterator[Parcel]:
        streams: dict[str, list[pa.Buffer]] = {}
        target = -1
        for parcel in parcels(batches):
            target = parcel.target
            if parcel.stream in (RESULTS, TICKET) or parcel.stream in stage.passed:
                yield parcel
            if parcel.stream in needed:
                streams.setdefault(parcel.stream, []).append(parcel.payload)
        if target >= 0:
            yield from _Station(plant, stage, target, streams).run()

    return lambda batches: batched(run(batches))


class _Station:
    def __init__(
        self, plant: Plant, stage: Stage, target: int, streams: Mapping[str, Sequence[pa.Buffer]]
    ) -> None:
        self._plant = plant
        self._stage = stage
        self._target = target
        self._streams = streams
        self._range = range_of(target, plant.targets)
        self._opened = open_part(plant.files)
        self._memory = Memory()
        self._rows: dict[str, pa.Table] = {}
        self._pending: list[tuple[str, pa.Table]] = []
        self._results: list[Result] = []

    def run(self) -> Iterator[Parcel]:
        produced: dict[str, pa.Table] = {}
        whole: dict[str, pa.Table] = {}
        for table in self._stage.merged:
            grown = None
            if table.name in self._streams:
                produced[table.relation.name], grown = self._merge(table)
            if table.relation.name in self._plant.scanned:
                whole[table.relation.name] = self._whole(table, grown)
        for operator in self._stage.operators:
            if any(kept.name in self._streams for kept in operator.kept):
                change = self._operate(operator)
                if change is not None and change.num_rows:
                    produced[operator.name] = change
        yield from self._plant.emit(self._memory, produced, whole)
        for kept in self._stage.written:
            if kept.everywhere and self._target != target_of_all(self._plant.targets):
                continue  # another one writes it
            if kept.name in self._streams or kept.name in self._plant.replaced:
                self._keep(kept)
        self._write()
        for result in self._results:
            yield Parcel(self._target, RESULTS, result.encoded())
        self._memory.close()

    def _table(self, stream: str) -> pa.Table:
        """What has come in a stream, hashes first."""
        if stream not in self._rows:
            self._rows[stream] = read_rows(self._streams[stream])
        return self._rows[stream]

    def _merge(self, table: LatticeTable) -> tuple[pa.Table, pa.Table | None]:
        """Join what has come with what is stored; the change of the relation, and what is stored anew."""
        come = self._table(table.name)
        parts, stored = self._plant.parts[table.name], None
        if parts:
            asked = Request(parts, table.layout, distinct(come.column(HASH).to_numpy()))
            stored = search(asked, *self._range, self._opened, None)
        joined = table.joined(come, stored, self._plant.version)
        grown, change = self._by_plans(table, come, stored) if joined is None else joined
        self._count(table.relation.name, change)
        if not grown.num_rows:
            return change, None
        self._pending.append((table.name, grown))
        return change, grown

    def _by_plans(self, table: LatticeTable, come: pa.Table, stored: pa.Table | None) -> Joined:
        memory = self._memory
        put_found(memory, table.found, stored)
        memory.put(table.arrived.name, table.arrived.schema, come.drop_columns([HASH]))
        for name, plan in table.steps():
            memory.run(name, plan)
        memory.run("@grown", table.growth(self._plant.version))
        memory.run("@change", table.change())
        grown = memory.table("@grown")
        hashes = self._plant.hashes(table.name, table.schema, grown)
        return sealed(grown, hashes, table.layout), memory.table("@change")

    def _whole(self, table: LatticeTable, grown: pa.Table | None) -> pa.Table:
        """All rows of a relation in this range."""
        stored = self._all(table.name, self._plant.parts[table.name])
        runs = [run for run in (stored, grown) if run is not None]
        if not runs:
            return arrow_schema((*table.relation.schema, WEIGHT)).empty_table()
        return table.whole(merged(runs, table.layout))

    def _all(self, table: str, parts: tuple[Part, ...]) -> pa.Table | None:
        return search(Request(parts, self._plant.layouts[table], None), *self._range, self._opened, None)

    def _count(self, name: str, delta: pa.Table) -> None:
        change = weights(delta)
        if change is not None:
            self._results.append(Result(name, change=change))

    def _operate(self, operator: Operator) -> pa.Table | None:
        """The change of an operator in this range."""
        for kept in operator.kept:
            rows = arrow_schema(kept.schema)
            if kept.name in self._streams:
                changed = self._table(kept.name).drop_columns([HASH])
            else:
                changed = rows.empty_table()
            self._memory.put(changed_scan(kept).name, kept.schema, changed)
        for wanted in wanted_by(operator, self._plant.layouts, self._plant.hashed):
            parts = self._plant.parts[wanted.table]
            low, high = self._range if wanted.lookups[0].kept.keys else _ALL
            for one in (wanted, replace(wanted, spared=False)):
                asked = request(self._memory, parts, one)
                put_found(self._memory, found_table(one), search(asked, low, high, self._opened, None))
                if not is_too_little(self._memory, one):
                    break
        plant = self._plant
        finder = Stored(lambda name: plant.parts[name], plant.layouts, plant.hashed, self._opened)
        return operate(self._memory, operator, touched=True, first=False, finder=finder, within=self._range)

    def _keep(self, kept: Kept) -> None:
        """Sort kept rows; the same ones meet here and are added up."""
        layout = self._plant.layouts[kept.name]
        made = None
        if kept.name in self._streams:
            rows = self._table(kept.name)
            hashes: Hashes = rows.column(HASH).to_numpy()
            made = gathered(rows.drop_columns([HASH]), hashes, layout)
            if made.num_rows:
                self._pending.append((kept.name, made))
        if kept.name in self._plant.replaced:
            made = self._difference(kept, made)
        if kept.name in self._plant.views and made is not None:
            self._count(self._plant.views[kept.name], made)

    def _difference(self, kept: Kept, made: pa.Table | None) -> pa.Table | None:
        """What is new of a view against what it was."""
        old = self._all(kept.name, self._plant.replaced[kept.name])
        if old is not None:
            last = old.num_columns - 1
            old = old.set_column(last, old.field(last), pc.negate(old.column(last)))
        both = [run for run in (made, old) if run is not None]
        return merged(both, self._plant.layouts[kept.name]) if both else None

    def _write(self) -> None:
        """All runs go into one file."""
        path = f"{FOLDER}/{uuid.uuid4().hex}.arrow"
        content, parts = packed(path, [table for _, table in self._pending])
        if parts:
            self._plant.files.create(path, content)
        named = zip(self._pending, parts, strict=True)
        self._results += [Result(name, part=part) for (name, _), part in named]
