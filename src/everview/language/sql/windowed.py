"""WITH (event_time = …, sources = …, lateness = …): a relation of events whose windows close for certain.

Every row has one owner, the source, that is declared; so it is known who has to close a window. A key would
let a row take the place of an older one, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from everview.language.relations import Relation, Semantics
from everview.language.sql.lengths import read_length
from everview.language.sql.source import Source, nearest
from everview.language.types import Kind

__all__ = ["WINDOWED", "read_windowed"]

WINDOWED = ("event_time", "sources", "lateness")


def read_windowed(source: Source, node: exp.Expr, relation: Relation, options: Mapping[str, str]) -> Relation:
    """The relation with its event time and sources; as it is without them."""
    given = [name for name in WINDOWED if name in options]
    if not given:
        return relation
    missing = [name for name in ("event_time", "sources") if name not in options]
    if relation.owner is None:
        missing.append("owner")
    if missing:
        hint = "write WITH (owner = 'source', event_time = 'at', sources = 'a, b')"
        raise source.error(
            node, f"{given[0]} needs {' and '.join(missing)} as well", hint=hint, word=given[0]
        )
    if relation.semantics not in (Semantics.SET, Semantics.BAG):
        raise source.error(
            node,
            "event_time: the rows of a windowed relation are events, and none takes the place of another",
            hint="leave out PRIMARY KEY, and semantics other than 'set' or 'bag'",
            word="event_time",
        )
    return replace(
        relation,
        event_time=_event_time(source, node, relation, options["event_time"]),
        sources=_sources(source, node, options["sources"]),
        lateness=read_length(source, node, options, "lateness"),
    )


def _event_time(source: Source, node: exp.Expr, relation: Relation, name: str) -> str:
    if name not in relation.columns:
        hint = nearest(name, relation.columns) or f"the columns are {', '.join(relation.columns)}"
        raise source.error(node, f"event_time: there is no column {name}", hint=hint, word="event_time")
    for column, kind in ((name, Kind.TIMESTAMP), (relation.owner or "", Kind.TEXT)):
        field = relation.field(column)
        if field.type.kind is not kind or field.nullable:
            problem = f"{column} is {field.type}" + (" and may be NULL" if field.nullable else "")
            wanted = f"{column} {kind.name} NOT NULL"
            raise source.error(node, f"event_time: {problem}", hint=f"declare {wanted}", word="event_time")
    return name


def _sources(source: Source, node: exp.Expr, text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        hint = "write sources = 'drone-1, drone-2'"
        raise source.error(
            node, f"sources: {text!r} does not name sites, each once", hint=hint, word="sources"
        )
    return tuple(names)
