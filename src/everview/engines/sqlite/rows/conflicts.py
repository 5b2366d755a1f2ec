"""Conflicts: rows that lost against another row of their key, and are held until it is written again.

Of a keyed relation those are rows with a value that is not shown. Where columns are merged, it must be a
value that the row's writer changed. That is known where all rows of the key go back to the same one. Else it
counts where it is later than all that those rows have in common: rather one too many is listed than one too
few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everview.engines.sqlite.circuits.names import columns, quoted
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.keyed import KeyedRows
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.rows.merged import MergedRows, changed_at
from everview.engines.sqlite.scalars.public import public_sql
from everview.engines.sqlite.stamps import SHIFT
from everview.language.conflicts import CONFLICTS, CONFLICTS_SCHEMA
from everview.language.types import Field, Kind

__all__ = ["conflict_rows", "conflicts_view", "lost_sql"]

_MOST = 100
"""So many terms stand side by side: SQLite has limits, and more are put together in groups."""


def lost_sql(stored: StoredRows, shown: Sequence[str]) -> str:
    """Return the SELECT of rows h of a relation that lost: of terms over them, author and microseconds."""
    author = "ifnull(nullif(s.name, ''), s.incarnation)"
    terms = ", ".join([*shown, f"{author} AS author", f"h.stamp >> {SHIFT} AS time"])
    joins = [f"JOIN {stored.table.name} AS r ON {_same_key(stored, 'r', 'h')}"]
    if isinstance(stored, MergedRows):
        joins.append(f"JOIN ({_common(stored)}) AS g ON {_same_key(stored, 'g', 'h')}")
    joins.append(f"JOIN {SITES} AS s ON s.number = h.dot >> 40")
    return f"SELECT {terms} FROM {stored.held} AS h {' '.join(joins)} WHERE {_lost(stored)}"


def _same_key(stored: StoredRows, left: str, right: str) -> str:
    return " AND ".join(f"{left}.{key} = {right}.{key}" for key in stored.table.key())


def _lost(stored: StoredRows) -> str:
    if not isinstance(stored, MergedRows):
        return _chain("OR", [f"h.{column} IS NOT r.{column}" for column in stored.table.columns])
    pairs = zip(stored.values, stored.ages, strict=True)
    lost = [
        f"h.{value} IS NOT r.{value} AND iif(g.one, NOT h.{age} & 1, {changed_at('h', age)} > g.common)"
        for value, age in pairs
    ]
    return _chain("OR", lost) or "0"


def _common(stored: MergedRows) -> str:
    """For each key whether its rows go back to one, and the latest stamp that a column has in all of them."""
    key = ", ".join(stored.table.key())
    stamps = [changed_at("o", age) for age in stored.ages]
    latest = [f"iif(min({stamp}) = max({stamp}), max({stamp}), -1)" for stamp in stamps]
    return (
        f"SELECT {key}, min(stamp - since) = max(stamp - since) AS one, "
        f"{_greatest(['-1', '-1', *latest])} AS common FROM {stored.held} AS o GROUP BY {key}"
    )


def _greatest(terms: Sequence[str]) -> str:
    """SQLite's functions have some hundred arguments at most."""
    if len(terms) <= _MOST:
        return f"max({', '.join(terms)})"
    return _greatest(["-1", *(_greatest(["-1", "-1", *group]) for group in _grouped(terms, _MOST - 2))])


def conflict_rows(relations: Iterable[StoredRows]) -> str:
    """Return the SELECT of all conflicts in relations, as c0, c1, … and w."""
    found = []
    for stored in relations:
        if isinstance(stored, KeyedRows | MergedRows):
            fields = dict(zip(stored.relation.columns, stored.table.columns, strict=True))
            key = _json([(stored.relation.field(name), f"h.{fields[name]}") for name in stored.relation.key])
            row = _json([(field, f"h.{fields[field.name]}") for field in stored.relation.schema])
            name = "'" + stored.relation.name.replace("'", "''") + "'"
            found.append(lost_sql(stored, [f"{name} AS relation", f"{key} AS key", f"{row} AS row"]))
    names = [field.name for field in CONFLICTS_SCHEMA]
    listed = ", ".join(f"{name} AS {c}" for name, c in zip(names, columns(len(names)), strict=True))
    none = f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE 0"
    return f"SELECT {listed}, 1 AS w FROM ({_united(found or [none])})"


def conflicts_view(rows: str) -> str:
    """Return what creates the SQL view of all conflicts, for any client."""
    shown = ", ".join(
        f"{public_sql(field.type, c)} AS {quoted(field.name)}"
        for field, c in zip(CONFLICTS_SCHEMA, columns(len(CONFLICTS_SCHEMA)), strict=True)
    )
    return f"CREATE VIEW {CONFLICTS} AS SELECT {shown} FROM ({rows})"


def _json(cells: Sequence[tuple[Field, str]]) -> str:
    """An object as JSON text, by functions that every client has."""
    members = [
        "'"
        + f"{',' if place else ''}{_quoted_json(field.name)}:".replace("'", "''")
        + f"' || {_value(field, sql)}"
        for place, (field, sql) in enumerate(cells)
    ]
    return f"'{{' || {_chain('||', members)} || '}}'"


def _quoted_json(name: str) -> str:
    import json  # noqa: PLC0415 - when a store is opened, and not at every start

    return json.dumps(name, ensure_ascii=False)


def _value(field: Field, sql: str) -> str:
    match field.type.kind:
        case Kind.BLOB:
            text = f"""'"' || lower(hex({sql})) || '"'"""
        case Kind.BOOLEAN:
            text = f"iif({sql}, 'true', 'false')"
        case Kind.DOUBLE:
            endless = """WHEN 9e999 THEN '"Infinity"' WHEN -9e999 THEN '"-Infinity"'"""
            text = f"CASE {sql} {endless} ELSE json_quote({sql}) END"
        case _:
            text = f"json_quote({public_sql(field.type, sql)})"
    return f"iif({sql} IS NULL, 'null', {text})"


def _chain(operator: str, terms: Sequence[str]) -> str:
    """Terms under an operator that may be grouped at will: SQLite takes expressions of a limited depth."""
    if len(terms) > _MOST:
        terms = [f"({_chain(operator, group)})" for group in _grouped(terms, _MOST)]
    return f" {operator} ".join(terms)


def _united(selects: Sequence[str]) -> str:
    while len(selects) > _MOST:
        selects = [f"SELECT * FROM ({' UNION ALL '.join(group)})" for group in _grouped(selects, _MOST)]
    return " UNION ALL ".join(selects)


def _grouped(terms: Sequence[str], size: int) -> list[Sequence[str]]:
    return [terms[start : start + size] for start in range(0, len(terms), size)]
