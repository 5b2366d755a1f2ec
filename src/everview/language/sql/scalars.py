"""Expressions: from syntax trees to typed nodes, by the rules of three-valued logic.

Each kind of tree is bound by one small function; a kind that is not in the table is refused by name.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.language.expressions import (
    And,
    Case,
    Exists,
    Expression,
    InList,
    InSubquery,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    ScalarSubquery,
)
from everview.language.functions import NOT_DETERMINISTIC
from everview.language.sql.coerce import call, cast, coerce, natural_decimal, output_as, settled, unify
from everview.language.sql.context import Context
from everview.language.sql.grouping import Collector
from everview.language.sql.names import Scope, resolve_column
from everview.language.sql.source import folded, words
from everview.language.sql.typenames import bind_type
from everview.language.types import BIGINT, BIGINT_MAX, BIGINT_MIN, BOOLEAN, DOUBLE, TEXT, UNKNOWN
from everview.language.values import canonical_double

__all__ = ["Scalars", "unnest"]

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "power",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Any: ("= ANY", "write x IN (SELECT …)"),
    exp.All: ("ALL", "write NOT EXISTS (SELECT …)"),
    exp.Collate: ("COLLATE", "text always compares by its UTF-8 bytes; leave it out"),
    exp.RegexpLike: ("~", "write LIKE"),
    exp.RegexpILike: ("~*", "write ILIKE"),
    exp.SimilarTo: ("SIMILAR TO", "write LIKE"),
    exp.Bracket: ("[ ]", "arrays are not supported; put the elements into a relation"),
    exp.Array: ("ARRAY", "arrays are not supported; put the elements into a relation"),
    exp.Tuple: ("a row of values", "compare column by column, joined by AND"),
    exp.Interval: ("INTERVAL", "write it only after + or − beside a TIMESTAMP"),
    exp.ByteString: ("E'…'", "write a plain '…' text"),
    exp.HexString: ("x'…'", r"write '\x00ff' cast to BLOB"),
    exp.BitString: ("b'…'", "write a number"),
    exp.National: ("N'…'", "write a plain '…' text"),
    exp.Concat: ("'…' '…'", "write one text, or put || between them"),
    exp.Parameter: ("$ or @", "write ? or :name"),
    exp.TryCast: ("TRY_CAST", "write CAST; inside a view a failing cast is NULL"),
    exp.Star: ("*", "name the columns"),
    exp.AtTimeZone: ("AT TIME ZONE", "timestamps are UTC; add or subtract an INTERVAL"),
    exp.If: ("IF", "write CASE WHEN … THEN … ELSE … END"),
    exp.BitwiseAnd: ("&", "there are no operators on bits"),
    exp.BitwiseOr: ("|", "there are no operators on bits"),
    exp.BitwiseXor: ("#", "there are no operators on bits"),
    exp.BitwiseNot: ("~", "there are no operators on bits"),
    exp.Distinct: ("DISTINCT", "only aggregates take DISTINCT"),
    exp.Order: ("ORDER BY", "aggregates take no ORDER BY"),
    exp.WithinGroup: ("WITHIN GROUP", "use min, max, or row_number() in a subquery"),
    exp.IgnoreNulls: ("IGNORE NULLS", "filter the rows in a subquery"),
    exp.JSONExtract: ("->", "store the parts in columns of their own"),
    exp.RawString: ("$$…$$", "write a plain '…' text"),
    exp.UnicodeString: ("U&'…'", "write a plain '…' text"),
    exp.Dot: ("a schema's name", "a function's name stands alone"),
    exp.Kwarg: ("name => value", "write the arguments in order"),
}


def unnest(node: exp.Expr) -> exp.Expr:
    """The tree inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


