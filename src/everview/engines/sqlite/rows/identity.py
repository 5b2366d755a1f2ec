"""Identity: a store that was copied or went back in time goes on as a new incarnation.

Its rows stay as they are: they are live rows like any. Nearly always opening finds out (`lineage`), before
anything was written, and then that is all.

Else a peer finds out: it has read a commit of which the store does not know, or has seen numbers that it has
not given. Then the store has written rows under numbers that others may know for other rows. It gives these
dots of its new incarnation. They are those since it was opened: no process goes back in time. What lies
beside the file says whether it is for certain the file that was closed last: then it was not put back.
Where it was opened several times without that, and told nobody anything meanwhile, they are those since the
first.

That is exact but for three cases. In none of them a row is lost.
- A backup made after such a second opening (a process died before), with rows that nobody had been told, and
  that were told later: others have these under their first dots, and get them under new ones, too. A bag then
  has them twice, and what others have deleted of them is there again. A warning says how many these may be.
- A store that has told what it wrote to somebody who did not find out. That one has the old dots and gets the
  new ones, too; and others have other rows under the old ones. When these meet, digests differ: an alarm, and
  `everview repair` reads the relation again from whoever is right.
- A store that nobody finds out, for who meets it has not read it, and it has given as many numbers as are
  known. That is an alarm, too, whenever somebody has seen as much as others of both pasts.
"""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.names import PAGES, STORE, TAGS
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.dots import dot
from everview.engines.sqlite.rows.ledger import (
    OPENED,
    PARTITIONS,
    REMOVED,
    SITES,
    VECTORS,
    Partition,
    number_sites,
    own_numbers,
)
from everview.engines.sqlite.store import Store

_TOLD = -1
"""In the place of a partition: what was told by then."""


def note_opening(connection: sqlite3.Connection, *, anew: bool = False) -> None:
    """Remember where the store is, unless it was opened before and has told nobody anything since."""
    (told,) = connection.execute(f"SELECT shown FROM {STORE}").fetchone()
    found = connection.execute(f"SELECT number FROM {OPENED} WHERE partition = {_TOLD}").fetchone()
    if found == (told,) and not anew:
        return
    connection.execute(f"DELETE FROM {OPENED}")
    rows = [(_TOLD, told), *own_numbers(connection).items()]
    connection.executemany(f"INSERT INTO {OPENED} VALUES (?, ?)", rows)


def opened_at(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the store's own last numbers when it was opened, by partition."""
    return dict(connection.execute(f"SELECT partition, number FROM {OPENED} WHERE partition <> {_TOLD}"))


def is_renamed(connection: sqlite3.Connection, store: Store) -> bool:
    """Whether the store was called something else when it wrote as who it is."""
    known = connection.execute(f"SELECT name FROM {SITES} WHERE number = ?", (store.ledger.site,)).fetchone()
    return known is not None and known[0] != store.name


def rename(connection: sqlite3.Connection, new: str, name: str) -> None:
    """Have a store be a new incarnation: nobody has read it, and it has read nothing in part."""
    number_sites(connection, [new], {new: name})
    connection.execute(f"UPDATE {STORE} SET incarnation = ?, shown = 0", (new,))
    for table in (PAGES, TAGS, OPENED):
        connection.execute(f"DELETE FROM {table}")
    connection.execute(f"UPDATE {PARTITIONS} SET summed = 0")  # `own` counts rows of the old one


def renew(connection: sqlite3.Connection, store: Store) -> int:
    """Take a new incarnation; return the number of the old one."""
    old = store.ledger.site
    rename(connection, store.environment.incarnation(), store.name)
    store.read_identity(connection)
    note_opening(connection, anew=True)
    return old


def rewrite(
    connection: sqlite3.Connection,
    commit: Commit,
    stored: StoredRows,
    partition: Partition,
    old: int,
    since: int,
) -> None:
    """Give rows of a partition that were written since the store was opened dots of the new incarnation.

    `old` is the number of the old one in the partition, and `since` its last number by then.

    Removals since then are told again by its vector, which moves wherever the old one's had. Only those of
    rows that were written since are not told: others may know other rows by these dots.
    """
    ledger = commit.ledger
    forgot = connection.execute(
        f"SELECT 1 FROM {VECTORS} WHERE partition = ? AND site = ? AND forgotten > ?",
        (partition.number, old, since),
    ).fetchone()
    moved = connection.execute(
        f"UPDATE {VECTORS} SET seen = ?1, changed = ?2, forgotten = min(forgotten, ?1) "
        "WHERE partition = ?3 AND site = ?4 AND seen > ?1",
        (since, commit.version, partition.number, old),
    ).rowcount
    if not moved:
        return
    base, low, high = ledger.base(partition), dot(old, since), dot(old + 1, 0)
    connection.execute(
        f"DELETE FROM {REMOVED} WHERE partition = ? AND dot > ? AND dot < ?",
        (partition.number, low, high),
    )
    for table in stored.tables:  # numbers stay as far apart as they were, above those of the new one
        connection.execute(
            f"UPDATE {table} SET dot = dot - ? + ?, version = ? WHERE dot > ? AND dot < ?",
            (low, base, commit.version, low, high),
        )
    stored.decide_anew(connection, commit.version)
    ledger.advance(connection, partition, _used(connection, stored, base), commit.version)
    if forgot:  # removals that are told again are not in the log
        connection.execute(
            f"UPDATE {VECTORS} SET forgotten = seen WHERE partition = ? AND site = ?",
            (partition.number, ledger.site_in(partition)),
        )
    connection.execute(f"UPDATE {PARTITIONS} SET summed = 0 WHERE number = ?", (partition.number,))
    commit.grown = True


def _used(connection: sqlite3.Connection, stored: StoredRows, base: int) -> int:
    """How many numbers lie between the dot before the first and the last one."""
    last = max(
        connection.execute(
            f"SELECT ifnull(max(dot), ?) FROM {table} WHERE dot > ? AND dot >> 40 = ? >> 40", (base,) * 3
        ).fetchone()[0]
        for table in stored.tables
    )
    return int(last) - base
