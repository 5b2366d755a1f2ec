"""Which SQL a call becomes: by the function's name, then by the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.scalars.arithmetic import BIGINTS, DOUBLES
from everview.engines.sqlite.scalars.comparisons import UNIFIED
from everview.engines.sqlite.scalars.dates import DATES
from everview.engines.sqlite.scalars.decimals import DECIMALS
from everview.engines.sqlite.scalars.fragments import Operand, Writer
from everview.engines.sqlite.scalars.texts import TEXTS
from everview.language.expressions import Call
from everview.language.types import Kind

__all__ = ["call_sql"]


def call_sql(writer: Writer, call: Call, operands: Sequence[Operand]) -> str:
    """The SQL of a call; KeyError would mean that a function of the language was forgotten here."""
    kinds = {operand.type.kind for operand in operands}
    if call.function in UNIFIED:
        return UNIFIED[call.function](writer, call, operands)
    if kinds & {Kind.DATE, Kind.TIMESTAMP}:
        return DATES[call.function](writer, call, operands)
    if kinds & {Kind.TEXT, Kind.BLOB}:
        return TEXTS[call.function](writer, call, operands)
    if Kind.DECIMAL in kinds:
        return DECIMALS[call.function](writer, call, operands)
    table = DOUBLES if Kind.DOUBLE in kinds else BIGINTS
    return table[call.function](writer, call, operands)
