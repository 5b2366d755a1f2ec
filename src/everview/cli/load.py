"""Files into a relation, or out of it: all or nothing, unless batches are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

from everview.cli.chunks import CHUNK, Chunk
from everview.cli.sources import Source
from everview.errors import DataError
from everview.language.relations import Relation
from everview.site import Site

__all__ = ["Loaded", "Watcher", "load"]

Watcher = Callable[[Source, Chunk], object]


@dataclass(slots=True)
class Loaded:
    """Rows read, rows that appeared or disappeared, and transactions committed."""

    read: int = 0
    changed: int = 0
    commits: int = 0

    def __iadd__(self, other: Loaded) -> Self:
        self.read += other.read
        self.changed += other.changed
        self.commits += other.commits
        return self


def load(
    site: Site,
    relation: str,
    sources: Sequence[Source],
    *,
    remove: bool = False,
    batch: int | None = None,
    watcher: Watcher | None = None,
) -> Loaded:
    """Insert the rows of all sources, or `remove` them; `watcher` is called after each chunk.

    One transaction for everything; with `batch`, one for at least so many rows each, and an error leaves
    those before it committed.
    """
    target = _target(site, relation)
    verb = site.delete if remove else site.insert
    total = Loaded()
    with closing(_chunks(sources, target, min(batch or CHUNK, CHUNK))) as chunks:
        try:
            for first in chunks:
                done = Loaded(commits=1)
                with site.transaction():
                    for source, chunk in itertools.chain([first], chunks):
                        done.changed += _applied(verb, target, chunk)
                        done.read += len(chunk.rows)
                        if watcher is not None:
                            watcher(source, chunk)
                        if batch is not None and done.read >= batch:
                            break
                total += done
        except DataError as error:
            if total.commits:
                raise _retold(error, f"{error}; the {total.read:,} rows of earlier batches are in") from None
            raise
    return total


def _target(site: Site, name: str) -> Relation:
    found = site.program.relations.get(name)
    if found is not None:
        return found
    if name in site.program.views:
        raise DataError(f"{name} is a view; write to the relations it is made from", relation=name)
    there = ", ".join(site.program.relations)
    raise DataError(f"there is no relation {name}; there are {there}", relation=name)


def _chunks(
    sources: Sequence[Source], relation: Relation, size: int
) -> Generator[tuple[Source, Chunk], None, None]:
    for source in sources:
        with closing(source.chunks(relation, size)) as chunks:
            yield from ((source, chunk) for chunk in chunks if chunk.rows)


Verb = Callable[[str, list[tuple[Any, ...]]], int]


def _applied(verb: Verb, relation: Relation, chunk: Chunk) -> int:
    """Apply a chunk; an error about a value is told with the place of the row that has it."""
    try:
        return verb(relation.name, chunk.rows)
    except DataError as error:
        index = _culprit(relation, chunk, error)
        if index is not None:
            raise _retold(error, f"{chunk.place(index)}: {error}") from None
        raise


def _retold(error: DataError, message: str) -> DataError:
    return DataError(
        message, relation=error.relation, column=error.column, value=error.value, expected=error.expected
    )


def _culprit(relation: Relation, chunk: Chunk, error: DataError) -> int | None:
    """The first row that has the value complained of in the column complained of."""
    if error.column not in relation.columns:
        return None
    position = relation.columns.index(error.column)
    for index, row in enumerate(chunk.rows):
        value = row[position]
        if value is error.value or (type(value) is type(error.value) and value == error.value):
            return index
    return None
