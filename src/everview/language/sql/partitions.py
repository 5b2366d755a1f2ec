"""PARTITION BY (column, …): every value of these columns is replicated by itself.

A site may host some of the values. So a row must never change from one to another in silence: a primary key
includes the columns, and a row that moves is a deletion and an insertion. NULL is a value like any.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.language.relations import Relation
from everview.language.sql.source import Source, folded, nearest
from everview.language.types import Kind

__all__ = ["is_partitioning", "read_partitioned"]

MOST_COLUMNS = 4

_UNFIT = (Kind.DOUBLE, Kind.BLOB)
"""Types that are no names of anything."""


def is_partitioning(node: exp.Expr) -> bool:
    """Whether a property of a CREATE TABLE is its PARTITION BY."""
    return isinstance(node, exp.PartitionedByProperty)


def read_partitioned(source: Source, node: exp.Expr, relation: Relation) -> Relation:
    """The relation with the columns that it is partitioned by; as it is without them."""
    properties = node.args.get("properties")
    found = [part for part in properties.expressions if is_partitioning(part)] if properties else []
    if not found:
        return relation
    if len(found) > 1:
        raise source.error(node, "PARTITION BY is written twice", hint="name all columns at once")
    columns = _columns(source, found[0])
    for column in columns:
        _check_column(source, node, relation, column)
    if len(set(columns)) < len(columns) or len(columns) > MOST_COLUMNS:
        hint = f"name up to {MOST_COLUMNS} columns, each once"
        raise source.error(node, "PARTITION BY names too many columns", hint=hint, word="PARTITION")
    if relation.owner is not None:
        raise source.error(
            node,
            f"{relation.name}: rows with an owner are not partitioned",
            hint="leave out PARTITION BY, or owner and what goes with it",
            word="PARTITION",
        )
    return replace(relation, partitioned=columns)


def _columns(source: Source, node: exp.Expr) -> tuple[str, ...]:
    listed = node.this.expressions if isinstance(node.this, exp.Schema) else ()
    if not listed or not all(isinstance(part, exp.Identifier) for part in listed):
        raise source.error(
            node,
            "PARTITION BY lists columns, and every value of them is a partition",
            hint="write PARTITION BY (column, …)",
            word="PARTITION",
        )
    return tuple(folded(part) for part in listed)


def _check_column(source: Source, node: exp.Expr, relation: Relation, column: str) -> None:
    if column not in relation.columns:
        hint = nearest(column, relation.columns) or f"the columns are {', '.join(relation.columns)}"
        raise source.error(node, f"PARTITION BY: there is no column {column}", hint=hint, word=column)
    if relation.is_keyed and column not in relation.key:
        raise source.error(
            node,
            f"PARTITION BY: the PRIMARY KEY does not include {column}",
            hint=f"write PRIMARY KEY ({', '.join([*relation.key, column])})",
            word=column,
        )
    kind = relation.field(column).type.kind
    if kind in _UNFIT:
        raise source.error(
            node,
            f"PARTITION BY: {column} is {kind.value}, of which no value names a partition",
            hint="partition by TEXT, BIGINT, BOOLEAN, DECIMAL, DATE or TIMESTAMP",
            word=column,
        )
