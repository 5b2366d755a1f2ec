"""Names of types in texts: the eight, and their synonyms.

INT, INTEGER, SMALLINT are BIGINT; REAL and FLOAT are DOUBLE; VARCHAR, CHARACTER VARYING and STRING are
TEXT; NUMERIC is DECIMAL, and without precision DECIMAL(38,10); BYTEA is BLOB; TIMESTAMPTZ is TIMESTAMP,
which is always UTC. A length, as in VARCHAR(20), would be a constraint, so it is refused.
"""

from __future__ import annotations

from sqlglot import exp

from everview.language.functions import BARE_DECIMAL
from everview.language.sql.source import Source
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
)

__all__ = ["SYNONYMS", "bind_type"]

_D = exp.DType
_TYPES: dict[exp.DType, Type] = {
    _D.BOOLEAN: BOOLEAN,
    _D.TINYINT: BIGINT,
    _D.SMALLINT: BIGINT,
    _D.INT: BIGINT,
    _D.BIGINT: BIGINT,
    _D.FLOAT: DOUBLE,
    _D.DOUBLE: DOUBLE,
    _D.DECIMAL: BARE_DECIMAL,
    _D.TEXT: TEXT,
    _D.VARCHAR: TEXT,
    _D.VARBINARY: BLOB,
    _D.BLOB: BLOB,
    _D.DATE: DATE,
    _D.TIMESTAMP: TIMESTAMP,
    _D.TIMESTAMPTZ: TIMESTAMP,
}
SYNONYMS: dict[str, str] = {
    "BOOLEAN": "BOOL",
    "BIGINT": "INT8, INT, INTEGER, INT4, SMALLINT, INT2",
    "DOUBLE": "DOUBLE PRECISION, FLOAT8, REAL, FLOAT4, FLOAT",
    "DECIMAL(p,s)": "NUMERIC(p,s); without (p,s): DECIMAL(38,10)",
    "TEXT": "VARCHAR, CHARACTER VARYING",
    "BLOB": "BYTEA",
    "DATE": "",
    "TIMESTAMP": "TIMESTAMPTZ, TIMESTAMP WITH TIME ZONE, TIMESTAMP WITHOUT TIME ZONE",
}
_ADVICE = {
    "CHAR": "write TEXT",
    "UUID": "write TEXT",
    "JSON": "write TEXT",
    "JSONB": "write TEXT",
    "TIME": "write TIMESTAMP, or BIGINT for seconds",
    "INTERVAL": "write BIGINT for a number of seconds",
    "SERIAL": "write BIGINT; sites choose their own keys",
    "BIGSERIAL": "write BIGINT; sites choose their own keys",
    "ARRAY": "put the elements into a relation of their own",
}


def bind_type(source: Source, node: exp.Expr) -> Type:
    """The type that a type's name means."""
    if not isinstance(node, exp.DataType):
        raise _unknown(source, node, node.sql(dialect="postgres"))
    name = getattr(node.this, "value", str(node.this))
    found = _TYPES.get(node.this)
    if found is None:
        raise _unknown(source, node, name)
    source.only(node, ("this", "expressions", "nested"), {})
    arguments = [_number(source, argument) for argument in node.expressions]
    if found.kind is Kind.DECIMAL and arguments:
        precision, scale = arguments[0], arguments[1] if len(arguments) > 1 else 0
        if len(arguments) > 2 or not 1 <= precision <= DECIMAL_DIGITS or not 0 <= scale <= precision:
            raise source.error(
                node,
                f"DECIMAL({','.join(map(str, arguments))}) does not exist",
                hint=f"precision is 1 to {DECIMAL_DIGITS}, scale 0 to the precision",
            )
        return Type(Kind.DECIMAL, precision, scale)
    if arguments and found is TEXT:
        raise source.error(
            node, f"{name}({arguments[0]}): a length limit is a constraint, and is refused", hint="write TEXT"
        )
    if arguments and not (found is TIMESTAMP and arguments == [6]):
        raise source.error(node, f"{name} takes no ({arguments[0]})", hint=f"write {found}")
    return found


def _unknown(source: Source, node: exp.Expr, name: str) -> Exception:
    return source.error(
        node,
        f"there is no type {name}",
        hint=_ADVICE.get(name.upper(), "the types are " + ", ".join(SYNONYMS)),
    )


def _number(source: Source, node: exp.Expr) -> int:
    value = node.this if isinstance(node, exp.DataTypeParam) else node
    if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit():
        return int(value.this)
    raise source.error(node, "a type's precision and scale are whole numbers")
