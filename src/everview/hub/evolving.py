"""Evolving: a hub's store goes over to another program.

The tables of relations stay as they are, but for those that get columns (see `widening`), and all views are
computed anew from them, as one refresh. Its record is the first with the new program, so a crash before it
leaves the old one. The gate goes over before that, in one transaction of its own, and where the store is not
on this machine's disk it has the gate's new state then; if there is no record after it, the migration is
begun again, and finds that done.

What was computed under the old program is read as it was (see `past`); a stream of changes starts anew.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from everview.engines.sqlite.evolving import Alone, Evolved, evolve
from everview.engines.sqlite.hosting import checked_hosts
from everview.engines.sqlite.names import HUB, STORE
from everview.engines.sqlite.scalars.storage import column_type
from everview.errors import ProgramError, StoreError
from everview.hub import offers
from everview.hub.changed import gone_table
from everview.hub.files import Files
from everview.hub.generations import restore, ship_whole
from everview.hub.large import LargeRefresh
from everview.hub.marks import GATE, gate_head
from everview.hub.opening import recover
from everview.hub.record import Record, commit, read, refreshes, require_epoch
from everview.hub.shapes import read_program
from everview.hub.tables import Catalog, catalog
from everview.hub.widening import widened_runs
from everview.language.evolution import Evolution
from everview.language.program import Program

__all__ = ["evolve_hub", "planned"]


def planned(files: Files, program: Program) -> tuple[Evolution, Record]:
    """What a store's program would become, and its last record; StoreError when there is no store."""
    numbers = refreshes(files)
    if not numbers:
        uri = files.uri("")
        raise StoreError(f"there is no hub at {uri}, so there is nothing to migrate", path=uri)
    record = read(files, numbers[-1])
    old = program if record.program == program.hash else read_program(files, record.program)
    return HubEvolution(old, program, record.ids), record


@dataclass(frozen=True)
class HubEvolution(Evolution):
    """Of an old hub more is refused: there a row is found by the hash of all its columns."""

    by_ids: bool = True

    @cached_property
    def refused(self) -> tuple[str, ...]:
        """What cannot be done safely: why, and what to do instead."""
        wider = [] if self.by_ids else [n for n in self.widened if not self.new.relations[n].key]
        return (
            *super().refused,
            *(
                f"{name} would get columns, and this hub's tables are from before they could: open a new hub "
                "in another folder with this program, and sync it with a site that has gone over"
                for name in wider
            ),
        )


def evolve_hub(spark: SparkSession, files: Files, evolution: Evolution, record: Record) -> Record:
    """Bring a store over, under its lease; return the record that it has then."""
    if evolution.refused:
        raise ProgramError(f"the hub cannot go over to this program: {'; '.join(evolution.refused)}")
    made = catalog(evolution.new)
    inbox = recover(files, record, record.name)
    if evolution.widened and (inbox.waiting(record.arrived) or any(offers.waiting(files, record.writers))):
        raise StoreError(
            "what was written to this hub waits for a refresh, with fewer columns than it would have then: "
            "open it with its program, refresh, and migrate again",
            path=files.uri(""),
        )
    if record.gate:
        _evolve_gate(files, evolution, record)
    before = _widened(spark, files, evolution, _before(record, made), made)
    if not record.refresh:
        after = before
    else:
        kept = msgspec.structs.replace(before, ids=record.ids)
        outcome = LargeRefresh(spark, files, made, kept, spark.sparkContext.defaultParallelism).run(
            [], made.groups
        )
        tables = {name: kept.runs(name) for name in made.names}
        tables |= {name: (run,) for name, run in outcome.written.items()}
        names = dict.fromkeys((*outcome.written, *outcome.replaced), uuid.uuid4().hex)
        after = msgspec.structs.replace(
            kept, refresh=record.refresh + 1, tables=tables, changed={**kept.changed, **names}
        )
    commit(files, after)
    return after


def _before(record: Record, made: Catalog) -> Record:
    """The record under the new program, with the relations alone."""
    relations = {table.name for table in made.relations}
    now = time.time_ns() // 1000
    return msgspec.structs.replace(
        record,
        levels=True,  # all that is computed is computed anew
        program=made.program.hash,
        number=record.number + 1,
        epoch=record.epoch + 1,
        made_us=now,
        refreshed_us=now,
        tables={name: runs for name, runs in record.tables.items() if name in relations},
        changed={name: word for name, word in record.changed.items() if name in relations},
    )


def _widened(
    spark: SparkSession, files: Files, evolution: Evolution, record: Record, made: Catalog
) -> Record:
    """A record whose tables have the columns that their relations get."""
    tables, changed = dict(record.tables), dict(record.changed)
    for table in made.relations:
        if table.relation.name in evolution.widened:
            width = len(evolution.old.relations[table.relation.name].schema)
            tables[table.name] = widened_runs(spark, files, table, record.runs(table.name), width)
            changed[table.name] = uuid.uuid4().hex
    return msgspec.structs.replace(record, tables=tables, changed=changed)


def _evolve_gate(files: Files, evolution: Evolution, record: Record) -> None:
    """The replica by which the hub talks with sites; who opens the hub may do so on another machine."""
    near = files.near()
    path = near.local(GATE)
    is_far = near is not files
    if is_far:
        restore(files, path, gate_head(near))
    if not Path(path).is_file():
        return  # the hub says what to do about that
    _evolve_file(path, evolution)
    if is_far:
        ship_whole(files, path, lambda: require_epoch(files, record))


def _evolve_file(path: str, evolution: Evolution) -> None:
    """All at once, if it has not been done yet."""
    new = evolution.new
    published = [view.name for view in new.views.values() if view.authority is not None]
    with Alone(path) as connection:
        (held,) = connection.execute(f"SELECT program_hash FROM {STORE}").fetchone()
        if held == new.hash:
            return
        hosts = checked_hosts(new, [*new.relations, *published])
        evolved = evolve(connection, path, evolution, hosts, computes=False)
        _move_noted(connection, evolved)
        connection.execute(f"DELETE FROM {HUB}_announced")  # all is computed anew


def _move_noted(connection: sqlite3.Connection, evolved: Evolved) -> None:
    """What left a relation, and the hub has not heard of, goes with the relation's table."""
    old, new = evolved.old.relations, evolved.new.relations
    tables = {
        gone_table(old[name]): gone_table(new[name])
        for name in (*evolved.evolution.kept, *evolved.evolution.widened)
    }
    moving = {before: after for before, after in tables.items() if before != after}
    for before in moving:
        connection.execute(f"ALTER TABLE {before} RENAME TO {before}_moved")
    for before, after in moving.items():
        connection.execute(f"ALTER TABLE {before}_moved RENAME TO {after}")
    for name, columns in evolved.evolution.widened.items():
        stored = new[name]
        named = zip(stored.table.columns, stored.table.schema, strict=True)
        for column, field in list(named)[-len(columns) :]:
            connection.execute(
                f"ALTER TABLE {gone_table(stored)} ADD COLUMN {column} {column_type(field.type)}"
            )
