"""What binding a query needs to know, handed down from query to subquery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.language.plan import Plan, Schema
from everview.language.relations import Relation
from everview.language.sql.names import Scope
from everview.language.sql.source import Source

__all__ = ["Catalog", "Context", "Parameters"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The relations and views that a text may name: `schema` of a name (None if unknown), all `names`.

    `relation` is what was declared under a name, if that is no view.
    """

    schema: Callable[[str], Schema | None]
    names: Callable[[], Iterable[str]]
    relation: Callable[[str], Relation | None]


@dataclass(slots=True)
class Parameters:
    """The parameters met so far: `?` count from 1 in the order of the text, or none are allowed."""

    allowed: bool
    positional: list[exp.Expr] = field(default_factory=list)
    named: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Context:
    """Where a query stands: its text, what names mean, and the rows around it, inside first."""

    source: Source
    catalog: Catalog
    parameters: Parameters
    bind_query: Callable[[exp.Expr, Context], Plan]
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()

    def inside(self, scope: Scope) -> Context:
        """The context of a subquery of a query with this FROM."""
        return replace(self, scopes=(scope, *self.scopes))
