"""WITH RECURSIVE: queries that read themselves, or each other, to Fixpoints.

Recursive queries are sets. Their types come from the parts that do not read the recursion, as in PostgreSQL;
any number of queries may read each other, and one may read the recursion any number of times. What more rows
of it could take rows away from (negation, aggregates, LIMIT) is refused; over other tables it may be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.language.expressions import (
    TRUE,
    Exists,
    Expression,
    InSubquery,
    Literal,
    ScalarSubquery,
    transform,
)
from everview.language.graphs import components
from everview.language.growth import unbounded
from everview.language.plan import (
    Field,
    Fixpoint,
    Plan,
    RecursiveScan,
    Schema,
    map_expressions,
    rewrite,
    types_of,
)
from everview.language.printing import expression_text
from everview.language.recursion import Clause, NotMonotoneError, clauses_of, refuse_subqueries
from everview.language.sql.context import Context
from everview.language.sql.source import folded
from everview.language.types import Type, common_type

__all__ = ["Named", "bind_recursive", "in_order"]


@dataclass(frozen=True, slots=True)
class Named:
    """A query of WITH: its name, the columns it is given there, and where it stands."""

    name: str
    columns: tuple[str, ...]
    alias: exp.Expr
    query: exp.Expr


def in_order(queries: Mapping[str, Named]) -> Iterator[tuple[list[Named], bool]]:
    """The queries of a WITH in groups that read each other, and whether they do; what is read comes first."""
    reads = {
        name: [other for other in queries if _mentions(named.query, {other})]
        for name, named in queries.items()
    }
    for group in components(reads):
        yield [queries[name] for name in group], len(group) > 1 or group[0] in reads[group[0]]


def bind_recursive(
    group: Sequence[Named], context: Context, bind: Callable[[exp.Expr, Context], Plan]
) -> dict[str, Plan]:
    """The plans of queries that read each other."""
    source = context.source
    if context.parameters.allowed:
        raise source.error(
            group[0].alias, f"{group[0].name} is recursive", hint="declare it as a view, and query that"
        )
    for named in group:
        _refuse_bags(named, group, context)
    schemas = _schemas(group, context, bind)
    while True:
        plans = {named.name: bind(named.query, _knowing(context, schemas)) for named in group}
        _check_types(group, schemas, plans, context)
        wider = {name: _with_nulls(schemas[name], plan.schema) for name, plan in plans.items()}
        if wider == schemas:
            break
        schemas = wider
    _check(group, schemas, plans, context)
    names = tuple(schemas)
    return {
        name: Fixpoint(names, tuple(schemas.values()), tuple(plans[other] for other in names), name)
        for name in names
    }


def _mentions(node: exp.Expr, names: set[str]) -> bool:
    """Whether a query reads one of these names, and not a query of its own WITH by that name."""
    return any(
        isinstance(table.this, exp.Identifier)
        and folded(table.this) in names
        and not _is_renamed(table, folded(table.this), node)
        for table in node.find_all(exp.Table)
    )


def _is_renamed(table: exp.Expr, name: str, root: exp.Expr) -> bool:
    """Whether a WITH between a table and the root, also the root's own, gives the name another meaning."""
    around: exp.Expr | None = table
    while around is not None:
        with_ = around.args.get("with_")
        if with_ is not None and name in {folded(cte.args["alias"].this) for cte in with_.expressions}:
            return True
        around = None if around is root else around.parent
    return False


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery) and not any(
        node.args.get(k) for k in ("order", "limit", "offset", "with_")
    ):
        node = node.this
    return node


def _arms(node: exp.Expr) -> Iterator[exp.Expr]:
    """The queries that UNION joins."""
    inner = _unwrapped(node)
    if isinstance(inner, exp.Union) and inner.args.get("with_") is None:
        yield from _arms(inner.this)
        yield from _arms(inner.args["expression"])
    else:
        yield node


def _refuse_bags(named: Named, group: Sequence[Named], context: Context) -> None:
    """UNION ALL would count in how many ways a row is derived, and there may be infinitely many."""
    root = _unwrapped(named.query)
    names = {other.name for other in group}
    if isinstance(root, exp.Union) and not root.args.get("distinct") and _mentions(root, names):
        raise context.source.error(
            named.alias,
            f"{named.name} is recursive, and recursive queries are sets: UNION ALL would count derivations",
            hint="write UNION",
        )


