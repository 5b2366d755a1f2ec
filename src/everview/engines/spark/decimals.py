"""Exact division of DECIMALs in Spark SQL, rounded half away from zero once.

Spark's own `/` rounds to 38 digits, then to a scale of its choosing, and gives up digits before the
point for it, so that its quotients are neither exact nor always there. Here the digits of the dividend
are divided as on paper: pieces of 17 digits while the divisor has at most 21, else digit by digit, where
ten times a remainder, which may have 39 digits, is never formed.
"""

from __future__ import annotations

from everview.engines.spark.text import Names

__all__ = ["negated", "quotient"]

_PIECE = 17
_WIDE = 38 - _PIECE


def quotient(names: Names, dividend: str, divisor: str, *, scales: tuple[int, int, int], digits: int) -> str:
    """`dividend` / `divisor` as DECIMAL(38, scale); NULL when it does not fit or the divisor is 0.

    `scales` are those of the dividend, the divisor and the result; `digits` are the divisor's.
    """
    ours, theirs, scale = scales
    zeros = scale + theirs - ours

    def divided(a: str, b: str) -> str:
        top = f"concat({_digits(a)}, '{'0' * zeros}')" if zeros > 0 else _digits(a)
        sign = f"signum({a}) * signum({b})"
        down = f"CAST('{_unit(scale)}' AS DECIMAL({scale + 1},{scale}))"
        whole = names.let(
            (top, f"CAST({_digits(b)} AS DECIMAL(38,0))"),
            lambda number, by: _whole(names, number, by, places=38 + max(zeros, 0), wide=digits > _WIDE),
        )
        signed = f"CAST({sign} AS DECIMAL(1,0)) * {whole}"
        return f"CASE WHEN {b} <> 0 THEN try_cast(try_multiply({signed}, {down}) AS DECIMAL(38,{scale})) END"

    if zeros < 0:
        raise ValueError("a quotient has at least the scale of its dividend")
    return names.let((dividend, divisor), divided)


def _unit(scale: int) -> str:
    return "0." + "0" * (scale - 1) + "1"


def _digits(number: str) -> str:
    """The digits of a DECIMAL without sign and point."""
    return f"translate(CAST({number} AS STRING), '.-', '')"


def negated(number: str, kind: str) -> str:
    """The opposite of a DECIMAL; Spark's own `-` and `abs` round to 34 digits."""
    return f"CAST(CAST(0 AS DECIMAL(1,0)) - {number} AS {kind})"


def _whole(names: Names, number: str, divisor: str, *, places: int, wide: bool) -> str:
    """The digits in `number` divided by `divisor`, rounded, as DECIMAL(38,0) or NULL."""
    by_pieces = names.let((divisor,), lambda by: _long_division(number, by, places, _PIECE, _piece_step(by)))
    if not wide:
        return by_pieces
    by_digits = names.let((divisor,), lambda by: _long_division(number, by, places, 1, _digit_step(by)))
    return (
        f"CASE WHEN {divisor} < CAST('1{'0' * _WIDE}' AS DECIMAL(38,0)) THEN {by_pieces} ELSE {by_digits} END"
    )


def _long_division(number: str, divisor: str, places: int, size: int, step: str) -> str:
    pieces = -(-places // size)
    padded = f"lpad({number}, {pieces * size}, '0')"
    piece = f"CAST(substring({padded}, i * {size} + 1, {size}) AS BIGINT)"
    listed = f"transform(sequence(0, {pieces - 1}), i -> {piece})"
    zero = "CAST(0 AS DECIMAL(38,0))"
    return (
        f"aggregate({listed}, struct({zero} AS r, {zero} AS q), (s, d) -> {step}, "
        f"s -> try_add(s.q, CASE WHEN s.r >= {divisor} - s.r THEN 1 ELSE 0 END))"
    )


def _state(remainder: str, digit: str, size: int) -> str:
    ten = f"CAST('1{'0' * size}' AS DECIMAL({size + 1},0))"
    shifted = f"try_cast(try_multiply(s.q, {ten}) AS DECIMAL(38,0))"
    return (
        f"struct(CAST({remainder} AS DECIMAL(38,0)) AS r, "
        f"try_cast(try_add({shifted}, CAST({digit} AS DECIMAL(19,0))) AS DECIMAL(38,0)) AS q)"
    )


def _piece_step(divisor: str) -> str:
    ten = f"CAST('1{'0' * _PIECE}' AS DECIMAL({_PIECE + 1},0))"
    part = f"try_cast(s.r * {ten} + CAST(d AS DECIMAL(19,0)) AS DECIMAL(38,0))"
    return f"transform(array({part}), n -> {_state(f'n % {divisor}', f'n div {divisor}', _PIECE)})[0]"


def _digit_step(divisor: str) -> str:
    """One digit more: the remainder doubled, doubled, itself added, doubled, and the digit added."""

    def plus(state: str, number: str) -> str:
        return (
            f"CASE WHEN {state}.r >= {divisor} - {number} "
            f"THEN struct(CAST({state}.r - ({divisor} - {number}) AS DECIMAL(38,0)) AS r, "
            f"{state}.d + 1 AS d) "
            f"ELSE struct(CAST({state}.r + {number} AS DECIMAL(38,0)) AS r, {state}.d AS d) END"
        )

    def doubled(state: str) -> str:
        return (
            f"CASE WHEN {state}.r >= {divisor} - {state}.r "
            f"THEN struct(CAST({state}.r - ({divisor} - {state}.r) AS DECIMAL(38,0)) AS r, "
            f"2 * {state}.d + 1 AS d) "
            f"ELSE struct(CAST({state}.r + {state}.r AS DECIMAL(38,0)) AS r, 2 * {state}.d AS d) END"
        )

    text = "struct(s.r AS r, 0 AS d)"
    digit = "CAST(d AS DECIMAL(38,0))"
    for place, part in enumerate((doubled, doubled, lambda v: plus(v, "s.r"), doubled)):
        text = f"transform(array({text}), w{place} -> {part(f'w{place}')})[0]"
    text = f"transform(array({text}), w4 -> {plus('w4', digit)})[0]"
    return f"transform(array({text}), n -> {_state('n.r', 'n.d', 1)})[0]"
