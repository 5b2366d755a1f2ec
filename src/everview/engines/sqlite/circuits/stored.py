"""Stored rows: a bag kept in a table, and DISTINCT, which counts how often each row is there."""

from __future__ import annotations

from collections.abc import Callable

from everview.engines.sqlite.circuits.circuit import (
    Anew,
    Changed,
    Circuit,
    Statement,
    consolidated,
    from_contents,
    live,
    united,
)
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, same_row


def add_stored(circuit: Circuit, name: str, source: Node) -> Node:
    """Keep the rows of `source`, with their multiplicities, in the table `name`."""
    table = StateTable(internal(name), source.schema)
    circuit.declare(table)
    change = circuit.scratch(f"d_{name}", source.schema)
    branches = source.delta()

    def statements(changed: Changed) -> list[Statement]:
        parts = live(branches, changed)
        if change not in circuit.demanded:
            return _upsert(table, united(parts, source.schema), is_sorted=bool(changed.many))
        return replaced(consolidated(parts, source.schema))

    def replaced(rows: str) -> list[Statement]:
        return [Statement(f"INSERT INTO {change} {rows}", change), *_upsert(table, f"SELECT * FROM {change}")]

    circuit.step(
        "store",
        "by change: what changed rows select, project and join to",
        branches,
        statements,
        makes=change,
        table=table.name,
        grows=True,
        anew=_anew(circuit, table, source, change, replaced),
    )
    names = columns(len(source.schema))

    def delta() -> list[Select]:
        circuit.demand(change)
        return [from_table(circuit.names, change, names, weight="w", stored=False, delta=True)]

    def contents() -> list[Select]:
        return [from_table(circuit.names, table.name, names, weight="1" if source.is_set else "w")]

    return Node(source.schema, delta, contents, is_set=source.is_set)


def add_distinct(circuit: Circuit, name: str, source: Node) -> Node:
    """Keep each row of `source` with its count; the row is there while the count is above 0."""
    table = StateTable(internal(name), source.schema)
    circuit.declare(table)
    width = len(source.schema)
    touched = circuit.scratch(f"x_{name}", source.schema)
    change = circuit.scratch(f"d_{name}", source.schema)
    branches = source.delta()
    names = columns(width)

    def statements(changed: Changed) -> list[Statement]:
        parts = live(branches, changed)
        if change not in circuit.demanded:
            return _upsert(table, united(parts, source.schema), is_sorted=bool(changed.many))
        return replaced(consolidated(parts, source.schema))

    def replaced(rows: str) -> list[Statement]:
        x, n = ([f"{alias}.{c}" for c in names] for alias in ("x", "n"))
        turns = (
            f"INSERT INTO {change} SELECT {', '.join(x)}, CASE WHEN n.w IS NULL THEN 1 ELSE -1 END "
            f"FROM {touched} AS x LEFT JOIN {table.name} AS n ON {same_row(source.schema, n, x)} "
            "WHERE n.w IS NULL OR n.w + x.w = 0"
        )
        return [
            Statement(f"INSERT INTO {touched} {rows}", touched),
            Statement(turns, change),
            *_upsert(table, f"SELECT * FROM {touched}"),
        ]

    how = "by change: counts of changed rows"
    anew = _anew(circuit, table, source, change, replaced)
    circuit.step("distinct", how, branches, statements, makes=change, table=table.name, grows=True, anew=anew)

    def delta() -> list[Select]:
        circuit.demand(change)
        return [from_table(circuit.names, change, names, weight="w", stored=False, delta=True)]

    return Node(source.schema, delta, lambda: [from_table(circuit.names, table.name, names)], is_set=True)


def _anew(
    circuit: Circuit,
    table: StateTable,
    source: Node,
    change: str,
    replaced: Callable[[str], list[Statement]],
) -> Anew | None:
    """Fill the table again; where somebody reads the change, `replaced` makes it of what differs."""

    def kept() -> list[str]:
        return [table.name] if change in circuit.demanded else []

    def statements(rows: list[Select]) -> list[Statement]:
        if change not in circuit.demanded:
            fill = _upsert(table, united(rows, source.schema), is_sorted=True)
            return [Statement(f"DELETE FROM {table.name}"), *fill]
        old = from_table(circuit.names, table.name, table.columns, weight="w").negated()
        return replaced(consolidated([*rows, old], source.schema))

    return from_contents(source, kept, statements)


def _upsert(table: StateTable, rows: str, *, is_sorted: bool = False) -> list[Statement]:
    """Add rows to the table, where equal ones add up. Many are sorted first: so each page is met once."""
    key = ", ".join(table.key())
    if is_sorted and key:
        rows = f"SELECT * FROM ({rows}) ORDER BY {key}"
    return [Statement(table.upsert(rows, ["w = w + excluded.w"])), Statement(table.sweep(), sweeps=True)]
