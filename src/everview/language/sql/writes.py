"""INSERT, UPDATE and DELETE, to plans of the rows they touch."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.errors import DataError
from everview.language.expressions import Column, Expression, Literal
from everview.language.plan import Field, Filter, Plan, Project, Scan, Values
from everview.language.relations import Relation
from everview.language.sql.coerce import cast, output_as
from everview.language.sql.context import Context
from everview.language.sql.names import Scope
from everview.language.sql.queries import untyped_query
from everview.language.sql.scalars import Scalars, unnest
from everview.language.sql.source import folded, nearest
from everview.language.types import Kind, Type, is_implicit

__all__ = ["bind_delete", "bind_insert", "bind_update"]

_REFUSALS = {
    "returning": ("RETURNING", "query the rows afterwards"),
    "conflict": ("ON CONFLICT", "on a keyed relation INSERT replaces the row of that key; leave it out"),
    "from_": ("FROM", "write a subquery in SET or WHERE"),
    "using": ("USING", "write WHERE EXISTS (SELECT …)"),
    "default": ("DEFAULT", "name the columns and give their values"),
    "with_": ("WITH", "write a subquery"),
    "order": ("ORDER BY", "write a subquery in WHERE"),
    "limit": ("LIMIT", "write a subquery in WHERE"),
}

Relations = Callable[[str], Relation]


def _target(context: Context, table: exp.Expr, relations: Relations) -> tuple[Relation, Scope, Plan]:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise context.source.error(table, "a relation is named here")
    context.source.only(table, ("this", "alias"), {"db": (".", ""), "only": ("ONLY", "leave it out")})
    relation = relations(folded(table.this))
    alias = table.args.get("alias")
    name = folded(alias.this) if alias is not None else relation.name
    return relation, Scope.of_table(name, relation.schema), Scan(relation.name, relation.schema)


def _position(context: Context, node: exp.Expr, relation: Relation) -> int:
    name = folded(node.this if isinstance(node, exp.Column) else node)
    if name not in relation.columns:
        raise context.source.error(
            node,
            f"{relation.name} has no column {name}",
            hint=nearest(name, relation.columns) or f"its columns are {', '.join(relation.columns)}",
        )
    return relation.columns.index(name)


def _check_assignable(context: Context, node: exp.Expr, given: Type, target: Type, column: str) -> None:
    """What enters a column by itself: the implicit conversions, and a DECIMAL of another scale, rounded."""
    if not is_implicit(given, target) and not (given.kind is target.kind is Kind.DECIMAL):
        raise context.source.error(
            node, f"column {column} is {target}, not {given}", hint=f"write CAST(… AS {target})"
        )


def bind_insert(context: Context, node: exp.Expr, relations: Relations) -> tuple[Relation, Plan]:
    """The rows to insert, in the relation's column order; columns not named are NULL."""
    source = context.source
    source.only(node, ("this", "expression"), _REFUSALS)
    named = isinstance(node.this, exp.Schema)
    relation, _, _ = _target(context, node.this.this if named else node.this, relations)
    if named:
        positions = [_position(context, column, relation) for column in node.this.expressions]
    else:
        positions = list(range(len(relation.schema)))
    if len(set(positions)) != len(positions):
        raise source.error(node.this, "a column is named twice")
    if node.args.get("expression") is None:
        raise source.error(node, "INSERT needs VALUES or SELECT")
    rows = node.args["expression"]
    plain = isinstance(rows, exp.Values) and not any(
        rows.args.get(key) for key in ("order", "limit", "offset")
    )
    plan = _values(context, rows, relation, positions) if plain else untyped_query(rows, context)
    if len(plan.schema) != len(positions) and (named or len(plan.schema) > len(positions)):
        raise source.error(
            rows, f"{relation.name} takes {len(positions)} values here, not {len(plan.schema)}"
        )
    positions = positions[: len(plan.schema)]
    for field, position in zip(plan.schema, positions, strict=True):
        wanted = relation.schema[position]
        _check_assignable(context, rows, field.type, wanted.type, wanted.name)
    targets = [relation.schema[position].type for position in positions]
    plan = output_as(source, rows, plan, targets)
    if positions == list(range(len(relation.schema))):
        return relation, plan
    filled: list[Expression] = [
        Column(positions.index(index), field.type, field.name)
        if index in positions
        else Literal(None, field.type)
        for index, field in enumerate(relation.schema)
    ]
    return relation, Project(plan, tuple(filled), relation.columns)


