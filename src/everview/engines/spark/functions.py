"""Every function of `language.functions` in Spark SQL; the few that Java computes otherwise, by Python.

A text yields what PostgreSQL would, and NULL where the call fails: `try_` functions and guards, so that
no exception of Spark's ANSI mode can stop a job. Arguments come as texts, and none is NULL-checked unless
the function needs it: Spark's own functions are strict where ours are, except greatest and least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.engines.spark.by_python import is_by_python, python_call
from everview.engines.spark.decimals import negated, quotient
from everview.engines.spark.patterns import folded, like
from everview.engines.spark.text import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    LAST_DAY,
    LAST_MICROSECOND,
    Names,
    within,
)
from everview.engines.spark.types import sql_type
from everview.language.expressions import Call, Literal
from everview.language.functions import COMPARISONS, DATE_FIELDS, FUNCTIONS, TRUNCATIONS
from everview.language.types import BIGINT_MAX, BIGINT_MIN, Kind

__all__ = ["IMPLEMENTED", "function_text"]

Texts = tuple[str, ...]
Emit = Callable[[Names, Call, Texts], str]


def function_text(names: Names, call: Call, arguments: Texts) -> str:
    """The text of a call over the texts of its arguments."""
    return IMPLEMENTED[call.function](names, call, arguments)


def _kind(call: Call) -> Kind:
    return call.type.kind


def _finite(names: Names, arguments: Texts, compute: Callable[..., str]) -> str:
    """A DOUBLE computed from DOUBLEs; NULL when it is infinite and no argument is; one zero only."""

    def guarded(*values: str) -> str:
        result = compute(*values)
        inputs = " AND ".join(f"abs({value}) < double('inf')" for value in values)
        return f"CASE WHEN abs({result}) = double('inf') AND {inputs} THEN NULL ELSE {result} + 0.0D END"

    return names.let(arguments, guarded)


def _tried(call: Call, function: str, left: str, right: str) -> str:
    """A `try_` function of Spark's; DECIMALs are brought to the type that we give the result."""
    text = f"{function}({left}, {right})"
    return f"try_cast({text} AS {sql_type(call.type)})" if _kind(call) is Kind.DECIMAL else text


def _moved_date(day: str, days: str) -> str:
    moved = f"try_add(CAST(unix_date({day}) AS BIGINT), {days})"
    return f"date_from_unix_date(CAST({within(moved, FIRST_DAY, LAST_DAY)} AS INT))"


def _plus(names: Names, call: Call, arguments: Texts) -> str:
    left, right = arguments
    kinds = tuple(argument.type.kind for argument in call.arguments)
    if _kind(call) is Kind.DATE:
        return _moved_date(left, right) if kinds[0] is Kind.DATE else _moved_date(right, left)
    if _kind(call) is Kind.DOUBLE:
        return _finite(names, arguments, lambda a, b: f"({a} + {b})")
    return _tried(call, "try_add", left, right)


def _minus(names: Names, call: Call, arguments: Texts) -> str:
    left, right = arguments
    if call.arguments[1].type.kind is Kind.DATE:
        return f"CAST(unix_date({left}) - unix_date({right}) AS BIGINT)"
    if _kind(call) is Kind.DATE:
        return _moved_date(left, f"try_subtract(0L, {right})")
    if _kind(call) is Kind.DOUBLE:
        return _finite(names, arguments, lambda a, b: f"({a} - {b})")
    return _tried(call, "try_subtract", left, right)


def _times(names: Names, call: Call, arguments: Texts) -> str:
    if _kind(call) is Kind.DOUBLE:
        return _finite(names, arguments, lambda a, b: f"({a} * {b})")
    return _tried(call, "try_multiply", *arguments)


def _divide(names: Names, call: Call, arguments: Texts) -> str:
    match _kind(call):
        case Kind.DOUBLE:
            # Only NaN can be divided by 0, and is NaN then.
            return _finite(
                names,
                arguments,
                lambda a, b: f"(CASE WHEN isnan({a}) THEN {a} + {b} ELSE {a} / nullif({b}, 0.0D) END)",
            )
        case Kind.BIGINT:
            # The least BIGINT has no opposite, so −1 has a branch of its own.
            return names.let(
                arguments,
                lambda a, b: (
                    f"CASE {b} WHEN 0L THEN NULL WHEN -1L THEN try_subtract(0L, {a}) ELSE {a} div {b} END"
                ),
            )
        case _:
            left, right = (argument.type for argument in call.arguments)
            scales = left.digits[1], right.digits[1], call.type.digits[1]
            return quotient(names, *arguments, scales=scales, digits=sum(right.digits))


