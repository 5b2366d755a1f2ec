"""LIMIT, OFFSET and FETCH: how many rows of an ordered query stay."""

from __future__ import annotations

from sqlglot import exp

from everview.language.expressions import Literal, Parameter
from everview.language.plan import Plan, SortKey, TopK
from everview.language.sql.context import Context
from everview.language.sql.names import Scope
from everview.language.sql.scalars import Scalars, unnest
from everview.language.sql.windows import ties_after

__all__ = ["top"]


def top(node: exp.Expr, context: Context, plan: Plan, keys: list[SortKey], *, ordered: bool) -> Plan:
    """The plan under a query's ORDER BY, LIMIT and OFFSET; `ordered` where order alone has a meaning."""
    limit, offset = _limit(node, context), _offset(node, context)
    if not keys and limit is None and offset is None:
        return plan
    if limit is None and offset is None and not ordered:
        raise context.source.error(
            node.args["order"],
            "ORDER BY without LIMIT has no effect on a view or a subquery",
            hint="leave it out, or add LIMIT",
            word="ORDER",
        )
    return TopK(plan, tuple(keys), ties_after(keys, plan.schema), limit, offset)


def _limit(node: exp.Expr, context: Context) -> Literal | Parameter | None:
    limit = node.args.get("limit")
    if limit is None:
        return None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        for key, word in (("with_ties", "WITH TIES"), ("percent", "PERCENT")):
            if options is not None and options.args.get(key):
                hint = "write rank() OVER (ORDER BY …) in a subquery, and filter by it"
                raise context.source.error(limit, f"FETCH … {word} is not supported", hint=hint)
        return _count(context, limit.args.get("count") or exp.Literal.number(1), "FETCH")
    context.source.only(
        limit, ("expression",), {"expressions": ("BY", ""), "offset": ("LIMIT", "write OFFSET")}
    )
    if isinstance(limit.expression, (exp.Null, exp.Var)):
        return None  # LIMIT ALL, LIMIT NULL
    return _count(context, limit.expression, "LIMIT")


def _offset(node: exp.Expr, context: Context) -> Literal | Parameter | None:
    offset = node.args.get("offset")
    if offset is None:
        return None
    context.source.only(offset, ("expression",), {})
    return _count(context, offset.expression, "OFFSET")


def _count(context: Context, node: exp.Expr, what: str) -> Literal | Parameter:
    bound = Scalars(context, Scope(()), what).whole(unnest(node), what)
    if isinstance(bound, Parameter):
        return bound
    if not isinstance(bound, Literal) or bound.value is None or bound.value < 0:
        raise context.source.error(node, f"{what} takes a whole number or a parameter")
    return bound