@dataclass(frozen=True, slots=True)
class Scalars:
    """Binds expressions of one clause of one query.

    `collector` takes aggregates and window calls; where it is None, or `windows` is false, they are
    refused, and `clause` says where that was.
    """

    context: Context
    scope: Scope
    clause: str
    collector: Collector | None = None
    windows: bool = False

    def bind(self, node: exp.Expr) -> Expression:
        """The expression; its type may still be UNKNOWN (see `coerce`)."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            return self._operator(node, operator)
        word, hint = _REFUSED.get(type(node), (words(node), ""))
        keyword = word.split()[-1 if word.startswith("=") else 0]
        raise self.context.source.error(
            node,
            f"{word} is not supported",
            hint=hint or None,
            word=keyword if keyword == keyword.upper() and type(node) in _REFUSED else None,
        )

    def typed(self, node: exp.Expr) -> Expression:
        """The expression with a type of its own."""
        return settled(self.context.source, node, self.bind(node))

    def truth(self, node: exp.Expr, what: str) -> Expression:
        """A condition."""
        return coerce(self.context.source, node, self.bind(node), BOOLEAN, what=what)

    def whole(self, node: exp.Expr, what: str) -> Expression:
        """A BIGINT."""
        return coerce(self.context.source, node, self.bind(node), BIGINT, what=what)

    def inner(self) -> Context:
        """The context of a subquery here."""
        return self.context.inside(self.scope)

    def without_aggregates(self, clause: str) -> Scalars:
        """The same place, where no aggregate may stand."""
        return replace(self, clause=clause, collector=None, windows=False)

    def _operator(self, node: exp.Expr, operator: str) -> Expression:
        from everview.language.sql.calls import bind_moved  # noqa: PLC0415  (calls bind their arguments here)

        left, right = unnest(node.this), unnest(node.expression)
        if isinstance(left, exp.Interval) or isinstance(right, exp.Interval):
            return bind_moved(self, node, operator)
        operands = [self.bind(left), self.bind(right)]
        return call(self.context.source, node, operator, operands, nodes=(left, right))


def _literal(self: Scalars, node: exp.Expr) -> Expression:
    if node.args.get("is_string"):
        return Literal(str(node.this), UNKNOWN)
    return _number(self, node, str(node.this))


def _number(self: Scalars, node: exp.Expr, text: str) -> Expression:
    """A whole number is a BIGINT if it fits, any other a DECIMAL; one of over 38 digits is a DOUBLE."""
    if text.lstrip("-").isdigit() and BIGINT_MIN <= int(text) <= BIGINT_MAX:
        return Literal(int(text), BIGINT)
    try:
        found = natural_decimal(decimal.Decimal(text))
    except decimal.InvalidOperation:
        raise self.context.source.error(node, f"{text} is no number") from None
    if found is None:
        if math.isinf(float(text)):
            raise self.context.source.error(node, f"{text} is beyond every type of number")
        return Literal(canonical_double(float(text)), DOUBLE)
    return found


def _negative(self: Scalars, node: exp.Expr) -> Expression:
    inside = unnest(node.this)
    if isinstance(inside, exp.Literal) and not inside.is_string:
        return _number(self, inside, f"-{inside.this}")
    return call(self.context.source, node, "neg", [self.bind(inside)])


def _column(self: Scalars, node: exp.Expr) -> Expression:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise self.context.source.error(node, "* stands alone in a select list")
    identifier = node.this
    name = folded(identifier)
    scopes = (self.scope, *self.context.scopes)
    if (
        name in NOT_DETERMINISTIC
        and not identifier.args.get("quoted")
        and node.args.get("table") is None
        and not any(scope.find(name, None) for scope in scopes)
    ):
        raise self.context.source.error(
            node,
            f"{name} is not deterministic, so sites would disagree",
            hint="store the value in a column when the row is written, or pass it as a parameter",
        )
    return resolve_column(self.context.source, node, scopes)


def _parameter(self: Scalars, node: exp.Expr) -> Expression:
    parameters = self.context.parameters
    if not parameters.allowed:
        raise self.context.source.error(
            node, "a program has no parameters", hint="they belong to query() and execute()", word="?"
        )
    if node.this:
        parameters.named.add(str(node.this))
        return Parameter(str(node.this), UNKNOWN)
    parameters.positional.append(node)
    return Parameter(str(len(parameters.positional)), UNKNOWN)


def _junction(self: Scalars, node: exp.Expr) -> Expression:
    kind = type(node)
    parts: list[exp.Expr] = []
    waiting = [node]  # not by recursion: a chain may be thousands of conditions long
    while waiting:
        part = unnest(waiting.pop())
        if type(part) is kind:
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    word = "AND" if kind is exp.And else "OR"
    bound = tuple(self.truth(part, word) for part in parts)
    return And(bound) if kind is exp.And else Or(bound)


def _negated(node: exp.Expr, expression: Expression) -> Expression:
    return Not(expression) if node.args.get("negate") else expression


def _is(self: Scalars, node: exp.Expr) -> Expression:
    right = node.expression
    if isinstance(right, exp.Null):
        return _negated(node, IsNull(self.typed(node.this)))
    if isinstance(right, exp.Boolean):
        operand = self.truth(node.this, "IS TRUE")
        is_it = Not(IsDistinct(operand, Literal(bool(right.this), BOOLEAN)))
        return is_it.operand if node.args.get("negate") else is_it
    raise self.context.source.error(node, "IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")


def _not(self: Scalars, node: exp.Expr) -> Expression:
    inner = self.truth(node.this, "NOT")
    # NOT (x IS DISTINCT FROM y), which is how IS TRUE is written, needs no second NOT around it.
    return inner.operand if isinstance(inner, Not) and isinstance(inner.operand, IsDistinct) else Not(inner)


def _is_distinct(self: Scalars, node: exp.Expr) -> Expression:
    nodes = (node.this, node.expression)
    left, right = unify(
        self.context.source, nodes, [self.bind(part) for part in nodes], what="IS DISTINCT FROM"
    )
    distinct = IsDistinct(left, right)
    return Not(distinct) if isinstance(node, exp.NullSafeEQ) else distinct


def _in(self: Scalars, node: exp.Expr) -> Expression:
    source = self.context.source
    source.only(node, ("this", "expressions", "query"), {"unnest": ("UNNEST", ""), "field": ("IN", "")})
    operand = self.bind(node.this)
    query = node.args.get("query")
    if query is not None:
        return _in_subquery(self, node, operand, query)
    nodes = (node.this, *node.expressions)
    if not node.expressions:
        raise source.error(node, "IN takes a list of values or a subquery", word="IN")
    first, *items = unify(source, nodes, [operand, *(self.bind(i) for i in node.expressions)], what="IN")
    return InList(first, tuple(items))


def _in_subquery(self: Scalars, node: exp.Expr, operand: Expression, query: exp.Expr) -> Expression:
    """X IN (SELECT …), both sides as their common type."""
    source = self.context.source
    plan = self.context.bind_query(query, self.inner())
    if len(plan.schema) != 1:
        raise source.error(query, f"the subquery of IN has one column, not {len(plan.schema)}")
    stand_in = Literal(None, plan.schema[0].type)
    left, right = unify(source, (node.this, query), (operand, stand_in), what="IN")
    return InSubquery(left, output_as(source, query, plan, [right.type]))


def _between(self: Scalars, node: exp.Expr) -> Expression:
    source = self.context.source
    source.only(node, ("this", "low", "high"), {"symmetric": ("SYMMETRIC", "write the lesser bound first")})
    operand = self.bind(node.this)
    bounds = (node.args["low"], node.args["high"])
    low, high = (
        call(source, node, operator, [operand, self.bind(bound)], nodes=(node.this, bound))
        for operator, bound in zip((">=", "<="), bounds, strict=True)
    )
    return And((low, high))


def _case(self: Scalars, node: exp.Expr) -> Expression:
    source = self.context.source
    subject = self.bind(node.this) if node.this is not None else None
    branches: list[exp.Expr] = node.args["ifs"]
    conditions: list[Expression] = []
    for branch in branches:
        if subject is None:
            conditions.append(self.truth(branch.this, "WHEN"))
        else:
            conditions.append(call(source, branch, "=", [subject, self.bind(branch.this)]))
    default = node.args.get("default")
    nodes = [branch.args["true"] for branch in branches] + [default if default is not None else node]
    results: list[Expression] = [self.bind(branch.args["true"]) for branch in branches]
    results.append(self.bind(default) if default is not None else Literal(None, UNKNOWN))
    *then, otherwise = unify(source, nodes, results, what="CASE")
    return Case(tuple(zip(conditions, then, strict=True)), otherwise)


def _cast(self: Scalars, node: exp.Expr) -> Expression:
    source = self.context.source
    casts: list[exp.Expr] = []
    operand = node
    while isinstance(operand, exp.Cast):
        source.only(operand, ("this", "to", "_type"), {"format": ("FORMAT", "")})
        casts.insert(0, operand)
        operand = operand.this
    if isinstance(operand, exp.Literal) and operand.is_string:
        around = _casts_around_typed_literal(self, operand)
        if around is not None:
            # sqlglot takes timestamp '…'::date for timestamp ('…'::date); in SQL the first word is nearer.
            casts.insert(0, casts.pop(len(casts) - 1 - around))
    bound = self.bind(operand)
    for step in casts:
        bound = cast(source, step, bound, bind_type(source, step.args["to"]))
    return bound


def _casts_around_typed_literal(self: Scalars, literal: exp.Expr) -> int | None:
    """How many `CAST (` stand before the type of a literal such as DATE '…'; None if it has no such type."""
    source = self.context.source
    offset = source.offset(literal)
    words = source.words_before(offset or 0)
    word = next(words, "")
    if word not in _TYPE_WORDS:
        return None
    while word in _TYPE_WORDS or word in ("WITH", "WITHOUT", "TIME"):
        word = next(words, "")
    count = 0
    while word == "(" and next(words, "") == "CAST":
        word = next(words, "")
        count += 1
    return count


_TYPE_WORDS = frozenset(
    {
        *("BOOLEAN", "BOOL", "SMALLINT", "INT", "INTEGER", "BIGINT", "INT2", "INT4", "INT8"),
        *(
            "REAL",
            "FLOAT",
            "FLOAT4",
            "FLOAT8",
            "PRECISION",
            "DOUBLE",
            "DECIMAL",
            "NUMERIC",
            "DOUBLE PRECISION",
        ),
        *("TEXT", "VARCHAR", "BYTEA", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "ZONE"),
    }
)


def _like(self: Scalars, node: exp.Expr) -> Expression:
    return _like_with(self, node, "\\", node)


def _escape(self: Scalars, node: exp.Expr) -> Expression:
    escape = node.expression
    if not isinstance(escape, exp.Literal) or not escape.is_string or len(str(escape.this)) > 1:
        raise self.context.source.error(escape, "ESCAPE takes one character in quotes, or none")
    return _like_with(self, node.this, str(escape.this), node)


def _like_with(self: Scalars, node: exp.Expr, escape: str, place: exp.Expr) -> Expression:
    if not isinstance(node, (exp.Like, exp.ILike)) or isinstance(node.expression, (exp.Any, exp.All)):
        raise self.context.source.error(place, "LIKE takes one pattern", hint="join several by OR")
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    arguments = [self.bind(node.this), self.bind(node.expression), Literal(escape, TEXT)]
    return _negated(node, call(self.context.source, node, name, arguments))


def _exists(self: Scalars, node: exp.Expr) -> Expression:
    return Exists(self.context.bind_query(node.this, self.inner()))


def _scalar_subquery(self: Scalars, node: exp.Expr) -> Expression:
    plan = self.context.bind_query(node, self.inner())
    if len(plan.schema) != 1:
        raise self.context.source.error(
            node, f"a subquery used as a value has one column, not {len(plan.schema)}"
        )
    return ScalarSubquery(plan)


def _paren(self: Scalars, node: exp.Expr) -> Expression:
    return self.bind(node.this)


def _call(self: Scalars, node: exp.Expr) -> Expression:
    from everview.language.sql.calls import bind_call  # noqa: PLC0415  (calls bind their arguments here)

    return bind_call(self, node)


_HANDLERS: dict[type[exp.Expr], Callable[[Scalars, exp.Expr], Expression]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda _self, node: Literal(bool(node.this), BOOLEAN),
    exp.Null: lambda _self, _node: Literal(None, UNKNOWN),
    exp.Neg: _negative,
    exp.Column: _column,
    exp.Placeholder: _parameter,
    exp.Paren: _paren,
    exp.And: _junction,
    exp.Or: _junction,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _is_distinct,
    exp.NullSafeNEQ: _is_distinct,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Exists: _exists,
    exp.Subquery: _scalar_subquery,
    exp.Select: _scalar_subquery,
    exp.Anonymous: _call,
    exp.Extract: _call,
    exp.StrPosition: _call,
    exp.Substring: _call,
    exp.Trim: _call,
    exp.Filter: _call,
    exp.Window: _call,
}
