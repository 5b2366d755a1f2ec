"""Vacuum: remove what no retained refresh, no published version and no consumer needs.

First the records go, then the files that only they named: a crash between the two leaves orphans, which the
next vacuum removes, and never a record that names what is gone. An orphan is a file of ours that no record
names, left by a crash. One that is young may belong to a write that is still under way somewhere, so it is
left alone for a while; at opening there is none under way.
"""

from __future__ import annotations

import bisect
import re
from contextlib import suppress
from dataclasses import dataclass

from everview.errors import StoreError
from everview.hub import offers, publications
from everview.hub import record as records
from everview.hub.consumers import held
from everview.hub.delta import state
from everview.hub.files import Entry, Files
from everview.hub.publications import Publication
from everview.hub.publish import FOLDER, folder_of
from everview.hub.retention import Retention, now_us

__all__ = ["EVERY", "GRACE", "VacuumReport", "vacuum"]

EVERY = 20
"""After how many refreshes a hub vacuums by itself."""

GRACE = 3600.0
"""How many seconds a file that belongs to no record is left alone."""

ABANDONED = 7 * 24 * 3600.0
"""How many seconds a write of another process may take to become whole."""

# What is not named like ours is not ours: the folder that a hub is kept in may have had other things in it.
_CREATED = "refreshes", "runs", "publications"
_DRAFT = re.compile(r"\.[0-9a-f]{32}")
_RUN = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{12})?\.arrow")
_ROWS = re.compile(r"[0-9]{12}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """How many records and files were removed, and the bytes of the files."""

    records: int = 0
    files: int = 0
    bytes: int = 0


def vacuum(
    files: Files, retention: Retention, *, grace: float = GRACE, since_us: int | None = None
) -> VacuumReport:
    """Remove what is no longer retained, and orphans older than `grace` seconds and than `since_us`.

    No refresh and no publication of this hub may be under way. `since_us` is when the merge began whose files
    no record names yet.
    """
    before = now_us() - grace * 1_000_000
    if since_us is not None:
        before = min(before, since_us)
    retained = retention.retained(files)
    kept = {*retained}
    refreshes, runs = _runs(files, {*retained.values(), *_followed(files, retention)}, before)
    published, folders = _folders(files, kept, before)
    folders |= {
        folder: tuple(entry for entry in files.find(folder))
        for folder in offers.abandoned(files, now_us() - ABANDONED * 1_000_000)
    }
    for entry in runs:
        files.remove_file(entry.path)
    for folder in folders:
        files.remove(folder)
    removed = [*runs, *(entry for inside in folders.values() for entry in inside)]
    return VacuumReport(refreshes + published, len(removed), sum(entry.size for entry in removed))


def _followed(files: Files, retention: Retention) -> list[int]:
    """The records of refreshes that a consumer has not read yet, or goes on from."""
    since = held(files, retention.consumer_days)
    if since is None:
        return []
    numbers = records.refreshes(files)
    return numbers[bisect.bisect_left(numbers, since, key=lambda each: records.read(files, each).refresh) :]


def _runs(files: Files, kept: set[int], before: float) -> tuple[int, list[Entry]]:
    """Remove the other records: how many, and the files that no record names any more.

    The last record stays in any case: it is of the latest refresh, or the store has none yet.
    """
    every = records.refreshes(files)
    kept = kept | {*every[-1:]}
    gone = [number for number in every if number not in kept]
    named = {path for number in kept for path in records.read(files, number).paths()}
    released: set[str] = set()
    for number in gone:
        with suppress(StoreError):  # a damaged one names nothing
            released |= records.read(files, number).paths()
    for number in gone:
        records.forget(files, number)
    unnamed = [entry for entry in files.find("runs") if entry.path not in named and _is(_RUN, entry)]
    drafts = [entry for folder in _CREATED for entry in files.find(folder) if _is(_DRAFT, entry)]
    orphans = [entry for entry in drafts if entry.written_us <= before]
    return len(gone), orphans + [
        entry for entry in unnamed if entry.path in released or entry.written_us <= before
    ]


def _folders(files: Files, kept: set[int], before: float) -> tuple[int, dict[str, tuple[Entry, ...]]]:
    """Remove the records of other publications: how many, and the folders that no version needs any more.

    The last version of each table is asked for its files as well: a crash may have come between the commit
    and the record of the publication.
    """
    every = [publications.read(files, number) for number in publications.publications(files)]
    gone = [one for one in every[:-1] if one.refresh not in kept]
    needed = [one for one in every if one not in gone]
    for one in gone:
        publications.forget(files, one.number)
    named = {folder for one in needed for folder in _named(one)}
    released = {folder for one in gone for folder in _named(one)}
    found: dict[str, tuple[Entry, ...]] = {}
    for table in files.list(FOLDER):
        place = f"{FOLDER}/{table}"
        inner = [name for name in files.list(place) if _ROWS.fullmatch(name)]
        unnamed = [name for name in inner if f"{place}/{name}" not in named]
        current = state(files, place, table) if unnamed else None
        for name in unnamed:
            if current is not None and name in current.folders:
                continue
            inside = files.find(f"{place}/{name}")
            if f"{place}/{name}" in released or all(entry.written_us <= before for entry in inside):
                found[f"{place}/{name}"] = inside
    return len(gone), found


def _named(publication: Publication) -> list[str]:
    return [
        f"{folder_of(name)}/{folder}"
        for name, table in publication.tables.items()
        for folder in table.folders
    ]


def _is(pattern: re.Pattern[str], entry: Entry) -> bool:
    return pattern.fullmatch(entry.path.rpartition("/")[2]) is not None
