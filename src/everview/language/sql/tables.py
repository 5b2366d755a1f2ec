"""FROM: tables, subqueries, VALUES and joins, to a plan and the names it makes visible.

Joins associate to the left and bind tighter than commas. The columns of a join are the left ones, then
the right ones; USING and NATURAL show each common column once, first, as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from everview.errors import DataError
from everview.language.expressions import TRUE, Column, Expression, conjunction, shift
from everview.language.plan import Join, JoinKind, Plan, Project, Scan, Values
from everview.language.sql.coerce import call
from everview.language.sql.context import Context
from everview.language.sql.names import Scope, Visible
from everview.language.sql.scalars import Scalars
from everview.language.sql.source import folded, nearest, words

__all__ = ["ONE_ROW", "From", "bind_from"]

ONE_ROW = Values((), ((),))
"""What a SELECT without FROM reads."""

_TABLE_REFUSALS = {
    "sample": ("TABLESAMPLE", "a view must not depend on chance"),
    "only": ("ONLY", "relations do not inherit; leave it out"),
    "ordinality": ("WITH ORDINALITY", ""),
    "db": (".", "a relation's name has no schema before it"),
    "catalog": (".", "a relation's name has no schema before it"),
    "pivots": ("PIVOT", "write CASE inside aggregates"),
    "version": ("FOR", "views are always current"),
    "laterals": ("LATERAL", "join with a subquery that selects the columns to join by"),
}


OWN = "everview"
"""The one schema that a name may have before it: `everview.closed` is `everview_closed`."""


@dataclass(frozen=True, slots=True)
class From:
    """A plan, and what names mean over its rows."""

    plan: Plan
    scope: Scope


def bind_from(context: Context, query: exp.Expr) -> From:
    """The FROM of a SELECT with all its joins."""
    first = query.args.get("from_")
    if first is None:
        return From(ONE_ROW, Scope(()))
    context.source.only(first, ("this",), {})
    # A comma separates groups of joins: a, b JOIN c is a × (b JOIN c).
    groups: list[tuple[exp.Expr, list[exp.Expr]]] = [(first.this, [])]
    for join in query.args.get("joins") or ():
        if _is_comma(context, join):
            groups.append((join.this, []))
        else:
            groups[-1][1].append(join)
    bound = _joined(context, *groups[0])
    for table, joins in groups[1:]:
        bound = _combine(context, JoinKind.INNER, bound, _joined(context, table, joins), table)
    return bound


def _is_comma(context: Context, join: exp.Expr) -> bool:
    if any(join.args.get(key) for key in ("on", "using", "kind", "side", "method")):
        return False
    before = context.source.before(join.this, skip_parentheses=True)
    if before is not None and before.token_type is TokenType.JOIN:
        raise context.source.error(
            join.this, "JOIN needs ON or USING", hint="write CROSS JOIN if every pair is meant"
        )
    return True


def _joined(context: Context, table: exp.Expr, joins: Sequence[exp.Expr]) -> From:
    bound = _table(context, table)
    for join in joins:
        bound = _join(context, bound, join)
    return bound


def _table(context: Context, node: exp.Expr) -> From:
    source = context.source
    match node:
        case exp.Table():
            return _named_table(context, node)
        case exp.Subquery() if isinstance(node.this, exp.Table):
            # A parenthesised join: its tables keep their own names.
            source.only(node, ("this",), {"alias": ("AS", "name the tables inside instead")})
            return _table(context, node.this)
        case exp.Subquery() | exp.Values():
            plan = context.bind_query(node, context)
            joins = node.args.get("joins") or ()
            bound = _aliased(context, node, plan, None)
            for join in joins:
                bound = _join(context, bound, join)
            return bound
        case exp.Lateral():
            raise source.error(
                node,
                "LATERAL is not supported",
                hint="join with a subquery that selects the columns to join by",
                word="LATERAL",
            )
        case _:
            raise source.error(node, f"{words(node)} is not supported in FROM")


def _named_table(context: Context, node: exp.Expr) -> From:
    source = context.source
    db = node.args.get("db")
    is_own = isinstance(db, exp.Identifier) and folded(db) == OWN and node.args.get("catalog") is None
    source.only(node, ("this", "alias", "joins", *(("db",) if is_own else ())), _TABLE_REFUSALS)
    if not isinstance(node.this, exp.Identifier):
        raise source.error(
            node.this, "functions are not supported in FROM", hint="put the rows into a relation, or VALUES"
        )
    called = folded(node.this)
    name = f"{OWN}_{called}" if is_own else called
    plan: Plan | None = context.ctes.get(name)
    if plan is None:
        schema = context.catalog.schema(name)
        if schema is None:
            names = [*context.ctes, *context.catalog.names()]
            hint = nearest(name, names) or (
                f"there are {', '.join(sorted(names))}" if names else "declare it with CREATE TABLE"
            )
            error = source.error(node.this, f"there is no relation or view {name}", hint=hint)
            # A query may be right and the name merely not hosted here: that is about data, not text.
            raise DataError(str(error), relation=name) if context.parameters.allowed else error
        plan = Scan(name, schema)
    bound = _aliased(context, node, plan, called)
    for join in node.args.get("joins") or ():
        bound = _join(context, bound, join)
    return bound


def _aliased(context: Context, node: exp.Expr, plan: Plan, name: str | None) -> From:
    source = context.source
    alias = node.args.get("alias")
    if alias is None:
        if name is None:
            raise source.error(node, "a subquery in FROM needs a name", hint="write (SELECT …) AS name")
        return From(plan, Scope.of_table(name, plan.schema))
    source.only(alias, ("this", "columns"), {})
    table = folded(alias.this) if alias.this is not None else name
    names = [folded(column) for column in alias.args.get("columns") or ()]
    if len(names) > len(plan.schema):
        raise source.error(alias, f"{table} has {len(plan.schema)} columns, not {len(names)}")
    if names:
        full = (*names, *(field.name for field in plan.schema[len(names) :]))
        plan = _renamed(plan, full)
    return From(plan, Scope.of_table(table, plan.schema))


def _renamed(plan: Plan, names: tuple[str, ...]) -> Plan:
    if isinstance(plan, Project):
        return Project(plan.input, plan.expressions, names)
    columns = tuple(Column(index, field.type, field.name) for index, field in enumerate(plan.schema))
    return Project(plan, columns, names)


_SIDES = {"": JoinKind.INNER, "LEFT": JoinKind.LEFT, "RIGHT": JoinKind.RIGHT, "FULL": JoinKind.FULL}


def _join(context: Context, left: From, node: exp.Expr) -> From:
    source = context.source
    source.only(
        node,
        ("this", "on", "using", "side", "kind", "method"),
        {"hint": ("HINT", "leave it out"), "global_": ("GLOBAL", ""), "match_condition": ("MATCH", "")},
    )
    side, kind, method = (str(node.args.get(key) or "").upper() for key in ("side", "kind", "method"))
    if kind not in ("", "INNER", "OUTER", "CROSS") or method not in ("", "NATURAL") or side not in _SIDES:
        word = next(part for part in (method, kind, side) if part not in ("", "NATURAL", "OUTER"))
        hint = "write [NOT] EXISTS (SELECT …)" if kind in ("SEMI", "ANTI") else None
        raise source.error(node.this, f"{word} JOIN is not supported", hint=hint)
    right = _table(context, node.this)
    how = _SIDES[side]
    if kind == "CROSS":
        return _combine(context, how, left, right, node.this)
    if method == "NATURAL":
        common = [c.name for c in left.scope.columns if not c.hidden and right.scope.find(c.name, None)]
        return _using(context, how, (left, right), node, list(dict.fromkeys(common)))
    if node.args.get("using"):
        return _using(context, how, (left, right), node, [folded(name) for name in node.args["using"]])
    if node.args.get("on") is None:
        raise source.error(
            node.this, "JOIN needs ON or USING", hint="write CROSS JOIN if every pair is meant"
        )
    both = _combine(context, how, left, right, node.this)
    condition = Scalars(context, both.scope, "JOIN … ON").truth(node.args["on"], "ON")
    return From(Join(how, left.plan, right.plan, condition), both.scope)


def _combine(context: Context, kind: JoinKind, left: From, right: From, node: exp.Expr) -> From:
    """Every pair; both sides' names side by side."""
    twice = set(left.scope.tables) & set(right.scope.tables)
    if twice:
        name = min(twice)
        raise context.source.error(node, f"{name} stands twice in FROM", hint=f"write {name} AS another name")
    width = len(left.plan.schema)
    moved = tuple(replace(c, expression=shift(c.expression, width)) for c in right.scope.columns)
    plan = Join(kind, left.plan, right.plan, TRUE)
    return From(plan, Scope((*left.scope.columns, *moved)))


