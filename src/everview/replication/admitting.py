"""Admitting: what of the rows that came goes into the store.

A merge is total. A malformed section is refused as a whole, with its message; but a row that no site can have
written, or that its writer may not write, is dropped and counted, and the rest goes in.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from itertools import compress
from typing import Any

from everview.engines.sqlite.ids import Ids
from everview.engines.sqlite.integers import Integers, is_same, within
from everview.engines.sqlite.parts import Part
from everview.engines.sqlite.relations.keyed import TOP
from everview.engines.sqlite.relations.staging import Columns
from everview.engines.sqlite.stamps import GREATEST, microseconds
from everview.language.evolution import shape_of
from everview.language.limits import COPIES, LONGEST
from everview.language.relations import Relation, Semantics
from everview.language.windowed import PROGRESS
from everview.replication.knowledge import Knowledge
from everview.replication.messages import Message, Section
from everview.replication.versions import widened
from everview.replication.wire import check

_LOG = logging.getLogger("everview")


def admitted(knowledge: Knowledge, message: Message, section: Section, part: Part) -> Columns:
    """Return the columns of a section as the part has them, sites by their numbers here."""
    relation = knowledge.store.engine.program.relations.get(section.stream)
    if relation is not None and message.versions is not None:
        section = widened(section, message.versions, shape_of(relation))
    check(section, part.columns, len(message.sites))
    columns: list[Sequence[Any]] = list(section.columns)
    for index, column in enumerate(part.columns):
        if column.word == "site":
            numbers = [knowledge.numbers[inc] for inc in message.sites]
            columns[index] = _numbered(columns[index], numbers)
        elif column.word == "value" and isinstance(columns[index], Ids):
            columns[index] = list(columns[index])  # of 16 bytes each, but no ids
    if relation is None:
        return columns
    keep = _possible(columns, relation)
    if relation.owner is not None:
        owned = _owned(knowledge, columns, relation, relation.columns.index(relation.owner))
        keep = owned if keep is None else list(map(min, keep, owned))
    if relation.event_time is not None:
        timely = _timely(knowledge, columns, relation)
        keep = timely if keep is None else list(map(min, keep, timely))
    if keep is None or all(keep):
        return columns
    knowledge.state.dropped += keep.count(False)
    return [list(compress(column, keep)) for column in columns]


def _numbered(places: Sequence[int], numbers: Sequence[int]) -> Sequence[int]:
    """A column of sites by their numbers; mostly all rows of a section are of one."""
    if is_same(places):
        number = numbers[places.least]
        return Integers([number] * len(places), number, number)
    return list(map(numbers.__getitem__, places))


def _possible(columns: Columns, relation: Relation) -> list[bool] | None:
    """Which rows have lengths and stamps that a site can have given them; None if all do."""
    width = len(relation.schema)
    match relation.semantics:
        case Semantics.SET | Semantics.ADD_WINS as kind:
            limits = [(width, 1, LONGEST if kind is Semantics.SET else 2)]
        case Semantics.KEYED:
            limits = [(width, 0, TOP), (width + 1, 0, GREATEST)]
        case _:
            limits = [(width, -COPIES, COPIES)]
    checked = [(columns[index], least, most) for index, least, most in limits]
    if not columns[0] or all(within(*one) for one in checked):
        return None
    return [
        all(least <= column[row] <= most for column, least, most in checked) for row in range(len(columns[0]))
    ]


def _owned(knowledge: Knowledge, columns: Columns, relation: Relation, owner: int) -> list[bool]:
    """Which rows the site named in them wrote; a deleted key names none, if the owner is not part of it."""
    names = knowledge.state.names
    by_number = {number: names.get(inc, "") for inc, number in knowledge.numbers.items()}
    owned = [by_number[site] == name for name, site in zip(columns[owner], columns[-2], strict=True)]
    if relation.semantics is Semantics.KEYED and relation.owner not in relation.key:
        alive = columns[len(relation.schema)]
        return [mine or not there for mine, there in zip(owned, alive, strict=True)]
    return owned


def _timely(knowledge: Knowledge, columns: Columns, relation: Relation) -> list[bool]:
    """Which rows are new and lie in windows that are final here: their writer may not write them.

    All that a source wrote before it closed is here, and afterwards its own door lets nothing pass. So they
    are of another device that goes by its name, or of a source that came back after it was given up.
    """
    table = knowledge.store.engine.relations[PROGRESS].table.name
    found = knowledge.store.writer.connection.execute(
        f"SELECT c0, c2 FROM {table} WHERE c1 = ?", (relation.name,)
    )
    final = dict(found.fetchall())
    vector = knowledge.vector(knowledge.membership.own(relation.name).vector)
    names, times = (columns[relation.columns.index(str(n))] for n in (relation.owner, relation.event_time))
    return [
        at >= final.get(name, at) or seq <= vector.get(site, 0)
        for name, at, site, seq in zip(names, times, *columns[-2:], strict=True)
    ]


def observe(knowledge: Knowledge, columns: Columns, stream: str, sender: str) -> int:
    """See that this clock is past every stamp that has come; return the greatest that counts as such."""
    clock = knowledge.store.clock
    limit = clock.limit()
    relation = knowledge.store.engine.program.relations.get(stream)
    if relation is not None and relation.semantics is Semantics.KEYED:
        stamps = columns[len(relation.schema) + 1]
        latest = max(stamps, default=0)
        if latest > limit:
            _LOG.warning(
                "%d rows of %s from %s have stamps more than 60 s ahead of this clock, up to %s; they "
                "are kept, and count when their time comes: check the clocks",
                sum(stamp > limit for stamp in stamps),
                stream,
                knowledge.state.names.get(sender) or sender,
                moment(latest),
            )
            latest = max((stamp for stamp in stamps if stamp <= limit), default=0)
        clock.observe(latest)
    return limit


def moment(stamp: int) -> str:
    """A stamp's time, for people."""
    try:
        return dt.datetime.fromtimestamp(microseconds(stamp) / 1e6, tz=dt.UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return "a time no calendar has"
