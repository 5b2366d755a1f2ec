"""Published views, and what owners' rows come to, as rows that only their owners write (see `owned`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from everview.algebra.exact_text import is_exact_text
from everview.algebra.sketch_text import is_counts_text, is_marks_text
from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.compiler import Compiler
from everview.engines.sqlite.circuits.names import column, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.rows.authorship import Authorship
from everview.engines.sqlite.rows.base import TEMPORARY
from everview.engines.sqlite.rows.owned import OwnedRows
from everview.engines.sqlite.rows.owner import Owner
from everview.engines.sqlite.rows.taking import TAKING
from everview.errors import WireError
from everview.language.expressions import Call, Column, Literal
from everview.language.plan import Filter, Plan, Scan
from everview.language.relations import Relation, Semantics, View
from everview.language.types import BOOLEAN, TEXT, Field
from everview.planner.exchange import Exchange
from everview.planner.partials import Partials
from everview.planner.published import published_stream
from everview.planner.walking import over

_FORMS = {"exact": is_exact_text, "sketch_marks": is_marks_text, "sketch_counts": is_counts_text}
"""What a text of each aggregate must look like."""


@dataclass(frozen=True)
class PublishedRows(OwnedRows):
    """The rows of a view that its authority alone writes."""

    view: View

    @property
    def authority(self) -> str | None:
        """The view's."""
        return self.view.authority


@dataclass(frozen=True)
class PartialRows(OwnedRows):
    """The entries of a partial aggregate: what the rows of each owner come to, owner and group first."""

    partials: Partials

    @property
    def width(self) -> int:
        """Owner and group."""
        return self.partials.width

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        """Raise WireError unless texts of sums and sketches are such."""
        for place, aggregate in self.partials.texts:
            fits = _FORMS[aggregate]
            if not all(text is None or fits(text) for text in columns[place]):
                raise WireError(f"{self.stream} has a sum or sketch that is none", where="value")


def published_rows(circuit: Circuit, exchange: Exchange) -> dict[str, PublishedRows]:
    """Declare the views that come from their authority, or go out from here; by their streams."""
    found = {}
    for number, view in enumerate(exchange.program.views.values()):
        if view.name in exchange.published:
            relation = Relation(published_stream(view.name), view.schema, Semantics.BAG)
            found[relation.name] = PublishedRows(*_tables(circuit, relation, f"pub{number}"), view)
    return found


def partial_rows(circuit: Circuit, exchange: Exchange) -> dict[str, PartialRows]:
    """Declare the partial aggregates that are received here, or can be computed; by their streams."""
    wanted = {*exchange.partials, *(partials.name for partials in exchange.fed())}
    found = {}
    for number, (name, partials) in enumerate(exchange.all_partials.items()):
        if name in wanted:
            schema = tuple(
                Field(column(place), field.type, nullable=field.nullable or place >= partials.width)
                for place, field in enumerate(partials.plan.schema)
            )
            relation = Relation(name, schema, Semantics.BAG)
            tables = _tables(circuit, relation, f"par{number}")
            found[name] = PartialRows(*tables, partials)
    return found


def _tables(
    circuit: Circuit, relation: Relation, name: str
) -> tuple[Relation, StateTable, str, str, str, str]:
    circuit.temporary.update({**TEMPORARY, **TAKING})
    table = StateTable(internal(name), relation.schema, (), zero="")
    circuit.states.add(table.name)
    return (
        relation,
        table,
        circuit.scratch(f"d_{name}", relation.schema, ("w", "copies", "epoch", "dot")),
        circuit.scratch(f"o_{name}", relation.schema, ("copies", "dot")),
        circuit.scratch(f"k_{name}", (), ("owner TEXT PRIMARY KEY",)),
        circuit.scratch(f"e_{name}", (), ("owner TEXT PRIMARY KEY", "epoch", "site")),
    )


def authorships(
    circuit: Circuit,
    exchange: Exchange,
    compiler: Compiler,
    views: dict[str, Node],
    streams: dict[str, OwnedRows],
    name: str,
) -> Iterator[Authorship]:
    """Yield what a site of this name writes: its views as they are kept, and entries of its own rows."""
    for rows in streams.values():
        source = None
        if isinstance(rows, PublishedRows):
            if rows.authority != name:
                continue
            if exchange.published[rows.view.name]:
                source = views[rows.view.name]
        elif isinstance(rows, PartialRows):
            if rows.stream in exchange.partials:
                continue
            source = compiler.kept(_of_owner(rows.partials.plan, exchange, name))
        table = rows.table.name
        pending = circuit.scratch(f"p_{table.removeprefix(internal(''))}", rows.relation.schema)
        author = Authorship(Owner(rows, name, source is None), f"{table}_head", pending, source)
        author.declare(circuit)
        yield author


def _of_owner(plan: Plan, exchange: Exchange, name: str) -> Plan:
    """The same plan over those rows of relations that a site owns."""
    if isinstance(plan, Scan):
        relation = exchange.program.relations[plan.name]
        assert relation.owner is not None
        place = relation.columns.index(relation.owner)
        owner = Column(place, relation.schema[place].type, relation.owner)
        return Filter(plan, Call("=", (owner, Literal(name, TEXT)), BOOLEAN))
    return over(plan, lambda part: _of_owner(part, exchange, name))
