"""Backups: a store's state as one file, taken while the store is in use, and put back.

A store that is put back is of an earlier time, or a copy of one that lives on. Opening it finds out by its
file (see `lineage`), and it goes on as a new incarnation.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from everview.engines.sqlite.complaints import Explained, as_backup, damaged
from everview.engines.sqlite.names import FORMAT, STORE
from everview.engines.sqlite.opening import APPLICATION_ID
from everview.engines.sqlite.store import Store
from everview.errors import StoreError

OnPages = Callable[[int, int], None]
"""Called with the pages that are copied, and with all there are."""

_PAGES = 2_000
"""Pages in a step; 8 MB."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a file has: whose store it is of, and up to which commit."""

    path: str
    name: str
    incarnation: str
    commits: int
    bytes: int


def back_up(store: Store, target: Path, on_pages: OnPages | None = None) -> Backup:
    """Copy the present state of a store to a file, and check the copy; others may go on writing."""
    if target.exists():
        raise StoreError(
            f"{target} exists already; choose another path, or remove it first", path=str(target)
        )
    with _part(target) as part:
        with store.snapshot(inside=False), store.reading(inside=False) as handle:
            _copy(handle.connection, part, on_pages)
        found = inspect(part)
        part.replace(target)
    return replace(found, path=str(target))


@contextmanager
def _part(target: Path) -> Iterator[Path]:
    """Give a path to write to until all is there. If that fails it is removed, and errors name the target."""
    part = target.with_name(f"{target.name}.part")
    try:
        yield part
    except StoreError as error:
        if error.path != str(part):
            raise
        raise StoreError(str(error).replace(str(part), str(target)), path=str(target)) from error
    except OSError as error:
        if error.filename is None or Path(error.filename) != part:
            raise
        raise StoreError(f"{target} cannot be written: {error.strerror}", path=str(target)) from error
    finally:
        _remove(part)  # what went well is the target by now


def copy_of(path: Path, target: Path, on_pages: OnPages | None = None) -> None:
    """Copy the present state of a store's file, without opening it as a store."""
    with _read_only(path) as file:
        file.execute("BEGIN")
        _copy(file, target, on_pages)


def _copy(source: sqlite3.Connection, part: Path, on_pages: OnPages | None) -> None:
    def told(_status: int, left: int, total: int) -> None:
        if on_pages is not None:
            on_pages(total - left, total)

    _remove(part)
    with Explained(str(part), "written"), closing(sqlite3.connect(part)) as copy:
        # A transaction begins with its first read. In one all steps read one state; else SQLite would begin
        # again with each commit of another.
        source.execute(f"SELECT version FROM {STORE}").fetchone()
        source.backup(copy, pages=_PAGES, progress=told, sleep=0)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without another beside it


def inspect(path: Path) -> Backup:
    """Read what a backup is of; StoreError if it is none, or damaged."""
    if not path.is_file():
        raise StoreError(f"{path} is no file; name one that `everview backup` has made", path=str(path))
    beside = path.with_name(f"{path.name}-wal")
    if beside.exists() and beside.stat().st_size:
        raise StoreError(
            f"{path} is a store in use, and not all of it is in the file; `everview backup` makes a copy",
            path=str(path),
        )
    with _read_only(path) as file:
        (application,) = file.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise StoreError(
                f"{path} is no Everview store; name one that `everview backup` has made", path=str(path)
            )
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise StoreError(
                f"{path} has format {version}, and this Everview reads format {FORMAT} alone",
                path=str(path),
            )
        (said,) = file.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise damaged(str(path), said.replace("\n", " "))
        told = file.execute(f"SELECT site, incarnation, version FROM {STORE}").fetchone()
        if told is None:
            raise damaged(str(path), "it does not say whose store it is of")
        name, incarnation, commits = told
    return Backup(str(path), name, incarnation, commits, path.stat().st_size)


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    with (
        Explained(str(path), "read"),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file,
    ):
        yield file


def put_back(backup: Path, target: Path, name: str = "", *, put_aside: bool = False) -> None:
    """Make a store of a backup, under its old name or another; to open it makes a new incarnation.

    With `put_aside`, a store that is there becomes `<file>.replaced`: what it had written since the backup,
    and told nobody, is nowhere else.
    """
    try:
        inspect(backup)
    except StoreError as error:
        raise as_backup(error) from error
    if target.exists() and not put_aside:
        raise StoreError(
            f"{target} exists already; choose another path, or say --replace to put it aside",
            path=str(target),
        )
    with _part(target) as part:
        _copy_file(backup, part)
        if name:
            with Explained(str(part), "written"), closing(sqlite3.connect(part)) as file, file:
                file.execute(f"UPDATE {STORE} SET site = ?", (name,))
        if target.exists():
            _put_aside(target)
        part.replace(target)


def _copy_file(backup: Path, part: Path) -> None:
    """Copy a file, to an inode that is not the one of the store of which it is the backup.

    That may be free again; and it is by its inode that a store knows whether it is still the same file.
    """
    with _read_only(backup) as file:
        (marked,) = file.execute(f"SELECT file FROM {STORE}").fetchone()
    taken = part.with_name(f"{part.name}.taken")
    try:
        _remove(part)
        part.touch()
        if marked and marked.split()[0] == str(part.stat().st_ino):
            part.replace(taken)  # while that is there the next one is another
        with backup.open("rb") as source, part.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
    finally:
        taken.unlink(missing_ok=True)


def _put_aside(target: Path) -> None:
    """Give a store another name; refuse it while somebody has it open."""
    aside = target.with_name(f"{target.name}.replaced")
    if aside.exists():
        raise StoreError(f"{aside} is there from before; remove it first", path=str(aside))
    try:
        with closing(sqlite3.connect(target, timeout=1.0, isolation_level=None)) as file:
            # That needs the file alone, and leaves no log beside it, which would be taken for the new file's.
            (mode,) = file.execute("PRAGMA journal_mode = DELETE").fetchone()
            alone = mode != "wal"
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        alone = False
    except sqlite3.DatabaseError:  # it is damaged, and that may be why
        for beside in ("-wal", "-shm"):
            target.with_name(target.name + beside).unlink(missing_ok=True)
        alone = True
    if not alone:
        raise StoreError(f"{target} is in use; stop what has it open, and try again", path=str(target))
    target.replace(aside)


def _remove(part: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            part.with_name(part.name + end).unlink(missing_ok=True)
