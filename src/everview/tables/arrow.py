"""Our eight types as Arrow's. It needs pyarrow, so it is loaded when somebody asks for Arrow."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from everview.language.types import Kind, Type

__all__ = ["arrow_type"]


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type that holds exactly the values of ours."""
    match kind.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.BIGINT:
            return pa.int64()
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.DECIMAL:
            whole, scale = kind.digits
            return pa.decimal128(whole + scale, scale)
        case Kind.TEXT:
            return pa.string()
        case Kind.BLOB:
            return pa.binary()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        case Kind.UNKNOWN:
            raise ValueError("a finished plan has no unknown types")
        case _:
            assert_never(kind.kind)
