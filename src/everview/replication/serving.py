"""Serving: pages of what a store holds, read in one snapshot each.

A page is rows above the reader's cursors, stream by stream and part by part, each in the order of versions,
up to a bound. `reached` says for each part how far it got; only this module knows what is in it. The cut ends
with a page that reaches the head of its own snapshot in all parts: rows that grew meanwhile have a higher
version and come again, so what was staged is then the state at that head.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.parts import SITE, Part, Position, Row
from everview.engines.sqlite.streams import Stream
from everview.errors import WireError
from everview.replication.budget import Budget
from everview.replication.gossip import Register
from everview.replication.messages import Page, Section
from everview.replication.oversized import LARGEST_PAGE, check_page
from everview.replication.partials import Asked as AskedPartials
from everview.replication.partials import read_partials
from everview.replication.publishing import Asked, read_published

Reached = tuple[int, tuple[Any, ...]]
"""A version, and the key that was reached in it."""

Places = dict[str, list[Reached]]
"""Stream → for each part the version and key reached."""

_EVOLVED = ""
"""Among the streams of a place, what says how often the store had gone over; no stream is called so."""

_PLACES = msgspec.msgpack.Decoder(Places)

Vector = Mapping[int, int]
"""Site's number → commit."""


class Views(NamedTuple):
    """What is asked for of views that are published, and of partial aggregates, from these commits."""

    published: Sequence[Asked] = ()
    partials: Sequence[tuple[AskedPartials, int]] = ()


class Place(NamedTuple):
    """Where to go on: what the page before reached, and how often the store has gone over to a program."""

    after: bytes
    evolved: int


def read_page(
    connection: sqlite3.Connection,
    streams: Sequence[tuple[Stream, int]],
    place: Place,
    skipped: Mapping[str, Vector],
    register: Register,
    names: Mapping[int, str],
    budget: Budget,
    passed: Mapping[str, int],
    views: Views,
) -> tuple[Page, int]:
    """Return a page of streams from these commits, of no cut and without tags, and the tag of its head.

    `skipped` gives, for a stream whose reader is a member, the reader's own vector: what that covers the
    reader has, whoever it got it from, and need not be sent back to it. `passed` gives commits up to which
    the reader is known to have a stream, although its cursor is before that. `views` come after the rest.
    A cut whose place is in tables that are others now begins anew.
    """
    head, tag = connection.execute(f"SELECT version, tag FROM {STORE}").fetchone()
    after, evolved = place
    found = _decoded(after)
    if found and _evolved(found) != evolved:
        found, after = {}, b""
    places = _places(found, streams, passed)
    sections: list[Section] = []
    done = True
    for stream, since in streams:
        for number, part in enumerate(stream.parts):
            begun = places[stream.name][number]
            vector = skipped.get(stream.name)
            rows, upto, whole = _read_part(connection, part, since, begun, budget, vector)
            places[stream.name][number] = (head, ()) if whole else upto
            done = done and whole
            if rows:
                sections.append(_section(stream.name, number, part, rows, register, names))
    for asked in views.published:
        name = asked.published.stream
        at = [_checked(one) for one in found[name]] if name in found else None
        read, left, whole = read_published(connection, asked, at, budget)
        sections += read
        done = done and whole
        if left is not None:
            places[name] = left
    for told, _ in views.partials:
        name = told.stored.stream
        at = [_checked(one) for one in found[name]] if name in found else None
        read, left, whole = read_partials(connection, told, at, budget, register, head)
        sections += read
        done = done and whole
        if left is not None:
            places[name] = left
    if budget.taken > LARGEST_PAGE:
        check_page(sections)
    froms = {stream.name: since for stream, since in streams}
    froms |= {told.stored.stream: since for told, since in views.partials}
    froms |= {asked.published.stream: 0 for asked in views.published}
    if evolved:
        places[_EVOLVED] = [(evolved, ())]
    reached = b"" if done else msgspec.msgpack.encode(places)
    return Page(0, after, reached, done, head, froms, {}, sections), tag


def _read_part(
    connection: sqlite3.Connection,
    part: Part,
    since: int,
    place: Reached,
    budget: Budget,
    vector: Vector | None,
) -> tuple[list[Row], Reached, bool]:
    """Return what a page has of a part, how far that gets, and whether that is the end."""
    rows: list[Row] = []
    position: Position | None = Position(*place) if place[0] else None
    while not budget.is_used_up:
        chunk = part.read(connection, since, position, budget.limit(part.columns), budget.room)
        if not budget.fits(chunk):
            break
        budget.take(chunk, part.columns)
        rows += _unseen(chunk.rows, part, vector)
        position = chunk.reached
        if position is None:
            return rows, place, True
        place = position.version, tuple(position.key)
    return rows, place, False


def _decoded(after: bytes) -> Places:
    """Read what an earlier page reached; it came back over the wire, so it may be anything."""
    try:
        return _PLACES.decode(after) if after else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the place to go on from is malformed ({error})", where="request") from error


def _evolved(found: Places) -> int:
    """How often the store had gone over to another program when a place was reached."""
    return next((count for count, _ in found.get(_EVOLVED, [])), 0)


def _places(found: Places, streams: Sequence[tuple[Stream, int]], passed: Mapping[str, int]) -> Places:
    """Where to go on, in streams of parts."""
    start: Places = {
        stream.name: [(passed.get(stream.name, 0), ())] * len(stream.parts) for stream, _ in streams
    }
    for name, places in start.items():
        given = found.get(name)
        if given is not None and len(given) == len(places):
            start[name] = [_checked(place) for place in given]
    return start


def _checked(place: Reached) -> Reached:
    version, key = place
    integers = (version, *(cell for cell in key if isinstance(cell, int)))
    plain = all(isinstance(cell, int | float | str | bytes) for cell in key)
    if not plain or not all(-(2**63) <= number < 2**63 for number in integers):
        raise WireError("the place to go on from is malformed", where="request")
    return place


def _unseen(rows: list[Row], part: Part, vector: Vector | None) -> list[Row]:
    """Drop what the reader's vector covers; the origin is in the last two columns."""
    if not vector or part.columns[-2:-1] != (SITE,):
        return rows
    return [row for row in rows if row[-1] > vector.get(row[-2], 0)]


def _section(
    stream: str,
    number: int,
    part: Part,
    rows: list[Row],
    register: Register,
    names: Mapping[int, str],
) -> Section:
    columns: list[Sequence[Any]] = [list(column) for column in zip(*rows, strict=True)]
    for index, column in enumerate(part.columns):
        if column.word == "site":
            places = {site: register.place(names[site]) for site in set(columns[index])}
            columns[index] = [places[site] for site in columns[index]]
    return Section(stream, number, len(rows), columns)
