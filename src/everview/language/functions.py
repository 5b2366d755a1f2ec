"""Every scalar function and operator, once: its signatures, its result, its meaning.

A function is deterministic: the same arguments give the same result on every engine, at every time.
What is not (`now()`, `random()`) is refused by name. Engines look an implementation up by name and by
the kinds of the arguments; a test of each engine walks this table, so that none can be forgotten.

A call that fails (`fails`) yields NULL inside a view and raises DataError in a query; the call itself
does, not the whole expression, so `coalesce(1 / 0, 5)` is 5 in a view. A `strict` function yields NULL
when any argument is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.language.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
    common_type,
    decimal_type,
)

__all__ = [
    "BARE_DECIMAL",
    "COMPARISONS",
    "DATE_FIELDS",
    "FUNCTIONS",
    "NOT_DETERMINISTIC",
    "TRUNCATIONS",
    "Function",
    "NoSignatureError",
    "Signature",
    "quotient_scale",
    "resolve",
]

BARE_DECIMAL = Type(Kind.DECIMAL, DECIMAL_DIGITS, 10)
"""What DECIMAL and NUMERIC mean without precision and scale."""

Rule = Callable[[tuple[Type, ...]], Type]


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function: the kinds of its arguments, and the type that comes out."""

    parameters: tuple[Kind, ...]
    result: Type | Rule

    def returns(self, arguments: tuple[Type, ...]) -> Type:
        """The type of the result for arguments of these types."""
        return self.result if isinstance(self.result, Type) else self.result(arguments)


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator.

    Without `signatures`, all arguments become their common type and `unified` gives the result;
    `arity` then bounds their number (None: any).
    """

    name: str
    sql: str
    meaning: str
    signatures: tuple[Signature, ...] = ()
    unified: Rule | None = None
    arity: tuple[int, int | None] = (1, None)
    fails: bool = False
    strict: bool = True


class NoSignatureError(TypeError):
    """A function cannot be called with arguments of these types."""


def quotient_scale(*scales: int) -> int:
    """Digits after the point of a DECIMAL division or average: six more than the operands have."""
    return min(max(scales) + 6, DECIMAL_DIGITS - 1)


def _scales(types: tuple[Type, ...]) -> list[int]:
    return [kind.digits[1] for kind in types]


def _wholes(types: tuple[Type, ...]) -> list[int]:
    return [kind.digits[0] for kind in types]


def _sum_rule(types: tuple[Type, ...]) -> Type:
    scale = max(_scales(types))
    return decimal_type(max(_wholes(types)) + 1 + scale, scale)


def _product_rule(types: tuple[Type, ...]) -> Type:
    scale = sum(_scales(types))
    if scale > DECIMAL_DIGITS:
        raise NoSignatureError(f"the product would have {scale} digits after the point; 38 are the most")
    return decimal_type(sum(_wholes(types)) + scale, scale)


def _quotient_rule(types: tuple[Type, ...]) -> Type:
    return decimal_type(DECIMAL_DIGITS, quotient_scale(*_scales(types)))


def _remainder_rule(types: tuple[Type, ...]) -> Type:
    scale = max(_scales(types))
    return decimal_type(max(_wholes(types)) + scale, scale)


def _whole_rule(types: tuple[Type, ...]) -> Type:
    return decimal_type(types[0].digits[0] + 1, 0)


def _first(types: tuple[Type, ...]) -> Type:
    return types[0]


def _truth(_types: tuple[Type, ...]) -> Type:
    return BOOLEAN


def _on(*parameters: Type, to: Type | Rule) -> Signature:
    return Signature(tuple(parameter.kind for parameter in parameters), to)


def _numeric(*, decimals: Rule, arguments: int = 2, doubles: bool = True) -> tuple[Signature, ...]:
    exact = (
        Signature((Kind.BIGINT,) * arguments, BIGINT),
        Signature((Kind.DECIMAL,) * arguments, decimals),
    )
    return (*exact, Signature((Kind.DOUBLE,) * arguments, DOUBLE)) if doubles else exact


_DEC = BARE_DECIMAL

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
"""NaN equals NaN and is greater than every other number; text compares by bytes."""

DATE_FIELDS = ("year", "quarter", "month", "day", "dow", "isodow", "doy", "hour", "minute", "second", "epoch")
TRUNCATIONS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


def _extract_signatures(field: str) -> tuple[Signature, ...]:
    if field == "epoch":
        return (_on(TIMESTAMP, to=decimal_type(18, 6)),)
    if field == "second":
        return (_on(TIMESTAMP, to=decimal_type(8, 6)),)
    if field in ("hour", "minute"):
        return (_on(TIMESTAMP, to=BIGINT),)
    return (_on(DATE, to=BIGINT), _on(TIMESTAMP, to=BIGINT))


_FIELD_MEANINGS = {
    "dow": "day of the week, Sunday 0",
    "isodow": "day of the week, Monday 1",
    "doy": "day of the year, from 1",
    "second": "seconds with six digits after the point",
    "epoch": "seconds since 1970-01-01 00:00 UTC, six digits after the point",
}


def _arithmetic() -> tuple[Function, ...]:
    dates = (_on(DATE, BIGINT, to=DATE),)
    return (
        Function(
            "+",
            "a + b",
            "sum; a DATE plus a number of days",
            (*_numeric(decimals=_sum_rule), *dates, _on(BIGINT, DATE, to=DATE)),
            fails=True,
        ),
        Function(
            "-",
            "a - b",
            "difference; a DATE minus days, or the days between two DATEs",
            (*_numeric(decimals=_sum_rule), *dates, _on(DATE, DATE, to=BIGINT)),
            fails=True,
        ),
        Function("*", "a * b", "product", _numeric(decimals=_product_rule), fails=True),
        Function(
            "/",
            "a / b",
            "quotient; of BIGINTs cut towards zero, of DECIMALs rounded half away from zero at six more "
            "digits than the operands have",
            _numeric(decimals=_quotient_rule),
            fails=True,
        ),
        Function(
            "%",
            "a % b",
            "remainder with the sign of a; also mod(a, b)",
            _numeric(decimals=_remainder_rule, doubles=False),
            fails=True,
        ),
        Function("neg", "- a", "negation", _numeric(decimals=_first, arguments=1), fails=True),
        Function("abs", "abs(a)", "absolute value", _numeric(decimals=_first, arguments=1), fails=True),
        Function(
            "sign",
            "sign(a)",
            "-1, 0 or 1; of a BIGINT a DOUBLE, as in PostgreSQL",
            (_on(_DEC, to=decimal_type(1, 0)), _on(DOUBLE, to=DOUBLE)),
        ),
        Function(
            "round",
            "round(a)",
            "nearest whole number: DOUBLE half to even, DECIMAL half away from zero; "
            "round(a, n) of a DECIMAL keeps n digits, n being written as a number",
            (_on(DOUBLE, to=DOUBLE), _on(_DEC, to=_whole_rule), _on(_DEC, BIGINT, to=_first)),
            fails=True,
        ),
        Function(
            "floor",
            "floor(a)",
            "next whole number below",
            (_on(DOUBLE, to=DOUBLE), _on(_DEC, to=_whole_rule)),
        ),
        Function(
            "ceil",
            "ceil(a)",
            "next whole number above; also ceiling(a)",
            (_on(DOUBLE, to=DOUBLE), _on(_DEC, to=_whole_rule)),
        ),
        Function("sqrt", "sqrt(a)", "square root, as DOUBLE", (_on(DOUBLE, to=DOUBLE),), fails=True),
        Function(
            "power",
            "power(a, b)",
            "a to the power b, as DOUBLE; also a ^ b",
            (_on(DOUBLE, DOUBLE, to=DOUBLE),),
            fails=True,
        ),
    )


def _any_type() -> tuple[Function, ...]:
    comparisons = {
        "=": "equal",
        "<>": "different; also !=",
        "<": "less",
        "<=": "less or equal",
        ">": "greater",
        ">=": "greater or equal",
    }
    return (
        *(
            Function(name, f"a {name} b", meaning, unified=_truth, arity=(2, 2))
            for name, meaning in comparisons.items()
        ),
        Function("coalesce", "coalesce(a, …)", "the first that is not NULL", unified=_first, strict=False),
        Function(
            "nullif", "nullif(a, b)", "NULL if a = b, else a", unified=_first, arity=(2, 2), strict=False
        ),
        Function("greatest", "greatest(a, …)", "the greatest that is not NULL", unified=_first, strict=False),
        Function("least", "least(a, …)", "the least that is not NULL", unified=_first, strict=False),
    )


def _text() -> tuple[Function, ...]:
    def trim(name: str, meaning: str) -> Function:
        return Function(name, f"{name}(s, chars)", meaning, (_on(TEXT, to=TEXT), _on(TEXT, TEXT, to=TEXT)))

    return (
        Function(
            "||",
            "a || b",
            "a followed by b; beside TEXT, other values are cast to TEXT",
            (_on(TEXT, TEXT, to=TEXT), _on(BLOB, BLOB, to=BLOB)),
        ),
        Function(
            "like",
            "s LIKE pattern [ESCAPE e]",
            "whole text matches: % any characters, _ one; fails when the pattern ends in the escape "
            "character, which is \\ unless given",
            (_on(TEXT, TEXT, TEXT, to=BOOLEAN),),
            fails=True,
        ),
        Function(
            "ilike",
            "s ILIKE pattern [ESCAPE e]",
            "LIKE that takes A–Z and a–z for the same; other letters keep their case",
            (_on(TEXT, TEXT, TEXT, to=BOOLEAN),),
            fails=True,
        ),
        Function("length", "length(s)", "number of characters (code points)", (_on(TEXT, to=BIGINT),)),
        Function("lower", "lower(s)", "A–Z become a–z; other letters stay", (_on(TEXT, to=TEXT),)),
        Function("upper", "upper(s)", "a–z become A–Z; other letters stay", (_on(TEXT, to=TEXT),)),
        trim("btrim", "without the given characters (blanks) at both ends; also trim([BOTH] chars FROM s)"),
        trim("ltrim", "the same at the left; also trim(LEADING chars FROM s)"),
        trim("rtrim", "the same at the right; also trim(TRAILING chars FROM s)"),
        Function(
            "substr",
            "substr(s, start, count)",
            "count characters from start, the first being 1; also substring(s FROM start FOR count); "
            "fails when count is negative",
            (_on(TEXT, BIGINT, to=TEXT), _on(TEXT, BIGINT, BIGINT, to=TEXT)),
            fails=True,
        ),
        Function(
            "replace",
            "replace(s, from, to)",
            "every from in s replaced by to; an empty from changes nothing",
            (_on(TEXT, TEXT, TEXT, to=TEXT),),
        ),
        Function(
            "strpos",
            "strpos(s, part)",
            "where part first begins, from 1, or 0; also position(part IN s)",
            (_on(TEXT, TEXT, to=BIGINT),),
        ),
        Function(
            "left",
            "left(s, n)",
            "first n characters; all but the last −n if negative",
            (_on(TEXT, BIGINT, to=TEXT),),
        ),
        Function(
            "right",
            "right(s, n)",
            "last n characters; all but the first −n if negative",
            (_on(TEXT, BIGINT, to=TEXT),),
        ),
        Function(
            "starts_with",
            "starts_with(s, part)",
            "whether s begins with part",
            (_on(TEXT, TEXT, to=BOOLEAN),),
        ),
        Function(
            "concat",
            "concat(a, …)",
            "all arguments as TEXT, one after the other, NULLs left out",
            unified=lambda _types: TEXT,
            strict=False,
        ),
    )


def _time() -> tuple[Function, ...]:
    return (
        Function(
            "add_microseconds",
            "t + INTERVAL '1 day 2 hours'",
            "a TIMESTAMP moved by a fixed time (weeks to microseconds; a day is 24 hours); also t - INTERVAL",
            (_on(TIMESTAMP, BIGINT, to=TIMESTAMP),),
            fails=True,
        ),
        Function(
            "tumble",
            "tumble(t, INTERVAL '10 minutes')",
            "the beginning of the window of that length, counted from 1970-01-01 00:00 UTC",
            (_on(TIMESTAMP, BIGINT, to=TIMESTAMP),),
            fails=True,  # the first window of all begins before the year 1
        ),
        *(
            Function(
                f"extract_{field}",
                f"extract({field} FROM t)",
                _FIELD_MEANINGS.get(field, f"the {field}, in UTC") + f"; also date_part('{field}', t)",
                _extract_signatures(field),
            )
            for field in DATE_FIELDS
        ),
        *(
            Function(
                f"date_trunc_{unit}",
                f"date_trunc('{unit}', t)",
                f"the beginning of the {unit}, in UTC"
                + (" (weeks begin on Monday)" if unit == "week" else ""),
                (_on(TIMESTAMP, to=TIMESTAMP),),
                fails=unit == "week",  # the first days of year 1 belong to a week that begins before it
            )
            for unit in TRUNCATIONS
        ),
    )


def _sketches() -> tuple[Function, ...]:
    return (
        Function(
            "sketch_mark",
            "sketch_mark(s)",
            "the place of s among different texts; approx_count_distinct sketches it",
            (_on(TEXT, to=BIGINT),),
        ),
        Function(
            "sketch_step",
            "sketch_step(a)",
            "the step that a is on, 128 to a doubling; approx_percentile sketches it",
            (_on(DOUBLE, to=BIGINT),),
        ),
        Function(
            "sketch_distinct",
            "sketch_distinct(s)",
            "about how many different values a sketch has seen",
            (_on(TEXT, to=BIGINT),),
            fails=True,
        ),
        Function(
            "sketch_percentile",
            "sketch_percentile(s, p)",
            "about the number that a part p of those in a sketch is not above",
            (_on(TEXT, DOUBLE, to=DOUBLE),),
            fails=True,
        ),
    )


FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*_arithmetic(), *_any_type(), *_text(), *_time(), *_sketches())
}

NOT_DETERMINISTIC = frozenset(
    [
        "now",
        "random",
        "clock_timestamp",
        "statement_timestamp",
        "transaction_timestamp",
        "timeofday",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_schema",
        "current_catalog",
        "gen_random_uuid",
        "uuid_generate_v4",
        "nextval",
        "currval",
        "setseed",
        "pg_sleep",
        "version",
    ]
)
"""Refused by name: their result depends on when or where they are called."""


def resolve(name: str, types: tuple[Type, ...]) -> tuple[tuple[Type, ...], Type]:
    """The types that the arguments must be cast to, and the type of the call.

    Chooses as PostgreSQL does: a signature that fits exactly, else the one with the fewest and
    smallest implicit casts; an argument not yet typed is taken for what the others are.
    """
    function = FUNCTIONS[name]
    if function.unified is not None:
        return _resolve_unified(function, types)
    best: tuple[int, Signature] | None = None
    for signature in function.signatures:
        cost = _cost(signature, types)
        if cost is not None and (best is None or cost < best[0]):
            best = (cost, signature)
    if best is None:
        raise NoSignatureError(f"{_shown(function)} does not take ({', '.join(map(str, types))})")
    targets = _targets(best[1], types)
    return targets, best[1].returns(targets)


def _shown(function: Function) -> str:
    """A function's name as it is written."""
    return {"neg": "-", "like": "LIKE", "ilike": "ILIKE"}.get(function.name, function.name)