def _remainder(_names: Names, call: Call, arguments: Texts) -> str:
    if is_by_python(call):  # the whole quotient may have more than 38 digits
        texts = (f"CAST({argument} AS STRING)" for argument in arguments)
        return f"try_cast({python_call('remainder', *texts)} AS {sql_type(call.type)})"
    return _tried(call, "try_mod", *arguments)


def _negated(_names: Names, call: Call, arguments: Texts) -> str:
    (value,) = arguments
    match _kind(call):
        case Kind.BIGINT:
            return f"try_subtract(0L, {value})"
        case Kind.DOUBLE:
            return f"(0.0D - {value})"
        case _:
            return negated(value, sql_type(call.type))


def _absolute(names: Names, call: Call, arguments: Texts) -> str:
    (value,) = arguments
    match _kind(call):
        case Kind.BIGINT:
            return f"abs(nullif({value}, {BIGINT_MIN}L))"
        case Kind.DOUBLE:
            return f"abs({value})"
        case _:
            opposite = sql_type(call.type)
            return names.let(
                arguments, lambda a: f"CASE WHEN {a} < 0 THEN {negated(a, opposite)} ELSE {a} END"
            )


def _sign(_names: Names, call: Call, arguments: Texts) -> str:
    (value,) = arguments
    if _kind(call) is Kind.DOUBLE:
        return f"signum(nanvl({value}, 0.0D))"
    return f"CAST(signum({value}) AS {sql_type(call.type)})"


def _round(_names: Names, call: Call, arguments: Texts) -> str:
    value = arguments[0]
    if _kind(call) is Kind.DOUBLE:
        return f"(rint({value}) + 0.0D)"
    digits = call.arguments[1] if len(call.arguments) > 1 else None
    if digits is not None and not isinstance(digits, Literal):
        raise AssertionError("the language has no round whose digits come with the rows")
    kept = 0 if digits is None else digits.value
    if kept is None:
        return f"CAST(NULL AS {sql_type(call.type)})"
    whole, scale = call.arguments[0].type.digits
    # Casting rounds half away from zero, as Spark's round does for the digits before the point.
    if kept >= scale:
        rounded = value
    elif kept >= 0:
        rounded = f"CAST({value} AS DECIMAL({min(whole + 1 + kept, 38)},{kept}))"
    elif -kept > whole:
        rounded = f"({value} * 0)"
    else:
        rounded = f"round(CAST({value} AS DECIMAL(38,{min(scale, 38 - whole)})), {kept})"
    return f"try_cast({rounded} AS {sql_type(call.type)})"


def _whole(function: str) -> Emit:
    def emit(names: Names, call: Call, arguments: Texts) -> str:
        if _kind(call) is Kind.DECIMAL:
            return f"CAST({function}({arguments[0]}) AS {sql_type(call.type)})"
        # From 2^53 on every DOUBLE is whole, and Spark's floor would need a BIGINT for it.
        return names.let(
            arguments,
            lambda a: (
                f"CASE WHEN abs({a}) < 9007199254740992D "
                f"THEN CAST({function}({a}) AS DOUBLE) + 0.0D ELSE {a} END"
            ),
        )

    return emit


def _sqrt(names: Names, _call: Call, arguments: Texts) -> str:
    return names.let(arguments, lambda a: f"CASE WHEN {a} >= 0 THEN sqrt({a}) END")


def _extreme(function: str) -> Emit:
    return lambda _names, _call, texts: texts[0] if len(texts) == 1 else f"{function}({', '.join(texts)})"


def _called(function: str) -> Emit:
    return lambda _names, _call, texts: f"{function}({', '.join(texts)})"


def _counted(function: str) -> Emit:
    return lambda _names, _call, texts: f"CAST({function}({', '.join(texts)}) AS BIGINT)"


