"""Explaining: what is kept of a core that comes from elsewhere, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from everview.engines.sqlite.derived.hollow import HollowRows
from everview.engines.sqlite.derived.received import ReceivedCore
from everview.language.expressions import TRUE
from everview.planner.expression_text import expression_text

__all__ = ["core_lines"]


def core_lines(received: ReceivedCore, views: Iterable[str], connection: sqlite3.Connection) -> list[str]:
    """Return what travels of a core, and how much of it is here; `views` are those that it is a part of."""
    core = received.core
    feeds = f"{', '.join(core.inputs)}, or a view that it is a part of ({', '.join(views)})"
    lines = [f"{core.name}, any site feeds it that hosts {feeds}:"]
    for join in received.joins:
        joined = " ⋈ ".join(atom.name for atom in join.branch.atoms)
        held, hidden = _count(connection, join.table), _count(connection, join.table, "hidden > 0")
        lines.append(f"  derivations from {joined}: {held:,} in {join.table}, {hidden:,} of them hidden")
    return [*lines, *(_input(hollow, connection) for hollow in received.inputs)]


def _input(hollow: HollowRows, connection: sqlite3.Connection) -> str:
    reduced = hollow.reduced
    fields = [field.name for field in reduced.base.schema]
    which = "all" if reduced.passing == TRUE else expression_text(reduced.passing, fields)
    what = "dots"
    if reduced.names:
        what += ", and ids of keys" if reduced.base.is_keyed else ", and ids"
    if reduced.payloads:
        what += ", and what the view shows of them"
    held, *beside = (_count(connection, table) for table in hollow.tables)
    return (
        f"  rows of {reduced.base.name} ({which}), their {what}: {held:,} in {hollow.table.name}, "
        f"{sum(beside):,} held beside"
    )


def _count(connection: sqlite3.Connection, table: str, where: str = "1") -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])