def _resolve_unified(function: Function, types: tuple[Type, ...]) -> tuple[tuple[Type, ...], Type]:
    least, most = function.arity
    if len(types) < least or (most is not None and len(types) > most):
        raise NoSignatureError(f"{_shown(function)} does not take {len(types)} arguments")
    if function.name == "concat":
        return (TEXT,) * len(types), TEXT
    common: Type | None = types[0]
    for other in types[1:]:
        common = common_type(common, other) if common is not None else None
    if common is None or function.unified is None:
        raise NoSignatureError(f"{_shown(function)} does not take ({', '.join(map(str, types))})")
    if common.kind is Kind.UNKNOWN:
        common = TEXT
    targets = (common,) * len(types)
    return targets, function.unified(targets)


_STEPS = {
    (Kind.BIGINT, Kind.DOUBLE): 1,  # DOUBLE is PostgreSQL's preferred number, so round(1) is a DOUBLE
    (Kind.BIGINT, Kind.DECIMAL): 2,
    (Kind.DECIMAL, Kind.DOUBLE): 4,
    (Kind.DATE, Kind.TIMESTAMP): 1,
}


def _cost(signature: Signature, types: tuple[Type, ...]) -> int | None:
    """How far these arguments are from the signature; None if they cannot be cast to it."""
    if len(types) != len(signature.parameters):
        return None
    known = {kind.kind for kind in types} - {Kind.UNKNOWN}
    cost = 0
    for given, wanted in zip(types, signature.parameters, strict=True):
        if given.kind is wanted:
            continue
        if given.kind is Kind.UNKNOWN:
            # The others' type first, then TEXT, then whatever the table lists first.
            cost += 0 if known == {wanted} else 10 if wanted is Kind.TEXT else 20
        elif (given.kind, wanted) in _STEPS:
            cost += _STEPS[given.kind, wanted]
        else:
            return None
    return cost


def _targets(signature: Signature, types: tuple[Type, ...]) -> tuple[Type, ...]:
    plain = {kind.kind: kind for kind in (BOOLEAN, BIGINT, DOUBLE, TEXT, BLOB, DATE, TIMESTAMP)}
    decimals = [kind for kind in types if kind.kind is Kind.DECIMAL]
    targets: list[Type] = []
    for given, wanted in zip(types, signature.parameters, strict=True):
        if wanted is not Kind.DECIMAL:
            targets.append(plain[wanted])
        elif given.kind is Kind.DECIMAL:
            targets.append(given)
        elif given.kind is Kind.BIGINT:
            targets.append(decimal_type(19, 0))
        else:
            targets.append(decimals[0] if decimals else BARE_DECIMAL)
    return tuple(targets)
