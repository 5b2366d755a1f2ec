"""Endings: stores that are lost for good, as somebody has said once.

A view without its inputs may have seen commits of a lost store that no holder of an input has, and never
will have. Such a view can never be completed. It starts empty, and is read again from those that know less.

Whoever gives a store up knows little. So with each relation goes the last number that any holder is known to
have: holders raise it by what they have, and by what other holders tell them.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from everview.engines.sqlite.names import PAGES
from everview.engines.sqlite.rows.base import GONE
from everview.engines.sqlite.rows.ledger import (
    ENDED,
    NOT_LOGGED,
    PARTITIONS,
    REMOVED,
    SITES,
    VECTORS,
    vector,
)
from everview.engines.sqlite.rows.peers import CURSORS
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.errors import DataError

__all__ = ["Ending", "Endings"]

_LOG = logging.getLogger("everview")

_INCARNATION = re.compile(r"[0-9a-f]{16}", re.ASCII)

_KNOWN = (
    f"SELECT e.stream, e.incarnation, max(e.last, ifnull(v.seen, 0)) AS last, s.number, "
    f"max(e.version, iif(v.seen > e.last, v.changed, 0)) AS version FROM {ENDED} AS e "
    f"LEFT JOIN {SITES} AS s ON s.incarnation = e.incarnation AND s.partition = 0 "
    f"LEFT JOIN {PARTITIONS} AS p ON p.stream = e.stream AND p.value = '' "
    f"LEFT JOIN {VECTORS} AS v ON v.partition = p.number AND v.site = s.number"
)
"""What is known of endings, raised by what is held here."""


Seen = Mapping[int, int]
"""Site → the last number seen."""


class Ending(NamedTuple):
    """Of a lost store and a relation, the last number that any holder is known to have."""

    stream: str
    incarnation: str
    last: int


class Endings:
    """What a store knows of lost ones. It is written within a commit that is under way."""

    def __init__(self, store: Store, writing: Writing) -> None:
        self._store, self._writing = store, writing

    def told(self, connection: sqlite3.Connection, since: int) -> Iterator[Ending]:
        """Yield what has become known since a local version."""
        for stream, incarnation, last, *_ in connection.execute(
            f"SELECT * FROM ({_KNOWN}) WHERE version > ?", (since,)
        ):
            yield Ending(stream, incarnation, last)

    def named(self, connection: sqlite3.Connection, name: str) -> str:
        """Return the incarnation of the one store that is called so, but for those that were given up."""
        own = self._store.incarnation
        known = dict(connection.execute(f"SELECT incarnation, name FROM {SITES}"))
        known.pop(own, None)
        over = {one for (one,) in connection.execute(f"SELECT incarnation FROM {ENDED}")}
        if name != own and (name in known or _INCARNATION.fullmatch(name)):
            return name
        called = [one for one, label in known.items() if label == name]
        found = [one for one in called if one not in over] or called
        if len(found) == 1:
            return str(found[0])
        if found:
            problem = f"{len(found)} stores are called {name!r}; name one of {', '.join(sorted(found))}"
        else:
            others = sorted(f"{label} ({one})" if label else one for one, label in known.items())
            problem = (
                f"{name!r} is none of the other stores that are known here: {', '.join(others) or 'none'}"
            )
        raise DataError(problem, value=name)

    def give_up(self, connection: sqlite3.Connection, incarnation: str) -> None:
        """Say that a store will not come back."""
        relations = self._store.program.relations.values()
        streams = [relation.name for relation in relations if not relation.local]
        self.hear(connection, [Ending(stream, incarnation, 0) for stream in streams])

    def new(self, connection: sqlite3.Connection, told: Iterable[Ending]) -> list[Ending]:
        """Return those of some endings that say more than is known here."""
        known = {
            (stream, incarnation): last
            for stream, incarnation, last in connection.execute(
                f"SELECT stream, incarnation, last FROM ({_KNOWN})"
            )
        }
        return [one for one in told if known.get((one.stream, one.incarnation), -1) < one.last]

    def hear(self, connection: sqlite3.Connection, told: Iterable[Ending]) -> None:
        """Remember endings; views here that go beyond them start empty."""
        commit, found = self._writing.commit, self.new(connection, told)
        if not found:
            return
        connection.executemany(
            f"INSERT INTO {ENDED} VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
            "SET last = excluded.last, version = excluded.version",
            ((one.incarnation, one.stream, one.last, commit.version) for one in found),
        )
        commit.grown = True
        ledger, engine = self._store.ledger, self._store.engine
        partitions = {stream: ledger.partition(connection, stream).number for stream in engine.hollow}
        if any(self._is_beyond(connection, s, vector(connection, n)) for s, n in partitions.items()):
            _LOG.warning("views have seen what was lost with other stores: they are read again")
            self._empty(connection, partitions)

    def fits(self, connection: sqlite3.Connection, inputs: Mapping[str, tuple[Seen, bool]]) -> bool:
        """Whether what a cut leads inputs to is within what holders have; each says whether a holder told it.

        A holder vouches for what it has, whether or not it has heard of an ending.
        """
        for stream, (seen, is_holder) in inputs.items():
            if is_holder:
                relation = self._store.engine.written_in(stream)
                known = connection.execute(
                    f"SELECT * FROM ({_KNOWN}) WHERE stream = ?", (relation,)
                ).fetchall()
                told = [Ending(relation, one, seen.get(site, 0)) for _, one, _, site, _ in known]
                self.hear(connection, told)
        return not any(self._is_beyond(connection, stream, seen) for stream, (seen, _) in inputs.items())

    def _is_beyond(self, connection: sqlite3.Connection, stream: str, seen: Seen) -> bool:
        """Whether an input of a view has seen more of a lost store than any holder has."""
        lost = connection.execute(
            f"SELECT number, last FROM ({_KNOWN}) WHERE stream = ? AND number IS NOT NULL",
            (self._store.engine.written_in(stream),),
        )
        return any(seen.get(site, 0) > last for site, last in lost)

    def _empty(self, connection: sqlite3.Connection, partitions: Mapping[str, int]) -> None:
        """Forget all inputs without their values, and how far others were read."""
        store, commit, collect = self._store, self._writing.commit, self._writing.collect
        for stream, number in partitions.items():
            stored = store.engine.hollow[stream]
            connection.execute(f"DELETE FROM {GONE}")
            for table in stored.tables:
                connection.execute(f"INSERT INTO {GONE} SELECT dot FROM {table}")
            stored.remove(connection, commit.version)
            store.engine.propagate(connection, (stored.delta,), collect, shrinks=True)
            if followed := stored.follow(connection):
                store.engine.propagate(connection, followed, collect, shrinks=True)
            for table in (VECTORS, REMOVED):
                connection.execute(f"DELETE FROM {table} WHERE partition = ?", (number,))
            connection.execute(
                f"UPDATE {PARTITIONS} SET floor = iif(floor = {NOT_LOGGED}, floor, ?) WHERE number = ?",
                (commit.version, number),
            )
        for table in (CURSORS, PAGES):
            connection.execute(f"DELETE FROM {table}")
        store.ledger.forget()
        store.ledger.load(connection)
