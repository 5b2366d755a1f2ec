"""The doctor: looks at a store without touching it, and says what is wrong and what to do.

It works on a copy of the file's present state, because to open a store may change it: an older format is
brought up to date, views are made anew, a copied file takes a new incarnation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from everview.engines.sqlite.backups import OnPages, copy_of
from everview.engines.sqlite.complaints import RESTORE
from everview.engines.sqlite.examining import (
    Finding,
    counted,
    examine_clock,
    examine_file,
    examine_tables,
    examine_views,
)
from everview.engines.sqlite.store import Store
from everview.errors import EverviewError
from everview.replication.status.status import replication_status, subject_of

__all__ = ["Finding", "examine"]


def examine(path: Path, on_pages: OnPages | None = None) -> Iterator[Finding]:
    """Look at a store's file, its tables, its views, and at what it knows of others."""
    yield from (found := list(examine_file(path)))
    if any(one.level == "error" for one in found):
        return
    with tempfile.TemporaryDirectory(prefix="everview-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            copy_of(path, copy, on_pages)
            store = Store(str(copy), None, "")
        except EverviewError as error:
            text = str(error).replace(str(copy), str(path)).removesuffix(RESTORE)
            yield Finding("error", "program", text, "restore it from a backup")
            return
        with closing(store):
            yield from examine_tables(store)
            yield from examine_views(store)
            yield from examine_clock(store)
            yield from _examine_others(store)


def _examine_others(store: Store) -> Iterator[Finding]:
    """Yield what this store knows of other sites that somebody should do something about."""
    status = replication_status(store.writer.connection)
    for alarm in status["alarms"]:
        name, peer = subject_of(alarm["relation"]), alarm["peer"]
        text = f"{name} differs from that of {peer}, although both have seen the same"
        advice = f"`everview repair {store.path} {name} --from PEER` reads it again from a peer that is right"
        yield Finding("error", name, text, advice)
    if status["refused"]:
        were = "was" if len(status["refused"]) == 1 else "were"
        text = f"{counted(len(status['refused']), 'row')} {were} refused"
        yield Finding("warning", "rows", text, f"`everview status {store.path} --json` has the rows, and why")
    yield Finding("fine", "sites", f"other stores whose rows were seen: {len(status['sites'])}")
