"""Derivations in a cut: what a view's host lacks of the rows that its cores join, by the reader's cursor.

They follow the rows of the cut that they name. A page tells derivations from where the last one ended, in the
order of versions; so what has changed between two pages is told once more at the end, and nothing is missed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from operator import add
from typing import TYPE_CHECKING, Any

import msgspec

from everview.engines.sqlite.derived.telling import Most, Teller, Told
from everview.engines.sqlite.derived.telling import Place as Spot
from everview.engines.sqlite.integers import is_same
from everview.engines.sqlite.parts import value
from everview.engines.sqlite.rows import serving
from everview.engines.sqlite.rows.dots import NUMBERS, SHIFT
from everview.errors import WireError
from everview.replication.wire.checks import check_columns
from everview.replication.wire.codec import check_dots
from everview.replication.wire.messages import (
    START,
    Ask,
    Columns,
    Cursor,
    Derived,
    DerivedColumns,
    Message,
    Page,
    Place,
    Resume,
    Share,
)
from everview.replication.wire.sites import Named, Naming

if TYPE_CHECKING:
    from everview.engines.sqlite.derived.joined import JoinedRows
    from everview.engines.sqlite.derived.received import ReceivedCore
    from everview.replication.cuts.applying import Pages
    from everview.replication.protocol.replica import Replica

__all__ = ["give_derivations", "resumes", "take_derivations"]


# Giving.


def give_derivations(
    connection: sqlite3.Connection,
    tellers: Mapping[str, Teller],
    ask: Ask,
    page: Page,
    columns: Sequence[Columns],
    naming: Naming,
    cells: int,
    room: int,
    reader: int,
) -> tuple[Page, list[Columns]]:
    """Return a page that has all rows with derivations as well, as far as there is room for them."""
    derived: list[Derived] = []
    found: list[Columns] = list(columns)
    left: list[Resume] = []
    done = True
    for resume in ask.cores:
        teller = tellers.get(resume.core)
        if teller is None:
            continue
        places: list[list[int]] = []
        for run, after in zip(teller.runs, _places(connection, resume, len(teller.runs)), strict=True):
            if not done:
                places.append(list(after))
                continue
            most = Most(max(cells // run.width, 1), room, reader)
            told = run.read(connection, _since(connection, ask), after, most)
            if told.rows:
                derived.append(Derived(resume.core, told.branch, len(told.rows)))
                found.append(_columns(told, naming))
                cells, room = cells - len(told.rows) * run.width, room - told.size
            places.append([page.head.version] if told.reached is None else list(told.reached))
            done = told.reached is None and cells > 0 and room > 0
        left.append(Resume(resume.core, page.head, places))
    if not done:
        page, found[: len(columns)] = _unfinished(page, columns)
    replaced = msgspec.structs.replace(page, derived=derived, resumes=[] if done else left)
    return replaced, found


def _since(connection: sqlite3.Connection, ask: Ask) -> int:
    """The version from which on derivations are told; all of them where the reader's cursor is void."""
    return ask.since.version if serving.knows(connection, serving.Cursor(*_pair(ask.since))) else 0


def _places(connection: sqlite3.Connection, resume: Resume, count: int) -> list[Spot]:
    """The places that a reader has come to, unless this store does not remember to have said them."""
    known = resume.head != START and serving.knows(connection, serving.Cursor(*_pair(resume.head)))
    if not known or len(resume.places) != count:
        return [()] * count
    return [tuple(place) for place in resume.places]


def _pair(cursor: Cursor) -> tuple[int, int]:
    return cursor.version, cursor.tag


def _columns(told: Told, naming: Naming) -> Columns:
    columns = list(zip(*told.rows, strict=True))
    width = len(columns) - told.names
    named = [part for dots in columns[width:] for part in _told_as(dots, naming)]
    return DerivedColumns([*columns[:width], *named])


def _told_as(dots: Sequence[int], naming: Naming) -> tuple[Sequence[int], Sequence[int]]:
    """Dots in any order as positions of sites, and numbers."""
    sites = [one >> SHIFT for one in dots]
    places = {site: naming.place(site) for site in dict.fromkeys(sites)}
    return list(map(places.__getitem__, sites)), [one & NUMBERS for one in dots]


def _heard_as(sites: Sequence[int], numbers: Sequence[int], named: Named) -> list[int]:
    """Dots in this store's numbers; mostly all are of one site."""
    if is_same(sites):
        return list(map((named.numbers[sites.least] << SHIFT).__add__, numbers))
    shifted = [number << SHIFT for number in named.numbers]
    return list(map(add, map(shifted.__getitem__, sites), numbers))


def _unfinished(page: Page, columns: Sequence[Columns]) -> tuple[Page, list[Columns]]:
    """The page without what went: the last one tells that."""
    shares = [Share(share.place, share.rows, share.vector) for share in page.shares]
    kept = [Columns(one.rows, one.sites, one.numbers) for one in columns]
    return msgspec.structs.replace(page, done=False, shares=shares), kept


# Taking.


def resumes(page: Page) -> dict[str, Resume]:
    """Return where to go on, by core."""
    return {resume.core: resume for resume in page.resumes}


def take_derivations(
    replica: Replica,
    connection: sqlite3.Connection,
    last: Message,
    columns: Sequence[Columns],
    named: Named,
    staging: Pages,
    cores: Mapping[str, ReceivedCore],
) -> None:
    """Add the derivations of a cut, all of whose rows are here."""
    engine, commit = replica.store.engine, replica.writing.commit
    for core in cores.values():
        for join, found in _found(connection, core, last, columns, named, staging):
            if join.add(connection, found, named.numbers[0], commit.version):
                commit.grown = True
            engine.propagate(connection, (core.delta,), replica.writing.collect, shrinks=False)


def _found(
    connection: sqlite3.Connection,
    core: ReceivedCore,
    last: Message,
    columns: Sequence[Columns],
    named: Named,
    staging: Pages,
) -> Iterator[tuple[JoinedRows, list[Sequence[Any]]]]:
    """Yield what each page has of a core, with dots as this store numbers them."""
    for message, found in staging.pages(Place(core.core.name)):
        earlier = Named(message.sites, message.names)
        earlier.learn(connection)
        yield from _found_in(core, message, found, earlier)
    yield from _found_in(core, last, columns, named)


def _found_in(
    core: ReceivedCore, message: Message, columns: Sequence[Columns], named: Named
) -> Iterator[tuple[JoinedRows, list[Sequence[Any]]]]:
    assert message.page is not None
    joins, page = {join.number: join for join in core.joins}, message.page
    for derived, found in zip(page.derived, columns[len(page.shares) :], strict=True):
        if derived.core != core.core.name or not derived.rows:
            continue
        join = joins.get(derived.branch)
        width = len(core.core.schema)
        if join is None or len(found.rows) != width + 2 * len(join.positions):
            raise WireError(
                f"{core.core.name} has no branch {derived.branch} of so many columns", where="section"
            )
        cells, names = found.rows[:width], found.rows[width:]
        check_columns(core.core.name, cells, [value(field) for field in core.core.schema], derived.rows)
        check_dots(names, len(named.numbers))
        pairs = zip(names[::2], names[1::2], strict=True)
        yield join, [*cells, *(_heard_as(sites, numbers, named) for sites, numbers in pairs)]
