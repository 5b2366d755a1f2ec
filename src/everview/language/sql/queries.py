"""SELECT, VALUES, set operations and WITH, to plans.

A SELECT is read in SQL's own order: FROM, WHERE, GROUP BY and aggregates, HAVING, window functions, the
select list, DISTINCT, ORDER BY with LIMIT. ORDER BY without LIMIT has a meaning only for the result of
a query, never for a view or a subquery, and is refused there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.language.correlation import outer_columns
from everview.language.expressions import Column, Expression, Literal, substitute, walk
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Field,
    Filter,
    Intersect,
    Plan,
    Project,
    SortKey,
    UnionAll,
    Values,
    Window,
    types_of,
)
from everview.language.sql.calls import output_name
from everview.language.sql.coerce import output_as, settled, unify
from everview.language.sql.context import Context
from everview.language.sql.event_windows import FINAL, spread
from everview.language.sql.finality import Finality
from everview.language.sql.grouping import Collector, UngroupedError, regroup, window_columns
from everview.language.sql.limits import top
from everview.language.sql.names import Scope
from everview.language.sql.recursive import Named, bind_recursive, in_order
from everview.language.sql.scalars import Scalars, unnest
from everview.language.sql.source import Source, folded, words
from everview.language.sql.tables import From, bind_from
from everview.language.sql.windows import bind_sort_key, with_ties
from everview.language.types import TEXT, UNKNOWN

__all__ = ["bind_query", "bind_root", "untyped_query"]

_REFUSALS = {
    "locks": ("FOR UPDATE", "views take no locks; leave it out"),
    "qualify": ("QUALIFY", "filter in a query around this one"),
    "into": ("INTO", "write INSERT INTO … SELECT, or CREATE MATERIALIZED VIEW … AS SELECT"),
    "windows": ("WINDOW", "write the window out in parentheses after OVER"),
    "laterals": ("LATERAL", "join with a subquery that selects the columns to join by"),
    "sample": ("TABLESAMPLE", "a view must not depend on chance"),
    "hint": ("/*+", "leave it out"),
    "by_name": ("BY NAME", "list the columns in the same order"),
    "alias": ("AS", "only a subquery in FROM has a name"),
}
_ENDING = ("order", "limit", "offset", "with_")


def bind_query(node: exp.Expr, context: Context) -> Plan:
    """A subquery, as a plan whose columns all have types."""
    return bind_root(node, context, ordered=False)


def bind_root(node: exp.Expr, context: Context, *, ordered: bool) -> Plan:
    """A query, as a plan whose columns all have types; `ordered` allows ORDER BY without LIMIT."""
    plan = _query(node, context, ordered=ordered)
    types = [TEXT if kind == UNKNOWN else kind for kind in types_of(plan)]
    return output_as(context.source, node, plan, types)


def untyped_query(node: exp.Expr, context: Context) -> Plan:
    """A query whose literals and parameters are still to take the types of the columns they go into."""
    return _query(node, context, ordered=False)


def _query(node: exp.Expr, context: Context, *, ordered: bool) -> Plan:
    """A query; columns that are literals or parameters may not have a type yet."""
    context = _with(node, context)
    match node:
        case exp.Subquery():
            context.source.only(node, ("this", "alias", "joins", *_ENDING), _REFUSALS)
            inner = _query(node.this, context, ordered=ordered and not node.args.get("order"))
            return _ordered_output(node, context, inner, ordered=ordered)
        case exp.Select():
            return _Select(node, context, ordered).bind()
        case exp.Union() | exp.Intersect() | exp.Except():
            return _set_operation(node, context, ordered=ordered)
        case exp.Values():
            context.source.only(node, ("expressions", "alias", *_ENDING), _REFUSALS)
            return _ordered_output(node, context, _values(node, context), ordered=ordered)
        case _:
            raise context.source.error(node, f"{words(node)} is not a query")


def _with(node: exp.Expr, context: Context) -> Context:
    """The context with the queries that WITH names."""
    with_ = node.args.get("with_")
    if with_ is None:
        return context
    source = context.source
    source.only(with_, ("expressions", "recursive"), {})
    queries = _queries(with_, context)
    if with_.args.get("recursive"):
        groups = in_order(queries)
    else:
        groups = (([named], False) for named in queries.values())
    found: dict[str, Plan] = dict(context.ctes)
    for group, is_recursive in groups:
        inside = replace(context, ctes=found)
        plans = (
            bind_recursive(group, inside, bind_query)
            if is_recursive
            else {group[0].name: bind_query(group[0].query, inside)}
        )
        found = {**found, **{named.name: _named(named, plans[named.name], source) for named in group}}
    return replace(context, ctes=found)


def _queries(with_: exp.Expr, context: Context) -> dict[str, Named]:
    """The queries of a WITH by name, as written."""
    source = context.source
    found: dict[str, Named] = {}
    for cte in with_.expressions:
        alias = cte.args["alias"]
        name = folded(alias.this)
        source.only(
            cte,
            ("this", "alias"),
            {"materialized": ("MATERIALIZED", "leave it out"), "key_expressions": ("USING", "")},
        )
        if name in found:
            raise source.error(alias, f"WITH names {name} twice")
        if not isinstance(cte.this, (exp.Query, exp.Values)):
            raise source.error(cte, "WITH holds queries only", hint="write INSERT, UPDATE or DELETE alone")
        columns = tuple(folded(column) for column in alias.args.get("columns") or ())
        found[name] = Named(name, columns, alias, cte.this)
    return found


def _named(named: Named, plan: Plan, source: Source) -> Plan:
    if any(True for _ in outer_columns(plan)):
        raise source.error(
            named.alias, f"{named.name} reads columns of the query around it", hint="write it as a subquery"
        )
    if named.columns and len(named.columns) != len(plan.schema):
        raise source.error(
            named.alias, f"{named.name} has {len(plan.schema)} columns, not {len(named.columns)}"
        )
    if not named.columns or named.columns == tuple(field.name for field in plan.schema):
        return plan
    return _renamed(plan, named.columns)


def _renamed(plan: Plan, names: Sequence[str]) -> Plan:
    columns = tuple(Column(index, f.type, f.name) for index, f in enumerate(plan.schema))
    return Project(plan, columns, tuple(names))


def _values(node: exp.Expr, context: Context) -> Plan:
    source = context.source
    scalars = Scalars(context, Scope(()), "VALUES")
    rows: list[list[exp.Expr]] = []
    for row in node.expressions:
        rows.append(list(row.expressions) if isinstance(row, exp.Tuple) else [unnest(row)])
        if len(rows[-1]) != len(rows[0]):
            raise source.error(
                row, f"the rows of VALUES have {len(rows[0])} columns, this has {len(rows[-1])}"
            )
    columns: list[tuple[Expression, ...]] = []
    for nodes in zip(*rows, strict=True):
        bound = [scalars.bind(cell) for cell in nodes]
        known = any(cell.type != UNKNOWN for cell in bound)
        columns.append(unify(source, nodes, bound, what="VALUES") if known else tuple(bound))
    schema = tuple(
        Field(f"column{index}", column[0].type, any(_may_be_null(cell) for cell in column))
        for index, column in enumerate(columns, start=1)
    )
    return Values(schema, tuple(zip(*columns, strict=True)))


def _may_be_null(cell: Expression) -> bool:
    return not isinstance(cell, Literal) or cell.value is None


def _set_operation(node: exp.Expr, context: Context, *, ordered: bool) -> Plan:
    source = context.source
    source.only(node, ("this", "expression", "distinct", *_ENDING), _REFUSALS)
    left = _query(node.this, context, ordered=False)
    right = _query(node.args["expression"], context, ordered=False)
    word = words(node)
    if len(left.schema) != len(right.schema):
        raise source.error(
            node.args["expression"],
            f"{word}: the left side has {len(left.schema)} columns, the right side {len(right.schema)}",
        )
    types = []
    for one, other in zip(left.schema, right.schema, strict=True):
        sides = (Literal(None, one.type), Literal(None, other.type))
        places = (node.args["expression"],) * 2
        types.append(unify(source, places, sides, what=f"{word}, column {one.name}")[0].type)
    left = output_as(source, node.this, left, types)
    right = output_as(source, node.args["expression"], right, types)
    keep = not node.args.get("distinct")
    plan: Plan
    match node:
        case exp.Intersect():
            plan = Intersect(left, right, keep)
        case exp.Except():
            plan = Except(left, right, keep)
        case _:
            # UNION ALL is associative: a chain of them is one node.
            inputs = (*(left.inputs if keep and isinstance(left, UnionAll) else (left,)), right)
            plan = UnionAll(inputs) if keep else Distinct(UnionAll(inputs))
    return _ordered_output(node, context, plan, ordered=ordered)


def _ordered_output(node: exp.Expr, context: Context, plan: Plan, *, ordered: bool) -> Plan:
    """ORDER BY and LIMIT after a whole query: sorted by columns of its result."""
    if not any(node.args.get(key) for key in ("order", "limit", "offset")):
        return plan
    types = [TEXT if kind == UNKNOWN else kind for kind in types_of(plan)]
    plan = output_as(context.source, node, plan, types)
    keys: list[SortKey] = []
    for part in node.args["order"].expressions if node.args.get("order") else ():
        inner = unnest(part.this)
        position = _position(context, inner, len(plan.schema))
        if position is None:
            name = (
                folded(inner.this) if isinstance(inner, exp.Column) and not inner.args.get("table") else None
            )
            places = [index for index, f in enumerate(plan.schema) if f.name == name]
            if len(places) != 1:
                raise context.source.error(
                    part,
                    "here ORDER BY takes names or positions of result columns",
                    hint="put it in a subquery",
                )
            position = places[0]
        chosen = plan.schema[position]
        keys.append(bind_sort_key(context.source, part, Column(position, chosen.type, chosen.name)))
    return top(node, context, plan, keys, ordered=ordered)


def _position(context: Context, node: exp.Expr, width: int) -> int | None:
    """The column that a bare number in ORDER BY or GROUP BY stands for."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    position = int(node.this)
    if not 1 <= position <= width:
        raise context.source.error(
            node, f"position {position} is not in the select list", hint=f"there are {width}"
        )
    return position - 1


