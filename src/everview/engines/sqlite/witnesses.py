"""Why, at a site: what tracing asks, answered from the stored tables by SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from everview.algebra import provenance as algebra
from everview.engines.sqlite.derived.tracing import derivations_of
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.scalars.storage import store_rows
from everview.language.expressions import Literal
from everview.language.identity import tuple_id
from everview.language.plan import Fixpoint, Plan, Scan, Values
from everview.language.relations import Relation
from everview.language.types import Field
from everview.planner.why.answer import Named, Provenance, answer
from everview.planner.why.evidence import Question
from everview.planner.why.tracing import Tracing

Row = tuple[Any, ...]

AT_ONCE = 100
"""How many rows are asked for in one statement: they are written out in it."""


@dataclass(slots=True)
class Witnesses:
    """Traces rows over the stored tables."""

    reading: Reading
    inside: bool = False
    _known: dict[bytes, Named] = field(default_factory=dict)
    _names: dict[int | None, str] = field(default_factory=dict)

    def why(self, name: str, row: Row) -> Provenance:
        """Return why a row of a relation or view is there; of an absent row, the empty provenance.

        Of a tuple whose relation is not here, its values are those that derived rows show.
        """
        program = self.reading.store.program
        tracing, scan = Tracing(self), Scan(name, program.schema(name))
        element = tracing.why(scan, row)
        return answer(program, element, self._known.values(), tracing.proof(scan, row))

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plans of the views that are made here."""
        engine = self.reading.store.engine
        # The tables of a recursion are known by its plan as it was compiled, where parts of views are shared.
        plans = engine.shared if engine.recursive else engine.plans
        return {name: plan for name, plan in plans.items() if name not in engine.received}

    def recursive(self, group: Fixpoint) -> Mapping[str, Scan]:
        """The tables of a group, under names of their own."""
        return self.reading.store.engine.recursive[group.names, group.plans]

    def pairs(self, question: Question) -> list[tuple[Row, Row]]:
        """A question is one SELECT, or one for every so many rows."""
        found: list[tuple[Row, Row]] = []
        for rows in _chunks(question.rows):
            if len(rows) == 1:
                found += [(rows[0], other) for other in self._fetch(question.of_one(rows[0]))]
                continue
            kinds = [f.type for f in question.schema]
            cells = (tuple(map(Literal, row, kinds)) for row in rows)
            asked = Question(rows, question.schema, question.plan, question.condition)
            both = self._fetch(asked.of_all(Values(question.schema, tuple(cells))))
            found += [(pair[: question.width], pair[question.width :]) for pair in both]
        return found

    def base(self, name: str, rows: Sequence[Row]) -> Mapping[Row, algebra.Provenance]:
        """A relation's rows stand for themselves, a received row for its derivations.

        So do rows of a view that its authority publishes, and what the rows of an owner come to: what these
        were made from is not known here.
        """
        engine = self.reading.store.engine
        reason = self._tuple
        if name in engine.published:
            reason = self._published
        elif name in engine.partials:
            reason = self._entry
        elif name in engine.received:
            reason = self._derivations
        return {row: reason(name, row) for row in rows}

    def _published(self, name: str, row: Row) -> algebra.Provenance:
        view = self.reading.store.engine.published[name].view
        id_ = tuple_id(Relation(view.name, view.schema), row)
        values = dict(zip(view.columns, row, strict=True))
        self._known[id_] = Named(id_, view.name, values, view.authority or "")
        return algebra.Provenance.of(id_)

    def _entry(self, name: str, row: Row) -> algebra.Provenance:
        """What an owner's rows of a group come to: its witness is the group, and the owner."""
        partials = self.reading.store.engine.partials[name].partials
        places, schema = (0, *partials.shown), partials.plan.schema
        fields = tuple(Field(f"c{place}", schema[place].type) for place in places)
        id_ = tuple_id(Relation(name, fields), tuple(row[place] for place in places))
        values = {schema[place].name: row[place] for place in partials.shown}
        self._known[id_] = Named(id_, partials.view, values, str(row[0]))
        return algebra.Provenance.of(id_)

    def _tuple(self, name: str, row: Row) -> algebra.Provenance:
        store = self.reading.store
        relation = store.program.relations[name]
        id_ = tuple_id(relation, row)
        (stored,) = store_rows([f.type for f in relation.schema], [row])
        with store.reading(inside=self.inside) as handle:
            site = store.engine.relations[name].writer(handle.connection, stored)
        values = dict(zip(relation.columns, row, strict=True))
        self._known[id_] = Named(id_, name, values, self._origin(site))
        return algebra.Provenance.of(id_)

    def _derivations(self, name: str, row: Row) -> algebra.Provenance:
        """Every derivation of a received row is an alternative."""
        store, monomials = self.reading.store, []
        with store.reading(inside=self.inside) as handle:
            for derived in derivations_of(handle.connection, store.engine.received[name], row):
                monomials.append([found.id for found in derived])
                for found in derived:
                    if found.id not in self._known:
                        origin = self._origin(found.site)
                        self._known[found.id] = Named(found.id, found.relation, found.values, origin)
        return algebra.Provenance(monomials)

    def _origin(self, site: int | None) -> str:
        """The name of a site, by its number here; of one that has no name its incarnation."""
        if site == self.reading.store.ledger.site:
            return self.reading.store.name
        if site not in self._names:
            with self.reading.store.reading(inside=self.inside) as handle:
                found = handle.connection.execute(
                    f"SELECT iif(name = '', incarnation, name) FROM {SITES} WHERE number = ?", (site,)
                ).fetchone()
            self._names[site] = "" if found is None else str(found[0])
        return self._names[site]

    def _fetch(self, plan: Plan) -> list[Row]:
        return self.reading.rows_of(plan, inside=self.inside, strict=False)


def _chunks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while some := list(islice(left, AT_ONCE)):
        yield some