def _values(context: Context, node: exp.Expr, relation: Relation, positions: list[int]) -> Plan:
    """The rows of INSERT … VALUES: each cell takes the type of its column, whatever stands above it."""
    source = context.source
    source.only(node, ("expressions",), _REFUSALS)
    scalars = Scalars(context, Scope(()), "VALUES")
    rows: list[tuple[Expression, ...]] = []
    for row in node.expressions:
        cells = list(row.expressions) if isinstance(row, exp.Tuple) else [unnest(row)]
        if len(cells) > len(positions) or (rows and len(cells) != len(rows[0])):
            wanted = len(rows[0]) if rows else len(positions)
            raise source.error(row, f"{relation.name} takes {wanted} values here, not {len(cells)}")
        bound: list[Expression] = []
        for cell, position in zip(cells, positions, strict=False):
            field = relation.schema[position]
            value = scalars.bind(cell)
            _check_assignable(context, cell, value.type, field.type, field.name)
            bound.append(cast(source, cell, value, field.type))
        rows.append(tuple(bound))
    fields = tuple(relation.schema[position] for position in positions[: len(rows[0])])
    return Values(tuple(Field(field.name, field.type) for field in fields), tuple(rows))


def _filtered(context: Context, node: exp.Expr, scope: Scope, plan: Plan) -> Plan:
    where = node.args.get("where")
    if where is None:
        return plan
    return Filter(plan, Scalars(context, scope, "WHERE").truth(where.this, "WHERE"))


def bind_delete(context: Context, node: exp.Expr, relations: Relations) -> tuple[Relation, Plan]:
    """The rows to delete."""
    context.source.only(node, ("this", "where"), _REFUSALS)
    relation, scope, scan = _target(context, node.this, relations)
    return relation, _filtered(context, node, scope, scan)


def bind_update(context: Context, node: exp.Expr, relations: Relations) -> tuple[Relation, Plan]:
    """Each row to replace, followed by what replaces it."""
    source = context.source
    source.only(node, ("this", "expressions", "where"), _REFUSALS)
    relation, scope, scan = _target(context, node.this, relations)
    scalars = Scalars(context, scope, "SET")
    old = tuple(Column(index, field.type, field.name) for index, field in enumerate(relation.schema))
    new: list[Expression] = list(old)
    assigned: set[int] = set()
    for part in node.expressions:
        target = unnest(part.this) if isinstance(part, exp.EQ) else None
        if not isinstance(target, exp.Column):
            raise source.error(part, "SET takes column = value", hint="write one assignment per column")
        position = _position(context, target, relation)
        if position in assigned:
            raise source.error(part, f"column {relation.columns[position]} is set twice")
        assigned.add(position)
        field = relation.schema[position]
        value = scalars.bind(part.expression)
        _check_assignable(context, part.expression, value.type, field.type, field.name)
        new[position] = cast(source, part.expression, value, field.type)
    plan = _filtered(context, node, scope, scan)
    names = (*relation.columns, *(f"new_{name}" for name in relation.columns))
    return relation, Project(plan, (*old, *new), names)


def refuse_target(name: str, *, is_view: bool) -> DataError:
    """Why a name cannot be written to."""
    if is_view:
        return DataError(f"{name} is a view; write to the relations it is made from", relation=name)
    return DataError(f"there is no relation {name}", relation=name)