@dataclass(slots=True)
class _Select:
    """One SELECT while it is bound."""

    node: exp.Expr
    context: Context
    ordered: bool
    collector: Collector = field(default_factory=Collector)

    def bind(self) -> Plan:
        source, node = self.context.source, self.node
        source.only(
            node,
            ("expressions", "distinct", "from_", "joins", "where", "group", "having", *_ENDING),
            _REFUSALS,
        )
        distinct = node.args.get("distinct")
        if distinct is not None:
            hint = "write row_number() OVER (PARTITION BY … ORDER BY …) = 1 around a subquery"
            source.only(distinct, (), {"on": ("DISTINCT ON", hint), "expressions": ("DISTINCT", "")})
        origin = bind_from(self.context, node)
        plan = origin.plan
        if node.args.get("where") is not None:
            plan = Filter(
                plan, Scalars(self.context, origin.scope, "WHERE").truth(node.args["where"].this, "WHERE")
            )
        plan, scope = spread(self.context, node, origin, plan)
        origin = From(plan, scope)
        items = self._items(origin)
        keys = self._group_keys(origin, items)
        having = self._having(origin)
        order, hidden = self._order(origin, items, distinct=distinct is not None)
        outputs = [expression for expression, _ in items] + hidden
        plan, outputs = self._grouped(plan, outputs, keys, having)
        plan, outputs = self._windowed(plan, outputs)
        return self._shaped(plan, outputs, [name for _, name in items], order, distinct=distinct is not None)

    def _scalars(self, origin: From, clause: str, *, windows: bool) -> Scalars:
        return Scalars(self.context, origin.scope, clause, self.collector, windows)

    def _items(self, origin: From) -> list[tuple[Expression, str]]:
        """The select list, `*` written out."""
        source = self.context.source
        scalars = self._scalars(origin, "the select list", windows=True)
        items: list[tuple[Expression, str]] = []
        for item in self.node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                items.extend(self._star(origin, item))
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            bound = scalars.bind(inner)
            items.append((bound, output_name(item, bound)))
        if not items:
            raise source.error(self.node, "a SELECT lists at least one column", word="SELECT")
        return items

    def _star(self, origin: From, item: exp.Expr) -> list[tuple[Expression, str]]:
        source = self.context.source
        if isinstance(item, exp.Column):
            source.only(item.this, (), {})
            table = folded(item.args["table"])
            found = [column for column in origin.scope.columns if column.table == table]
        else:
            source.only(item, (), {"except_": ("EXCEPT", "list the columns"), "replace": ("REPLACE", "")})
            found = [column for column in origin.scope.columns if not column.hidden]
        if not found:
            raise source.error(
                item, "* stands for the columns of FROM, and here are none", hint="check the table's name"
            )
        return [(column.expression, column.name) for column in found]

    def _group_keys(self, origin: From, items: list[tuple[Expression, str]]) -> list[Expression] | None:
        """The keys, or None when nothing is grouped."""
        source, group = self.context.source, self.node.args.get("group")
        if group is None:
            return [] if self.collector.aggregates or self.node.args.get("having") is not None else None
        source.only(group, ("expressions",), {"all": ("GROUP BY ALL", "list the keys")})
        scalars = Scalars(self.context, origin.scope, "GROUP BY")
        keys: list[Expression] = []
        for part in group.expressions:
            if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                word = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE"}.get(type(part), "GROUPING SETS")
                hint = "write one SELECT per grouping, joined by UNION ALL"
                raise source.error(part, f"{word} is not supported", hint=hint, word=word.split()[0])
            inner = unnest(part)
            position = _position(self.context, inner, len(items))
            if position is None and isinstance(inner, exp.Column) and inner.args.get("table") is None:
                position = self._alias(origin, inner, items)
            key = scalars.bind(inner) if position is None else items[position][0]
            if any(isinstance(node, Column) and node.index < 0 for node in walk(key)):
                raise source.error(part, "aggregates are not allowed in GROUP BY")
            keys.append(settled(source, part, key))
        for index, (expression, name) in enumerate(items):
            items[index] = (settled(source, group, expression), name)
        return list(dict.fromkeys(keys))

    def _alias(self, origin: From, node: exp.Expr, items: list[tuple[Expression, str]]) -> int | None:
        """The select item that a name in GROUP BY means, where no input column has that name."""
        name = folded(node.this)
        if origin.scope.find(name, None):
            return None
        places = [index for index, (_, alias) in enumerate(items) if alias == name]
        return places[0] if len(places) == 1 else None

    def _having(self, origin: From) -> Expression | None:
        having = self.node.args.get("having")
        if having is None:
            return None
        return self._scalars(origin, "HAVING", windows=False).truth(having.this, "HAVING")

    def _order(
        self, origin: From, items: list[tuple[Expression, str]], *, distinct: bool
    ) -> tuple[list[SortKey], list[Expression]]:
        """Sort keys as columns of the select list, followed by expressions that it does not have."""
        source = self.context.source
        scalars = self._scalars(origin, "ORDER BY", windows=True)
        hidden: list[Expression] = []
        keys: list[SortKey] = []
        for part in self.node.args["order"].expressions if self.node.args.get("order") else ():
            inner = unnest(part.this)
            position = _position(self.context, inner, len(items))
            if position is None and isinstance(inner, exp.Column) and inner.args.get("table") is None:
                places = [index for index, (_, name) in enumerate(items) if name == folded(inner.this)]
                if len({items[index][0] for index in places}) > 1:
                    raise source.error(part, f"{folded(inner.this)} names several columns of the select list")
                position = places[0] if places else None
            if position is None:
                bound = scalars.typed(inner)
                known = [expression for expression, _ in items] + hidden
                if bound not in known:
                    hidden.append(bound)
                    known.append(bound)
                position = known.index(bound)
            if distinct and position >= len(items):
                raise source.error(part, "with DISTINCT, ORDER BY takes columns of the select list only")
            kind = (items[position][0] if position < len(items) else hidden[position - len(items)]).type
            name = items[position][1] if position < len(items) else ""
            keys.append(
                bind_sort_key(source, part, Column(position, TEXT if kind == UNKNOWN else kind, name))
            )
        return keys, hidden

    def _grouped(
        self,
        plan: Plan,
        outputs: list[Expression],
        keys: list[Expression] | None,
        having: Expression | None,
    ) -> tuple[Plan, list[Expression]]:
        if self.collector.final is not None:
            self._check_final(self.collector.final, keys)
        if keys is None and not self.collector.aggregates:
            return plan, outputs
        keys = keys or []
        calls = tuple(self.collector.aggregates)
        names = [key.name if isinstance(key, Column) else f"key{index}" for index, key in enumerate(keys)]
        names += [call.function for call in calls]
        groups = Aggregate(plan, tuple(keys), calls, tuple(names))
        grouped: Plan = groups
        over_groups = regroup(keys)
        if self.collector.final is not None:
            grouped, final = Finality(self.context, self.collector.final).final(
                groups, [*outputs, *([] if having is None else [having])]
            )
            regrouped = over_groups

            def over_groups(expression: Expression) -> Expression:
                return substitute(regrouped(expression), lambda column: final if column == FINAL else column)

        try:
            if having is not None:
                grouped = Filter(grouped, over_groups(having))
            self.collector.windows = [call.map_expressions(over_groups) for call in self.collector.windows]
            return grouped, [over_groups(expression) for expression in outputs]
        except UngroupedError as error:
            raise self._ungrouped(error.column) from None

    def _check_final(self, node: exp.Expr, keys: list[Expression] | None) -> None:
        """Beside `window_final()` nothing may look beyond a group, or a final row could change."""
        source, args = self.context.source, self.node.args
        if not keys or self.context.scopes:
            hint = "group by tumble(at, …) or hop(at, …), in a SELECT of its own"
            raise source.error(node, "window_final() needs one window in GROUP BY", hint=hint)
        if self.collector.windows or any(args.get(key) for key in ("distinct", "order", "limit", "offset")):
            hint = "keep the windows in a view, and write this over it"
            raise source.error(
                node, "window_final() does not go with OVER, DISTINCT, ORDER BY and LIMIT", hint=hint
            )

    def _ungrouped(self, column: Column) -> Exception:
        clauses = [*self.node.expressions, *(self.node.args.get(key) for key in ("having", "order"))]
        places = [
            found
            for clause in clauses
            if clause is not None
            for found in clause.find_all(exp.Column)
            if isinstance(found.this, exp.Identifier) and folded(found.this) == column.name
        ]
        return self.context.source.error(
            places[0] if places else self.node,
            f"column {column.name} is neither in GROUP BY nor inside an aggregate",
            hint=f"add {column.name} to GROUP BY, or write min({column.name})",
        )

    def _windowed(self, plan: Plan, outputs: list[Expression]) -> tuple[Plan, list[Expression]]:
        calls = self.collector.windows
        if not calls:
            return plan, outputs
        tied = tuple(with_ties(call, plan.schema) for call in calls)
        over_windows = window_columns(len(plan.schema))
        window = Window(plan, tied, tuple(call.function for call in calls))
        return window, [over_windows(expression) for expression in outputs]

    def _shaped(
        self, plan: Plan, outputs: list[Expression], names: list[str], order: list[SortKey], *, distinct: bool
    ) -> Plan:
        """The select list, DISTINCT, ORDER BY and LIMIT."""
        source, node = self.context.source, self.node
        ending = (
            distinct
            or bool(order)
            or node.args.get("limit") is not None
            or node.args.get("offset") is not None
        )
        if ending:
            outputs = [settled(source, node, expression) for expression in outputs]
        hidden = len(outputs) - len(names)
        plan = Project(plan, tuple(outputs), (*names, *(f"order{index}" for index in range(hidden))))
        if distinct:
            plan = Distinct(plan)
        plan = top(node, self.context, plan, order, ordered=self.ordered)
        if hidden:
            shown = plan.schema[: len(names)]
            columns = tuple(Column(index, f.type, f.name) for index, f in enumerate(shown))
            plan = Project(plan, columns, tuple(names))
        return plan