def _knowing(context: Context, schemas: Mapping[str, Schema]) -> Context:
    scans = {name: RecursiveScan(name, schema) for name, schema in schemas.items()}
    return replace(context, ctes={**context.ctes, **scans})


def _schemas(
    group: Sequence[Named], context: Context, bind: Callable[[exp.Expr, Context], Plan]
) -> dict[str, Schema]:
    """The columns of each query, from those of its parts that read nothing whose columns are not known."""
    found: dict[str, Schema] = {}
    waiting = list(group)
    while waiting:
        unknown = {named.name for named in waiting}
        ready = [
            (named, arms)
            for named in waiting
            if (arms := [arm for arm in _arms(named.query) if not _mentions(arm, unknown)])
        ]
        if not ready:
            raise context.source.error(
                waiting[0].alias,
                f"{waiting[0].name} has no part to begin with: every part of it reads the recursion",
                hint="add a SELECT over other tables, joined by UNION",
            )
        for named, arms in ready:
            found[named.name] = _begun(named, [bind(arm, _knowing(context, found)) for arm in arms], context)
        waiting = [named for named in waiting if named.name not in found]
    return {named.name: found[named.name] for named in group}


def _begun(named: Named, plans: Sequence[Plan], context: Context) -> Schema:
    first = plans[0].schema
    if named.columns and len(named.columns) != len(first):
        raise context.source.error(
            named.alias, f"{named.name} has {len(first)} columns, not {len(named.columns)}"
        )
    names = named.columns or tuple(field.name for field in first)
    types: list[Type] = list(types_of(plans[0]))
    for plan in plans[1:]:
        both = [common_type(one, other) for one, other in zip(types, types_of(plan), strict=False)]
        types = [kind or one for kind, one in zip(both, types, strict=False)]
    return tuple(Field(name, kind, nullable=False) for name, kind in zip(names, types, strict=True))


def _with_nulls(schema: Schema, made: Schema) -> Schema:
    return tuple(
        replace(field, nullable=field.nullable or other.nullable)
        for field, other in zip(schema, made, strict=True)
    )


def _check_types(
    group: Sequence[Named], schemas: Mapping[str, Schema], plans: Mapping[str, Plan], context: Context
) -> None:
    for named in group:
        for field, made in zip(schemas[named.name], plans[named.name].schema, strict=True):
            if field.type != made.type:
                raise context.source.error(
                    named.alias,
                    f"column {field.name} of {named.name} is {field.type} in the part that the recursion "
                    f"begins with, and {made.type} in all",
                    hint=f"write CAST(… AS {made.type}) in the part that it begins with",
                )


def _check(
    group: Sequence[Named], schemas: Mapping[str, Schema], plans: Mapping[str, Plan], context: Context
) -> None:
    """The recursion only grows, and ends."""
    clauses: list[tuple[Named, Clause]] = []
    for named in group:
        try:
            refuse_subqueries(plans[named.name], plans.keys())
            found = clauses_of(_without_subqueries(plans[named.name]), plans.keys())
        except NotMonotoneError as error:
            raise context.source.error(
                named.alias,
                f"{named.name} cannot be recursive so: {error}",
                hint="let it read a view that is not part of the recursion",
            ) from None
        clauses += [(named, clause) for clause in found]
    creation = unbounded([(named.name, clause) for named, clause in clauses])
    if creation is not None:
        named = clauses[creation.clause][0]
        column = schemas[named.name][creation.column].name
        raise context.source.error(
            named.alias,
            f"column {column} of {named.name} is computed from the recursion itself, as "
            f"{expression_text(creation.expression)}, and may take values without end",
            hint=f"state {creation.missing}",
        )


def _without_subqueries(plan: Plan) -> Plan:
    """The plan with subqueries, which do not read the recursion, left open."""

    def one(node: Expression) -> Expression:
        match node:
            case Exists() | InSubquery():
                return TRUE
            case ScalarSubquery():
                return Literal(None, node.type)
            case _:
                return node

    return rewrite(plan, lambda node: map_expressions(node, lambda e: transform(e, one)))
