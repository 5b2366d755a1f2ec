"""Published tables: plain rows of every relation and view, for readers that know nothing of a hub.

Spark writes the rows as Parquet into a new folder of the table, then its Delta log says that these files are
the table. A crash before that leaves files that no log names, and the version before. A table that has not
changed since it was published is left as it is.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.errors import StoreError
from everview.hub import publications
from everview.hub.contents import contents, stored_table
from everview.hub.delta import Mark, State, commit, new_file, rows_in, state
from everview.hub.files import Files
from everview.hub.jobs import job
from everview.hub.publications import Publication, Published
from everview.hub.record import Record
from everview.hub.retention import now_us
from everview.hub.tables import Catalog

__all__ = ["FOLDER", "PublishReport", "folder_of", "is_due", "publish"]

FOLDER = "published"

_FORMAT = b"1"
"""Part of every digest: raised when rows are to be written in another way."""

_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What a publication did: its refresh, the tables written, and the versions that belong together."""

    refresh: int
    written: tuple[str, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def folder_of(name: str) -> str:
    """The folder of a published table: its name, other bytes than letters, digits, _ and - as ~ and hex.

    Readers of Delta disagree on paths with a blank or a percent sign, so no folder has one.
    """
    plain = _PLAIN.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), name)
    return f"{FOLDER}/{plain}"


def is_due(files: Files, record: Record, freshness: float | None) -> bool:
    """Whether what is published is older than `freshness` seconds, and there is something newer."""
    if freshness is None:
        return False
    last = publications.last(files)
    if last is None:
        return True
    return last.refresh != record.refresh and now_us() - last.made_us >= freshness * 1_000_000


def publish(spark: SparkSession, files: Files, catalog: Catalog, record: Record) -> PublishReport:
    """Bring all published tables to a refresh. Doing it again does nothing."""
    started = time.perf_counter()
    written = []
    tables = {}
    for name in catalog.program.names():
        mark = Mark(name, record.refresh, _digest(catalog, record, name))
        found = state(files, folder_of(name), name)
        if found is None or not found.shows(mark):
            found = _write(spark, files, catalog, record, mark)
            written.append(name)
        tables[name] = Published(found.version, found.folders)
    _record(files, record, tables)
    versions = {name: table.version for name, table in tables.items()}
    return PublishReport(record.refresh, tuple(written), versions, time.perf_counter() - started)


def _digest(catalog: Catalog, record: Record, name: str) -> str:
    """What stands for the rows of a table."""
    table = stored_table(catalog, name)
    changed = record.changed.get(table)
    # Until it changes again, a table of an older store is known by its runs: no two have the same name.
    contents = changed.encode() if changed is not None else msgspec.json.encode(record.runs(table))
    return hashlib.sha256(_FORMAT + contents).hexdigest()


def _write(spark: SparkSession, files: Files, catalog: Catalog, record: Record, mark: Mark) -> State:
    """Write all rows of a table, and commit them."""
    schema = catalog.program.schema(mark.table)
    folder = f"{record.refresh:012}-{uuid.uuid4().hex[:8]}"
    path = f"{folder_of(mark.table)}/{folder}"
    added = []
    if record.runs(stored_table(catalog, mark.table)):
        rows = contents(spark, files, catalog, record, mark.table)
        seen = Observation()
        counted = rows.toDF(*(column.name for column in schema)).observe(seen, F.count("*").alias("rows"))
        with job(spark.sparkContext, mark.table):
            counted.write.parquet(files.uri(path))
        # Not below it: what a task left there that was given up is no part of the rows.
        names = {name for name in files.list(path) if name.endswith(".parquet")}
        entries = [entry for entry in files.find(path) if entry.path.removeprefix(f"{path}/") in names]
        added = [action for entry in entries if (action := new_file(files, entry, folder)) is not None]
        if (found := rows_in(added)) != seen.get["rows"]:
            raise StoreError(
                f"{seen.get['rows']} rows of {mark.table} were written, but the files have {found}; nothing "
                f"was published: publish again, and see docs/OBJECT_STORES.md on how Spark writes there",
                path=path,
            )
    return commit(files, folder_of(mark.table), schema, added, mark)


def _record(files: Files, record: Record, tables: dict[str, Published]) -> None:
    """Record which versions belong together, unless the last publication says so."""
    last = publications.last(files)
    if last is not None and (last.refresh, last.tables) == (record.refresh, tables):
        return
    number = last.number + 1 if last is not None else 1
    publications.record(
        files, Publication(number=number, refresh=record.refresh, made_us=record.made_us, tables=tables)
    )
