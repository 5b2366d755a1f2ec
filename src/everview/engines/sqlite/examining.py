"""Looking at a store's file, tables and views: whether they can be what they should be."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from everview.engines.sqlite.complaints import RESTORE, Explained
from everview.engines.sqlite.names import FORMAT, STORE
from everview.engines.sqlite.opening import APPLICATION_ID
from everview.engines.sqlite.reading import Reading, scanned
from everview.engines.sqlite.rows.lineage import Lineage, Strange
from everview.engines.sqlite.stamps import microseconds
from everview.engines.sqlite.store import Store
from everview.errors import EverviewError
from everview.planner.rewrite import rewrite

Level = Literal["fine", "warning", "error"]

_LARGE_LOG = 256 << 20
"""A write-ahead log above this has not been put into its file for long."""

_AHEAD_US = 60_000_000
"""A clock that is ahead by more than this wins what others write at the same time."""

_SHOWN = 3
"""So many rows that differ are shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was looked at: how it is, and what to do if that is not fine."""

    level: Level
    about: str
    text: str
    advice: str = ""


def counted(number: int, what: str) -> str:
    """So many of something, in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def examine_file(path: Path) -> Iterator[Finding]:
    """What SQLite and the system say of the file."""
    restore = f"restore it from a backup: `everview restore BACKUP {path} --replace`"
    try:
        with (
            Explained(str(path), "read"),
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file,
        ):
            (application,) = file.execute("PRAGMA application_id").fetchone()
            if application != APPLICATION_ID:
                yield Finding("error", "file", f"{path} is no Everview store", "name another file")
                return
            (version,) = file.execute("PRAGMA user_version").fetchone()
            wrong = [said for (said,) in file.execute(f"PRAGMA integrity_check({_SHOWN})") if said != "ok"]
            strange = None if wrong else Lineage(str(path.absolute()), in_memory=False).strange(file)
    except EverviewError as error:
        said = str(error)
        text = said.removesuffix(RESTORE)
        yield Finding("error", "file", text, "" if text == said else restore)
        return
    if wrong:
        yield Finding("error", "file", "SQLite finds damage: " + "; ".join(wrong).replace("\n", " "), restore)
        return
    if version != FORMAT:
        text = f"it has format {version}, and this Everview reads format {FORMAT}"
        advice = "upgrade Everview" if version > FORMAT else "make a new store, and insert the rows again"
        yield Finding("error", "file", text, advice)
        return
    yield Finding("fine", "file", f"SQLite finds no damage; format {version}")
    if strange is not None:
        what = "a copy of another" if strange is Strange.COPIED else "of an earlier time, or moved"
        yield Finding("warning", "file", f"the file is {what}: it takes a new incarnation when it is opened")
    yield from _room(path)


def _room(path: Path) -> Iterator[Finding]:
    size, free = path.stat().st_size, shutil.disk_usage(path.absolute().parent).free
    if free < max(size // 4, 64 << 20):
        text = f"the disk has {free >> 20:,} MB left, and the store has {size >> 20:,} MB"
        yield Finding("warning", "disk", text, "free some space before it is full")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size > _LARGE_LOG:
        text = f"the log beside the file has {log.stat().st_size >> 20:,} MB"
        advice = "a process has read from it all the time: restart what has the store open"
        yield Finding("warning", "file", text, advice)


def examine_tables(store: Store) -> Iterator[Finding]:
    """Whether what lies in the tables of relations can be."""
    connection = store.writer.connection
    (head,) = connection.execute(f"SELECT version FROM {STORE}").fetchone()
    wrong = []
    for name, relation in store.engine.relations.items():
        for table in relation.tables:
            columns = {column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")}
            tests = [f"version > {head}"] if "version" in columns else []
            tests += ["cl < 1"] if "cl" in columns else []
            for test in tests:
                (count,) = connection.execute(f"SELECT count(*) FROM {table} WHERE {test}").fetchone()
                if count:
                    wrong.append(f"rows of {name} with {test.split()[0]} out of bounds: {count:,}")
    if wrong:
        yield Finding("error", "relations", "; ".join(wrong), "restore it from a backup")
    else:
        yield Finding(
            "fine", "relations", f"{len(store.engine.relations)} looked through, {counted(head, 'commit')}"
        )


def examine_views(store: Store) -> Iterator[Finding]:
    """Whether every view that is computed here is what its inputs make, computed at once."""
    reading, hosted, same, received = Reading(store), set(store.engine.hosted()), 0, []
    for name, view in store.program.views.items():
        if name not in hosted:
            continue
        if not hosted.issuperset(scanned(view.plan)) or (view.authority and view.authority != store.name):
            received.append(name)
            continue
        count, shown = _difference(store, reading, name)
        if count:
            text = f"{name} differs from what its inputs make; rows that do: {count:,}, such as {shown}"
            yield Finding("error", "views", text, "restore it from a backup, and tell us: views follow rows")
        else:
            same += 1
    unproved = [sql for sql in store.engine.recursion_faults if _has_rows(store, sql)]
    if unproved:
        text = "rows of a recursive view are not derived from its inputs, or others are missing"
        yield Finding("error", "views", text, "restore it from a backup, and tell us: views follow rows")
    yield Finding("fine", "views", f"{same} {'is what its' if same == 1 else 'are what their'} inputs make")
    for core in store.engine.received.values():
        for fault in core.faults(store.writer.connection):
            yield Finding("error", "views", fault, "restore it from a backup, and tell us: they follow rows")
    if received:
        yield Finding("fine", "views", f"{', '.join(received)}: received from other sites, not computed here")


def _has_rows(store: Store, sql: str) -> bool:
    return store.writer.connection.execute(f"{sql} LIMIT 1").fetchone() is not None


def _difference(store: Store, reading: Reading, view: str) -> tuple[int, str]:
    """How many rows of a view are too many or missing, and some of them."""
    engine = store.engine
    plan = engine.over_recursions(engine.shared[view]) if engine.recursive else store.program.views[view].plan
    made, width = reading.batch(strict=False).query(rewrite(plan)), len(plan.schema)
    columns = ", ".join(f"c{place}" for place in range(width))
    named = f"WITH kept({columns}, w) AS ({store.engine.rows_sql(view)}), made({columns}, w) AS ({made})"
    both = f"SELECT {columns}, w FROM kept UNION ALL SELECT {columns}, -w FROM made"
    differ = f"{named} SELECT {columns}, sum(w) FROM ({both}) GROUP BY {columns} HAVING sum(w) <> 0"
    found = store.writer.connection.execute(differ).fetchall()
    words = [f"{row[:-1]} {'too much' if row[-1] > 0 else 'missing'}" for row in found[:_SHOWN]]
    return len(found), ", ".join(words)


def examine_clock(store: Store) -> Iterator[Finding]:
    """Yield a warning where the last commit was stamped by a clock that ran ahead of this machine's."""
    (stamp,) = store.writer.connection.execute(f"SELECT clock FROM {STORE}").fetchone()
    ahead = microseconds(stamp) - time.time_ns() // 1000
    if ahead > _AHEAD_US:
        text = f"its last commit was stamped {ahead // 1_000_000:,} s ahead of this machine's clock"
        yield Finding("warning", "clock", text, "set the clock: until then its rows win what is concurrent")
