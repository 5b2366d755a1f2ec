"""Functions on TEXT, and `||` on BLOB.

SQLite counts code points as we do, and its upper and lower change ASCII letters only, as ours. LIKE with
a written pattern is GLOB, which minds case and uses an index for a fixed beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.scalars.arithmetic import Implementation
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.engines.sqlite.scalars.literals import text_literal
from everview.language.expressions import Call
from everview.language.types import BLOB

__all__ = ["TEXTS"]

_FAR = (1 << 31) - 1
"""SQLite reads positions as 32-bit numbers in some versions; no text is longer than this."""

_GLOB_LIMIT = 10_000
"""Bytes of a GLOB pattern, well within SQLite's limit of 50,000; a special sign takes three."""


def _concatenate(_writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    joined = f"({operands[0].sql} || {operands[1].sql})"
    return f"CAST({joined} AS BLOB)" if call.type == BLOB else joined


def _like(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    text, pattern, escape = operands
    if pattern.constant is None or escape.constant is None:
        return writer.call(call, operands)
    folded = call.function == "ilike"
    glob = _glob(*((_lower(p.constant) if folded else p.constant) for p in (pattern, escape)))
    if glob is None or len(glob.encode()) > _GLOB_LIMIT:
        return writer.call(call, operands)
    subject = f"lower({text.sql})" if folded else text.sql
    return f"({subject} GLOB {text_literal(glob)})"


def _lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _glob(pattern: str, escape: str) -> str | None:
    """The GLOB pattern of a LIKE pattern; None when that ends in its escape character."""
    parts: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if sign == escape:
            escaped = next(signs, None)
            if escaped is None:
                return None
            parts.append(_exactly(escaped))
        else:
            parts.append({"%": "*", "_": "?"}.get(sign) or _exactly(sign))
    return "".join(parts)


def _exactly(sign: str) -> str:
    return f"[{sign}]" if sign in "*?[" else sign


def _native(name: str) -> Implementation:
    return lambda _writer, _call, operands: f"{name}({', '.join(operand.sql for operand in operands)})"


def _substr(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    start, count = operands[1].constant, operands[2].constant if len(operands) > 2 else 0
    if start is not None and count is not None and 1 <= start <= _FAR and 0 <= count <= _FAR:
        return f"substr({', '.join(operand.sql for operand in operands)})"
    if len(operands) == 2:
        text, first = operands
        return f"substr({text.sql}, min(max({first.sql}, 1), {_FAR}))"
    failure = writer.fail("negative substring length not allowed")

    def body(text: str, start: str, count: str) -> str:
        present = f"{text} IS NOT NULL AND {start} IS NOT NULL"
        return (
            f"CASE WHEN {count} < 0 AND {present} THEN {failure} "
            f"WHEN {start} >= 1 THEN substr({text}, min({start}, {_FAR}), min({count}, {_FAR})) "
            f"ELSE substr({text}, 1, min(max({start} + {count} - 1, 0), {_FAR})) END"
        )

    return writer.let(operands, body)


def _replace(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    if operands[1].constant:
        return f"replace({', '.join(operand.sql for operand in operands)})"
    # With an empty text to look for, SQLite does not look at the third argument, not even for NULL.
    return writer.let(
        operands, lambda text, old, new: f"CASE WHEN {new} IS NOT NULL THEN replace({text}, {old}, {new}) END"
    )


def _left(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return writer.let(
        operands,
        lambda text, n: (
            f"substr({text}, 1, CASE WHEN {n} < 0 THEN max(length({text}) + {n}, 0) "
            f"ELSE min({n}, length({text})) END)"
        ),
    )


def _right(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return writer.let(
        operands,
        lambda text, n: (
            f"substr({text}, CASE WHEN {n} < 0 THEN CAST(min(-{n}, length({text})) AS INTEGER) "
            f"ELSE max(length({text}) - {n}, 0) END + 1)"
        ),
    )


def _starts_with(writer: Writer, _call: Call, operands: Sequence[Operand]) -> str:
    return writer.let(operands, lambda text, part: f"substr({text}, 1, length({part})) = {part}")


def _by_reference(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    return writer.call(call, operands)


TEXTS: dict[str, Implementation] = {
    "||": _concatenate,
    "like": _like,
    "ilike": _like,
    "length": _native("length"),
    "lower": _native("lower"),
    "upper": _native("upper"),
    "btrim": _native("trim"),
    "ltrim": _native("ltrim"),
    "rtrim": _native("rtrim"),
    "substr": _substr,
    "replace": _replace,
    "strpos": _native("instr"),
    "left": _left,
    "right": _right,
    "starts_with": _starts_with,
    "sketch_mark": _native("ev_sketch_mark"),
    "sketch_distinct": _by_reference,
    "sketch_percentile": _by_reference,
}
