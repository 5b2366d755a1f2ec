"""Options of a declaration that say how long: WITH (lateness = '30 seconds', retention = '30 days')."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from everview.language.sql.intervals import IntervalError, interval_microseconds
from everview.language.sql.source import Source

__all__ = ["read_length"]


def read_length(source: Source, node: exp.Expr, options: Mapping[str, str], name: str) -> int | None:
    """An option in microseconds; None if it is not given."""
    if name not in options:
        return None
    try:
        length = interval_microseconds(options[name])
    except IntervalError as error:
        raise source.error(node, f"{name}: {error}", hint=error.hint, word=name) from None
    if length < 0:
        raise source.error(node, f"{name} is not negative", hint="write '30 seconds'", word=name)
    return length
