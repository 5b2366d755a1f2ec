"""Calls: functions by name, the ones with a syntax of their own, aggregates, INTERVALs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from everview.language.aggregates import AGGREGATES, APPROXIMATE, RANKINGS, SHIFTS, AggregateCall
from everview.language.expressions import (
    Call,
    Case,
    Column,
    Exists,
    Expression,
    Literal,
    OuterColumn,
)
from everview.language.functions import (
    DATE_FIELDS,
    FUNCTIONS,
    NOT_DETERMINISTIC,
    TRUNCATIONS,
    NoSignatureError,
)
from everview.language.sql.approximate import bind_approximate, refuse_outer
from everview.language.sql.coerce import call, cast, coerce
from everview.language.sql.event_windows import bind_final, bind_hop, bind_tumble
from everview.language.sql.intervals import IntervalError, interval_microseconds
from everview.language.sql.scalars import Scalars, unnest
from everview.language.sql.source import Source, folded, nearest
from everview.language.sql.windows import bind_window
from everview.language.types import BIGINT, TIMESTAMP, UNKNOWN, Kind, decimal_type

__all__ = ["SYNONYMS", "bind_call", "bind_moved", "fixed_length", "output_name"]

SYNONYMS: dict[str, str] = {
    "mod": "%",
    "ceiling": "ceil",
    "pow": "power",
    "char_length": "length",
    "character_length": "length",
    "substring": "substr",
    "trim": "btrim",
    "every": "bool_and",
}
"""Other names of functions, as PostgreSQL has them."""

_ADVICE = {
    "string_agg": "put the parts into a relation",
    "array_agg": "put the parts into a relation",
    "if": "write CASE WHEN … THEN … ELSE … END",
    "iif": "write CASE WHEN … THEN … ELSE … END",
    "ifnull": "write coalesce(a, b)",
    "nvl": "write coalesce(a, b)",
    "isnull": "write a IS NULL",
    "instr": "write strpos(s, part)",
    "len": "write length(s)",
    "log": "store the value when the row is written",
    "trunc": "write CAST(a AS BIGINT), floor(a) or round(a)",
    "to_char": "write CAST(a AS TEXT), or extract the fields",
    "to_date": "write CAST(s AS DATE)",
    "age": "write extract(epoch FROM a) - extract(epoch FROM b)",
    "row": "compare column by column, joined by AND",
    "percentile_cont": "write approx_percentile(a, p)",
    "percentile_disc": "write approx_percentile(a, p)",
    "median": "write approx_percentile(a, 0.5)",
}


def bind_call(self: Scalars, node: exp.Expr) -> Expression:
    """A call of any shape."""
    source = self.context.source
    match node:
        case exp.Extract():
            return _extract(self, node, str(node.this.this).lower(), node.expression)
        case exp.StrPosition():
            source.only(node, ("this", "substr"), {"position": ("IN", "")})
            return call(source, node, "strpos", [self.bind(node.this), self.bind(node.args["substr"])])
        case exp.Substring():
            parts = [node.this, node.args.get("start"), node.args.get("length")]
            source.only(node, ("this", "start", "length"), {})
            # substring(s FOR n), where sqlglot leaves the start out, begins at 1.
            bound = [
                Literal(1, BIGINT) if part is None else self.bind(part)
                for index, part in enumerate(parts)
                if part is not None or (index == 1 and parts[2] is not None)
            ]
            return call(source, node, "substr", bound)
        case exp.Trim():
            source.only(node, ("this", "position", "expression"), {"collation": ("COLLATE", "leave it out")})
            side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                str(node.args.get("position")).upper(), "btrim"
            )
            parts = [node.this, node.args.get("expression")]
            return call(source, node, side, [self.bind(part) for part in parts if part is not None])
        case exp.Filter():
            inside = unnest(node.this)
            name = _name(inside)
            if name not in AGGREGATES and name not in APPROXIMATE:
                raise source.error(node, "FILTER follows an aggregate", word="FILTER")
            return _aggregate(self, inside, name, node.expression.this)
        case exp.Window():
            if self.collector is None or not self.windows:
                raise source.error(
                    node,
                    f"window functions are not allowed in {self.clause}",
                    hint="compute it in a subquery in FROM",
                )
            return bind_window(self, node, _name(unnest(node.this)), _arguments(unnest(node.this)))
        case _:
            return _named(self, node, _name(node))


def _name(node: exp.Expr) -> str:
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    return SYNONYMS.get(name, name)


def _arguments(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions


def _named(self: Scalars, node: exp.Expr, name: str) -> Expression:
    source = self.context.source
    arguments = _arguments(node)
    if name in AGGREGATES or name in APPROXIMATE:
        return _aggregate(self, node, name, None)
    if name in RANKINGS or name in SHIFTS:
        raise source.error(node, f"{name} needs OVER (…)", hint=f"write {name}(…) OVER (ORDER BY …)")
    if name in NOT_DETERMINISTIC:
        raise source.error(
            node,
            f"{name}() is not deterministic, so sites would disagree",
            hint="store the value in a column when the row is written, or pass it as a parameter",
        )
    if name == "exists" and len(arguments) == 1 and isinstance(arguments[0], exp.Query):
        # What sqlglot makes of EXISTS ((SELECT …) UNION …).
        return Exists(self.context.bind_query(arguments[0], self.inner()))
    if name == "date_part":
        return _extract(self, node, _word(self, node, arguments, name), arguments[1])
    if name in ("tumble", "hop", "window_final"):
        return _window(self, node, name, arguments)
    if name == "date_trunc":
        return _date_trunc(self, node, arguments)
    if name not in FUNCTIONS or (not re.fullmatch("[a-z_]+", name) and name != "%") or name in _INTERNAL:
        written = str(node.this).lower()
        known = {
            *FUNCTIONS,
            *SYNONYMS,
            *AGGREGATES,
            *APPROXIMATE,
            *RANKINGS,
            *SHIFTS,
            "extract",
            "date_part",
            "date_trunc",
            "hop",
            "window_final",
        }
        known -= _INTERNAL
        raise source.error(
            node, f"there is no function {written}", hint=_ADVICE.get(written) or nearest(written, known)
        )
    if name == "round" and len(arguments) == 2:
        return _round(self, node, arguments)
    return call(source, node, name, [self.bind(argument) for argument in arguments])


_INTERNAL = {
    "neg",
    "like",
    "ilike",
    "add_microseconds",
    *(f"extract_{field}" for field in DATE_FIELDS),
    *(f"date_trunc_{unit}" for unit in TRUNCATIONS),
}
"""Functions that are written in another way than by their name."""


def _aggregate(self: Scalars, node: exp.Expr, name: str, condition: exp.Expr | None) -> Expression:
    source = self.context.source
    if self.collector is None:
        raise source.error(
            node,
            f"aggregates are not allowed in {self.clause}",
            hint="write HAVING, or aggregate in a subquery in FROM",
        )
    inside = self.without_aggregates("an aggregate")
    arguments = list(_arguments(node))
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        source.only(arguments[0], ("expressions",), {})
        arguments = list(arguments[0].expressions)
    if name in APPROXIMATE:
        return bind_approximate(self, node, name, arguments, condition, distinct=distinct)
    if len(arguments) != 1:
        hint = "write count(*)" if name == "count" and not arguments else None
        raise source.error(node, f"{name} takes one argument, not {len(arguments)}", hint=hint)
    star = isinstance(arguments[0], exp.Star)
    if star and (name != "count" or distinct):
        raise source.error(node, f"{name} does not take *", hint="name the column")
    argument = None if star else inside.typed(arguments[0])
    filter_ = None if condition is None else inside.truth(condition, "FILTER")
    refuse_outer(self, node, [part for part in (argument, filter_) if part is not None])
    try:
        return self.collector.aggregate(AggregateCall(name, argument, distinct, filter_))
    except NoSignatureError as error:
        raise source.error(node, str(error)) from None


def _window(self: Scalars, node: exp.Expr, name: str, arguments: Sequence[exp.Expr]) -> Expression:
    if name == "window_final":
        return bind_final(self, node, arguments)
    source, moment = self.context.source, None
    if arguments:
        moment = coerce(source, arguments[0], self.bind(arguments[0]), TIMESTAMP, what=name)
    lengths = [fixed_length(source, p) if isinstance(p, exp.Interval) else None for p in arguments[1:]]
    return (bind_tumble if name == "tumble" else bind_hop)(self, node, moment, lengths)


def _word(self: Scalars, node: exp.Expr, arguments: Sequence[exp.Expr], name: str) -> str:
    first = unnest(arguments[0]) if arguments else None
    if len(arguments) != 2 or not isinstance(first, exp.Literal) or not first.is_string:
        raise self.context.source.error(node, f"{name} takes a field in quotes, and a DATE or TIMESTAMP")
    return str(first.this).lower()


def _extract(self: Scalars, node: exp.Expr, field: str, operand: exp.Expr) -> Expression:
    source = self.context.source
    field = field.rstrip("s") if field.rstrip("s") in DATE_FIELDS else field
    if field not in DATE_FIELDS:
        raise source.error(node, f"extract knows no {field}", hint=f"it knows {', '.join(DATE_FIELDS)}")
    value = self.bind(operand)
    if value.type == UNKNOWN:
        value = cast(source, operand, value, TIMESTAMP)
    return call(source, node, f"extract_{field}", [value])


def _date_trunc(self: Scalars, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Expression:
    source = self.context.source
    unit = _word(self, node, arguments, "date_trunc")
    if unit not in TRUNCATIONS:
        raise source.error(node, f"date_trunc knows no {unit}", hint=f"it knows {', '.join(TRUNCATIONS)}")
    operand = coerce(source, arguments[1], self.bind(arguments[1]), TIMESTAMP, what="date_trunc")
    return call(source, node, f"date_trunc_{unit}", [operand])


def _round(self: Scalars, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Expression:
    """round(a, n): n digits after the point, so n must be known when the program is read."""
    source = self.context.source
    digits = self.bind(arguments[1])
    if not isinstance(digits, Literal) or digits.type != BIGINT:
        raise source.error(arguments[1], "the second argument of round is written as a whole number")
    bound = call(source, node, "round", [self.bind(arguments[0]), digits])
    whole, scale = bound.arguments[0].type.digits
    kept = max(0, min(int(digits.value), scale))
    return Call("round", bound.arguments, decimal_type(whole + 1 + kept, kept))


def fixed_length(source: Source, node: exp.Interval) -> int:
    """A fixed time in microseconds: units whose length never changes."""
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    unit = node.args.get("unit")
    if unit is not None:
        text += f" {unit.name}"
    try:
        return interval_microseconds(text)
    except IntervalError as error:
        raise source.error(node, str(error), hint=error.hint) from None


def bind_moved(self: Scalars, node: exp.Expr, operator: str) -> Expression:
    """TIMESTAMP ± INTERVAL: a call of add_microseconds. A DATE becomes a TIMESTAMP, as in PostgreSQL."""
    source = self.context.source
    left, right = unnest(node.this), unnest(node.expression)
    if isinstance(left, exp.Interval) and operator == "+":
        left, right = right, left
    if operator not in ("+", "-") or not isinstance(right, exp.Interval) or isinstance(left, exp.Interval):
        raise source.error(node, "INTERVAL is only added to or subtracted from a TIMESTAMP")
    moment = coerce(source, left, self.bind(left), TIMESTAMP, what="± INTERVAL")
    distance = fixed_length(source, right) * (1 if operator == "+" else -1)
    return call(source, node, "add_microseconds", [moment, Literal(distance, BIGINT)])


def output_name(node: exp.Expr, bound: Expression) -> str:
    """The name of a select item without AS, as PostgreSQL gives it."""
    match node:
        case exp.Alias():
            return folded(node.args["alias"])
        case exp.Column():
            return bound.name if isinstance(bound, (Column, OuterColumn)) else str(node.name).lower()
        case exp.Paren():
            return output_name(node.this, bound)
        case exp.Filter() | exp.Window():
            return output_name(node.this, bound)
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.Extract() | exp.Substring():
            return type(node).__name__.lower()
        case exp.StrPosition():
            return "position"
        case exp.Trim():
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                str(node.args.get("position")).upper(), "btrim"
            )
        case exp.Cast() if isinstance(node.this, (exp.Column, exp.Anonymous, exp.Paren, exp.Cast)):
            return output_name(node.this, bound)
        case exp.Case() if isinstance(bound, Case):
            return "case"
        case exp.Exists():
            return "exists"
        case exp.Boolean():
            return "bool"
        case exp.Cast():
            return {Kind.BIGINT: "int8", Kind.DOUBLE: "float8", Kind.DECIMAL: "numeric"}.get(
                bound.type.kind, bound.type.kind.name.lower()
            )
        case _:
            return "?column?"