def _using(
    context: Context, kind: JoinKind, sides_: tuple[From, From], node: exp.Expr, names: list[str]
) -> From:
    source = context.source
    left, right = sides_
    both = _combine(context, kind, left, right, node.this)
    split = len(left.scope.columns)
    sides = (Scope(both.scope.columns[:split]), Scope(both.scope.columns[split:]))
    merged: list[Visible] = []
    conditions: list[Expression] = []
    for name in names:
        found = [side.find(name, None) for side in sides]
        for columns in found:
            if len(columns) != 1:
                problem = "is ambiguous" if columns else "is missing"
                known = [c.name for side in sides for c in side.columns]
                raise source.error(
                    node,
                    f"USING ({name}): the column {problem} on one side",
                    hint=nearest(name, known),
                    word=name,
                )
        left_column, right_column = found[0][0].expression, found[1][0].expression
        equal = call(source, node, "=", [left_column, right_column])
        conditions.append(equal)
        one, other = equal.arguments
        shown = {
            JoinKind.RIGHT: right_column if right_column.type == one.type else other,
            JoinKind.FULL: call(source, node, "coalesce", [one, other]),
        }.get(kind, left_column if left_column.type == one.type else one)
        merged.append(Visible(None, name, shown))
    rest = tuple(
        replace(c, hidden=True) if c.name in names and c.table is not None else c
        for c in both.scope.columns
        if c.name not in names or c.table is not None
    )
    plan = Join(kind, left.plan, right.plan, conjunction(conditions))
    return From(plan, Scope((*merged, *rest)))