def _operator(sign: str) -> Emit:
    return lambda _names, _call, texts: f"({texts[0]} {sign} {texts[1]})"


def _present(values: Sequence[str], body: str) -> str:
    """`body`, unless a value is NULL: for bodies that greatest and least would make blind to it."""
    return f"CASE WHEN {' AND '.join(f'{value} IS NOT NULL' for value in values)} THEN {body} END"


def _small(number: str) -> str:
    """A BIGINT as an INT between 0 and the greatest, further out cut to these; texts are shorter."""
    return f"CAST(greatest(least({number}, 2147483647L), 0L) AS INT)"


def _substr(names: Names, _call: Call, arguments: Texts) -> str:
    def from_start(text: str, start: str) -> str:
        return _present((start,), f"substring({text}, {_small(f'greatest({start}, 1L)')}, 2147483647)")

    def counted(text: str, start: str, count: str) -> str:
        end = f"coalesce(try_add({start}, {count}), {BIGINT_MAX}L)"
        # From 1 on the difference cannot overflow: the end is cut at 2^32 first.
        taken = f"least({end}, 4294967296L) - greatest({start}, 1L)"
        body = f"substring({text}, {_small(f'greatest({start}, 1L)')}, {_small(taken)})"
        beyond = (
            f"CASE WHEN {end} <= 1L OR {start} > 2147483647L THEN substring({text}, 1, 0) ELSE {body} END"
        )
        return f"CASE WHEN {count} >= 0 AND {start} IS NOT NULL THEN {beyond} END"

    return names.let(arguments, from_start if len(arguments) == 2 else counted)


def _left(names: Names, _call: Call, arguments: Texts) -> str:
    def cut(text: str, count: str) -> str:
        kept = f"CASE WHEN {count} >= 0 THEN {count} ELSE length({text}) + {count} END"
        return _present((count,), f"substring({text}, 1, {_small(kept)})")

    return names.let(arguments, cut)


def _right(names: Names, _call: Call, arguments: Texts) -> str:
    def cut(text: str, count: str) -> str:
        # The least BIGINT has no opposite; nothing is as long as its neighbour either.
        dropped = (
            f"CASE WHEN {count} >= 0 THEN length({text}) - {count} ELSE - greatest({count}, -4294967296L) END"
        )
        start = f"CAST(greatest(least({dropped}, 2147483646L), 0L) + 1 AS INT)"
        return _present((count,), f"substring({text}, {start}, 2147483647)")

    return names.let(arguments, cut)


def _extract(field: str) -> Emit:
    function = {"dow": "dayofweek", "isodow": "weekday", "doy": "dayofyear"}.get(field, field)
    shift = {"dow": " - 1", "isodow": " + 1"}.get(field, "")

    def emit(_names: Names, call: Call, texts: Texts) -> str:
        (when,) = texts
        if field == "second":
            return f"CAST(extract(SECOND FROM {when}) AS {sql_type(call.type)})"
        if field == "epoch":
            micro = "CAST('0.000001' AS DECIMAL(6,6))"
            return f"CAST(CAST(unix_micros({when}) AS DECIMAL(19,0)) * {micro} AS {sql_type(call.type)})"
        return f"CAST({function}({when}){shift} AS BIGINT)"

    return emit


def _truncated(unit: str) -> Emit:
    def emit(_names: Names, _call: Call, texts: Texts) -> str:
        begun = f"date_trunc('{unit.upper()}', {texts[0]})"
        if unit != "week":
            return begun
        return f"timestamp_micros({within(f'unix_micros({begun})', FIRST_MICROSECOND, LAST_MICROSECOND)})"

    return emit


def _moved(_names: Names, _call: Call, arguments: Texts) -> str:
    moved = f"try_add(unix_micros({arguments[0]}), {arguments[1]})"
    return f"timestamp_micros({within(moved, FIRST_MICROSECOND, LAST_MICROSECOND)})"


def _tumbled(names: Names, _call: Call, arguments: Texts) -> str:
    def begun(moment: str, size: str) -> str:
        micros = f"unix_micros({moment})"
        start = f"{micros} - {micros} % {size} - CASE WHEN {micros} % {size} < 0 THEN {size} ELSE 0 END"
        found = f"timestamp_micros({within(start, FIRST_MICROSECOND, LAST_MICROSECOND)})"
        return f"CASE WHEN {size} > 0 THEN {found} END"

    return names.let(arguments, begun)


