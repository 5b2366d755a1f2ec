"""Why: the minimal sets of base rows that a row is there for, found when asked.

A row is traced backwards through its plan, one operator at a time: which rows of the input could it come
from, and why are those there. Alternatives add up, joined rows multiply (Streams §5). Of an aggregate or
a window function it is one monomial: all rows of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from everview.algebra import provenance as algebra
from everview.algebra.ids import Id
from everview.engines.sqlite.circuits.joins import without_partner
from everview.engines.sqlite.derivations.tracing import Named, derivations_of
from everview.engines.sqlite.names import SITES
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.scalars.storage import store_rows
from everview.language.expressions import (
    Column,
    Expression,
    IsDistinct,
    Literal,
    Not,
    conjunction,
    substitute,
)
from everview.language.identity import tuple_id
from everview.language.order import row_order_key
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """A base row: its label in the printed provenance, its id, relation, values by column, and origin."""

    label: str
    id: bytes
    relation: str
    values: Mapping[str, Any]
    origin: str


class Provenance:
    """Why a row is there. `monomials` are the minimal sets of ids; `str()` prints them as t1·t3 + t2."""

    def __init__(self, element: algebra.Provenance, witnesses: Sequence[Witness]) -> None:
        self._element = element
        self._witnesses = tuple(witnesses)
        self._labels: dict[Id, str] = {witness.id: witness.label for witness in witnesses}

    @property
    def monomials(self) -> frozenset[frozenset[Id]]:
        """The minimal sets of ids that suffice; none for a row that is not there."""
        return self._element.monomials

    def tuples(self) -> tuple[Witness, ...]:
        """Return the base rows that matter, with values and origin."""
        return self._witnesses

    def __bool__(self) -> bool:
        return bool(self._element)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Provenance) and self.monomials == other.monomials

    def __hash__(self) -> int:
        return hash(self._element)

    def __str__(self) -> str:
        labelled = ([self._labels[id_] for id_ in monomial] for monomial in self._element.monomials)
        return str(algebra.Provenance(labelled))

    def __repr__(self) -> str:
        return f"<Provenance {self}>"


@dataclass(slots=True)
class Witnesses:
    """Traces rows over the stored tables."""

    reading: Reading
    inside: bool = False
    _known: dict[bytes, Named] = field(default_factory=dict)

    def why(self, name: str, row: Row) -> Provenance:
        """Return why a row of a relation or view is there; of an absent row, the empty provenance.

        Of a tuple whose relation is not here, its values are those that derived rows show.
        """
        program = self.reading.store.program
        element = self._scan(Scan(name, program.schema(name)), row)

        def order(found: Named) -> tuple[Any, ...]:
            columns = program.relations[found.relation].columns
            return found.relation, row_order_key([found.values.get(c) for c in columns]), found.id

        used = sorted((self._known[id_] for id_ in element.ids if isinstance(id_, bytes)), key=order)
        return Provenance(
            element,
            [
                Witness(f"t{number}", found.id, found.relation, found.values, self._origin(found.site))
                for number, found in enumerate(used, start=1)
            ],
        )

    def _origin(self, site: int | None) -> str:
        """The name of a site, by its number here; of one that has no name its incarnation."""
        if site == 0:
            return self.reading.store.name
        with self.reading.store.reading(inside=self.inside) as handle:
            found = handle.connection.execute(
                f"SELECT iif(name = '', incarnation, name) FROM {SITES} WHERE number = ?", (site,)
            ).fetchone()
        return "" if found is None else str(found[0])

    def _scan(self, plan: Scan, row: Row) -> algebra.Provenance:
        store = self.reading.store
        if plan.name in store.engine.received:
            return self._derivations(plan.name, row)
        if not self._rows(plan, row):
            return algebra.Provenance.ZERO
        if plan.name in store.program.views:
            return self._trace(store.engine.plans[plan.name], row)
        relation = store.program.relations[plan.name]
        id_ = tuple_id(relation, row)
        values = dict(zip(relation.columns, row, strict=True))
        (stored,) = store_rows([f.type for f in relation.schema], [row])
        with store.reading(inside=self.inside) as handle:
            site = store.engine.relations[plan.name].writer(handle.connection, stored)
        self._known[id_] = Named(id_, plan.name, values, site)
        return algebra.Provenance.of(id_)

    def _derivations(self, name: str, row: Row) -> algebra.Provenance:
        """Every derivation of a received row is an alternative."""
        store, monomials = self.reading.store, []
        with store.reading(inside=self.inside) as handle:
            for named in derivations_of(handle.connection, store.engine.received[name], row):
                monomials.append([found.id for found in named])
                for found in named:
                    self._known.setdefault(found.id, found)
        return algebra.Provenance(monomials)

    def _trace(self, plan: Plan, row: Row) -> algebra.Provenance:
        match plan:
            case Scan():
                return self._scan(plan, row)
            case Values():
                return algebra.Provenance.ONE
            case Filter() | Distinct() | TopK():
                return self._trace(plan.input, row)
            case Project():
                return self._sum(plan.input, self._where(plan.expressions, row))
            case UnionAll():
                total = algebra.Provenance.ZERO
                for part in plan.inputs:
                    if self._rows(part, row):
                        total += self._trace(part, row)
                return total
            case Join():
                return self._join(plan, row)
            case Intersect():
                return self._trace(plan.left, row) * self._trace(plan.right, row)
            case Except():
                return self._trace(plan.left, row)
            case Aggregate():
                return self._all(plan.input, self._where(plan.keys, row[: len(plan.keys)]))
            case Window():
                return self._window(plan, row)
            case _:
                assert_never(plan)

    def _join(self, plan: Join, row: Row) -> algebra.Provenance:
        width = len(plan.left.schema)
        left, right = row[:width], row[width:]
        if plan.kind is JoinKind.ANTI:
            return self._trace(plan.left, left)
        if plan.kind is JoinKind.SEMI:
            partners = substitute(plan.condition, lambda c: _bound(c, row, width))
            return self._trace(plan.left, left) * self._sum(plan.right, partners)
        if plan.kind is JoinKind.INNER:
            return self._trace(plan.left, left) * self._trace(plan.right, right)
        # Of an outer join the row may be a pair, or a row of either side that found no partner.
        return self._trace(without_partner(plan), row)

    def _window(self, plan: Window, row: Row) -> algebra.Provenance:
        width = len(plan.input.schema)
        keys = [key for key in plan.calls[0].partition if all(key in call.partition for call in plan.calls)]
        mine = [self._value(plan.input, key, row[:width]) for key in keys]
        return self._all(plan.input, self._where(keys, mine))

    def _value(self, plan: Plan, expression: Expression, row: Row) -> Any:
        narrow = Filter(plan, _is(plan, row))
        found = self._fetch(Project(narrow, (expression,), ("value",)))
        return found[0][0] if found else None

    def _where(self, expressions: Sequence[Expression], values: Sequence[Any]) -> Expression:
        """The condition that the expressions have these values, NULL equal to NULL."""
        return conjunction(
            [
                Not(IsDistinct(expression, Literal(value, expression.type)))
                for expression, value in zip(expressions, values, strict=True)
            ]
        )

    def _sum(self, plan: Plan, condition: Expression) -> algebra.Provenance:
        """Any row for which the condition holds suffices."""
        total = algebra.Provenance.ZERO
        for row in dict.fromkeys(self._fetch(Filter(plan, condition))):
            total += self._trace(plan, row)
        return total

    def _all(self, plan: Plan, condition: Expression) -> algebra.Provenance:
        """All rows for which the condition holds are needed: one monomial of everything behind them."""
        ids: set[Id] = set()
        for row in dict.fromkeys(self._fetch(Filter(plan, condition))):
            ids |= self._trace(plan, row).ids
        return algebra.Provenance([ids])

    def _rows(self, plan: Plan, row: Row) -> bool:
        return self._any(Filter(plan, _is(plan, row)))

    def _any(self, plan: Plan) -> bool:
        return bool(self._fetch(plan))

    def _fetch(self, plan: Plan) -> list[Row]:
        return self.reading.rows_of(plan, inside=self.inside, strict=False)


def _is(plan: Plan, row: Row) -> Expression:
    cells = zip(enumerate(plan.schema), row, strict=True)
    return conjunction(
        [Not(IsDistinct(Column(i, f.type, f.name), Literal(value, f.type))) for (i, f), value in cells]
    )


def _bound(column: Column, row: Row, width: int) -> Expression:
    """A column of the left row as its value; one of the right input as it stands there."""
    if column.index < width:
        return Literal(row[column.index], column.type)
    return Column(column.index - width, column.type, column.name)
