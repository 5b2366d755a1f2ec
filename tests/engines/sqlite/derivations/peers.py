"""Engines that exchange chunks, without a protocol: cuts are lost, doubled, late, and come in any order."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field

from everview.engines.sqlite.circuits import totals
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.ids import Ids, IdTable
from everview.engines.sqlite.names import SITES
from everview.engines.sqlite.parts import Arrival
from everview.engines.sqlite.relations.commit import Commit
from everview.engines.sqlite.scalars import functions
from everview.engines.sqlite.scalars.storage import load_rows, store_rows
from everview.engines.sqlite.schema import REPLICATION_DDL

FOREVER = 2**62


@dataclass
class Peer:
    """One engine on a database in memory; `number` is its incarnation, and the same everywhere.

    Changes are made and summed up only of what is followed.
    """

    engine: Engine
    number: int
    connection: sqlite3.Connection = None
    version: int = 0
    shown: dict = field(default_factory=dict)

    def __post_init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        functions.register(self.connection, lambda _what: None)
        totals.register(self.connection, lambda _what: None)
        self.engine.prepare(self.connection)
        for statement in REPLICATION_DDL:
            self.connection.execute(statement)
        for number in range(20):
            self.connection.execute(f"INSERT INTO {SITES} VALUES (?, ?, '')", (number, f"{number:03}"))
        self.connection.execute(
            f"UPDATE {SITES} SET incarnation = ? WHERE number = 0", (f"{self.number:03}",)
        )
        self.engine.create(self.connection)

    def index(self):
        """Make the indexes of a site that has peers."""
        self.engine.index_versions(self.connection)
        for stream in self.engine.offers:
            self.engine.index_versions(self.connection, stream)

    def follow(self, name):
        """Sum up what is told of changes from now on."""
        self.engine.nodes[name].delta()
        self.shown[name] = Counter(self.stored_rows(name))

    def _changed(self, connection, deltas):
        for name in self.shown:
            for branch in self.engine.nodes[name].delta():
                if branch.needs <= deltas:
                    for *row, weight in connection.execute(branch.sql()):
                        self.shown[name][tuple(row)] += weight

    # Writing here.

    def write(self, action, relation, rows, *, stamp=0, floors=None):
        self.version += 1
        stored = store_rows([f.type for f in self.engine.program.schema(relation)], rows)
        commit = Commit(self.version, stamp=stamp or self.version, site=self.number, floors=floors or {})
        verb = getattr(self.engine, action)
        return verb(self.connection, relation, stored, commit, self._changed)

    def latest(self):
        """The greatest stamp that is known here."""
        tables = [r.table.name for r in self.engine.relations.values() if hasattr(r, "future")]
        return max(
            (self.connection.execute(f"SELECT ifnull(max(stamp), 0) FROM {t}").fetchone()[0] for t in tables),
            default=0,
        )

    # Cuts.

    def cut(self, stream, since, *, limit=3):
        """Read all parts page by page: (stream, head, [(part, rows)]), with sites as they are everywhere."""
        sections = []
        for number, part in enumerate(self.engine.offered(stream).parts):
            sites = [i for i, column in enumerate(part.columns) if column.word == "site"]
            after = None
            while True:
                chunk = part.read(self.connection, since, after, limit)
                rows = [
                    tuple(self.number if i in sites and cell == 0 else cell for i, cell in enumerate(row))
                    for row in chunk.rows
                ]
                assert all(len(row) == len(part.columns) for row in rows)
                sections.append((number, rows))
                if chunk.reached is None:
                    break
                after = chunk.reached
        return stream, self.version, sections

    def take(self, cut, *, limit=FOREVER):
        """Apply a cut in one commit; what grew no row uses up no number."""
        stream, _, sections = cut
        source, parts = self.engine.sources[stream], self.engine.streams[stream].parts
        grown = 0
        for number, columns in with_places(parts, sections):
            grown += parts[number].merge(self.connection, Arrival(columns, self.version + 1, limit=limit))
        self.version += bool(grown)
        self.engine.propagate(self.connection, (source.delta,), self._changed, shrinks=True)
        return grown

    # Reading.

    def stored_rows(self, name):
        found = self.connection.execute(self.engine.rows_sql(name)).fetchall()
        rows = Counter()
        for *row, weight in found:
            rows[tuple(row)] += weight
        return rows

    def rows(self, name):
        types = [f.type for f in self.engine.program.schema(name)]
        rows = self.stored_rows(name)
        return Counter(dict(zip(map(tuple, load_rows(types, list(rows))), rows.values(), strict=True)))

    def check_told(self):
        """What was told of changes adds up to what is there."""
        for name, told in self.shown.items():
            assert {r: w for r, w in told.items() if w} == dict(self.stored_rows(name)), name


def with_places(parts, sections):
    """Sections as a message brings them: column by column, ids as places in one table."""
    table = {}
    found = []
    for number, rows in sections:
        columns = [list(column) for column in zip(*rows, strict=True)]
        for index, column in enumerate(parts[number].columns if rows else ()):
            if column.word == "id":
                columns[index] = [table.setdefault(id_, len(table)) for id_ in columns[index]]
        found.append((number, columns))
    shared = IdTable(b"".join(table))
    return [
        (
            number,
            [
                Ids(shared, cells) if column.word == "id" else cells
                for cells, column in zip(columns, parts[number].columns, strict=True)
            ],
        )
        for number, columns in found
        if columns
    ]