def _mark(names: Names, _call: Call, arguments: Texts) -> str:
    """The first 64 bits of the hash: eleven are the slot, and the last 52 tell the rank."""

    def found(hashed: str) -> str:
        slot = f"(CAST(conv(substring({hashed}, 1, 3), 16, 10) AS BIGINT) div 2L)"
        rest = f"CAST(conv(substring({hashed}, 4, 13), 16, 10) AS BIGINT)"
        return f"{slot} * 64L + 53L - CASE WHEN {rest} = 0L THEN 0L ELSE length(bin({rest})) END"

    return names.let((f"md5(CAST({arguments[0]} AS BINARY))",), found)


def _step(names: Names, _call: Call, arguments: Texts) -> str:
    """Java's logarithm may be off by one at a power of two; the power itself is exact."""

    def placed(number: str, guess: str) -> str:
        over = f"CASE WHEN power(2.0D, {guess}) > abs({number}) THEN 1L ELSE 0L END"
        under = (
            f"CASE WHEN {guess} < 1023L AND power(2.0D, {guess} + 1L) <= abs({number}) THEN 1L ELSE 0L END"
        )
        exponent = f"{guess} - {over} + {under}"
        return names.let((f"({exponent})",), lambda e: _on_step(number, e))

    def signed(number: str) -> str:
        guess = f"CAST(floor(log2(abs({number}))) AS BIGINT)"
        return (
            f"CASE WHEN {number} IS NULL THEN NULL WHEN isnan({number}) THEN 268546L "
            f"WHEN abs({number}) = double('inf') THEN CAST(signum({number}) AS BIGINT) * 268545L "
            f"WHEN {number} = 0.0D THEN 0L ELSE {names.let((number, guess), placed)} END"
        )

    return names.let(arguments, signed)


def _on_step(number: str, exponent: str) -> str:
    part = f"CAST(floor(abs({number}) / power(2.0D, {exponent}) * 128.0D) AS BIGINT)"
    return f"CAST(signum({number}) AS BIGINT) * (({exponent} + 1074L) * 128L + {part} - 127L)"


IMPLEMENTED: dict[str, Emit] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _divide,
    "%": _remainder,
    "neg": _negated,
    "abs": _absolute,
    "sign": _sign,
    "round": _round,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "sqrt": _sqrt,
    "power": lambda _names, _call, texts: python_call("power", *texts),
    **{sign: _operator(sign) for sign in COMPARISONS},
    "coalesce": _called("coalesce"),
    "nullif": _called("nullif"),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "||": _called("concat"),
    "like": like,
    "ilike": like,
    "length": _counted("length"),
    "lower": lambda _names, _call, texts: folded(texts[0]),
    "upper": lambda _names, _call, texts: (
        f"translate({texts[0]}, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')"
    ),
    "btrim": _called("btrim"),
    # Here Spark takes the characters first.
    "ltrim": lambda _names, _call, texts: f"ltrim({', '.join(reversed(texts))})",
    "rtrim": lambda _names, _call, texts: f"rtrim({', '.join(reversed(texts))})",
    "substr": _substr,
    "replace": _called("replace"),
    "strpos": _counted("instr"),
    "left": _left,
    "right": _right,
    "starts_with": _called("startswith"),
    "concat": lambda _names, _call, texts: f"concat_ws('', {', '.join(texts)})",
    "add_microseconds": _moved,
    "tumble": _tumbled,
    **{f"extract_{field}": _extract(field) for field in DATE_FIELDS},
    **{f"date_trunc_{unit}": _truncated(unit) for unit in TRUNCATIONS},
    "sketch_mark": _mark,
    "sketch_step": _step,
    "sketch_distinct": lambda _names, _call, texts: python_call("sketch_distinct", *texts),
    "sketch_percentile": lambda _names, _call, texts: python_call("sketch_percentile", *texts),
}
"""The coverage of functions: total, and checked to be."""

if set(IMPLEMENTED) != set(FUNCTIONS):
    raise AssertionError(f"functions without an answer: {set(IMPLEMENTED) ^ set(FUNCTIONS)}")
