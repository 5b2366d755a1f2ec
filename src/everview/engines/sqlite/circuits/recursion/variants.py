"""Variants: the statements that apply one clause where something changed.

A clause is a join of atoms. Each variant of it reads some atoms as they are now and others as they changed,
and so finds what a change adds, or what it may take away, at the cost of the change. A derivation supports a
row when the rows of the group that it is made from come before the row: in order of level, then of relation,
then of values. Every row has such a derivation, so what has no support but itself is never taken for proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.recursion.tables import LEVEL, Tables, listed
from everview.engines.sqlite.circuits.select import Condition, Select, Source, aliases, equality, from_table
from everview.engines.sqlite.circuits.statetable import same_row
from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.language.expressions import conjunction
from everview.language.plan import Plan, RecursiveScan
from everview.language.recursion import Absence, Clause

Reader = Callable[[], list[Select]]
"""Gives the selects, to be united, that read an atom."""


@dataclass(frozen=True, slots=True)
class Input:
    """A plan that does not read the group: its node, and where its net change in this commit lies."""

    node: Node
    change: str
    deltas: list[Select]

    def now(self) -> list[Select]:
        """Return what reads its rows as they are."""
        assert self.node.contents is not None
        return [select.weighing("1") for select in self.node.contents()]


@dataclass(slots=True)
class ClauseVariants:
    """The statements of one clause of the relation `head`."""

    circuit: Circuit
    clause: Clause
    head: Tables
    group: Mapping[str, Tables]
    inputs: Mapping[Plan, Input]
    _rank: dict[str, Tables] = field(default_factory=dict)

    # What a change may take away.

    def doubts(self, changed: frozenset[str]) -> Iterator[str]:
        """Yield what fills `doubtful` with rows that a derivation of has gone, because inputs changed."""
        places = [place for place, plan in self._given() if self.inputs[plan].change in changed]
        # Several inputs may have lost rows of one derivation at once: every combination is looked at.
        for size in range(1, len(places) + 1):
            for chosen in combinations(places, size):
                lost = {place: self._changed(self.clause.atoms[place], "<") for place in chosen}
                yield from self._doubt(self._bodies(lost))
        for absence in self.clause.absences:
            if self.inputs[absence.plan].change in changed:
                yield from self._doubt(self._met(absence, ">"))

    def doubts_of(self) -> Iterator[str]:
        """Yield what fills `doubtful` with rows that had a derivation from the rows in `last`."""
        for place, table in self._recursive():
            yield from self._doubt(self._bodies({place: self._temporary(table, table.last)}))

    def _doubt(self, bodies: Iterator[Select]) -> Iterator[str]:
        for body in bodies:
            alias = self.circuit.names.alias()
            row = self.head.of(alias)
            led = Condition(same_row(self.head.schema, row, self._head(body)))
            found = replace(body, sources=(*body.sources, Source(self.head.state.name, alias, large=True)))
            found = found.filter(led, *self._before(body, alias))
            names = listed((*self.head.columns, LEVEL))
            shown = self._sql(found, [*row, f"{alias}.{LEVEL}"])
            yield f"INSERT OR IGNORE INTO {self.head.doubtful} ({names}) {shown}"

    def support(self, alias: str) -> Iterator[str]:
        """Yield conditions, one of which is true if the row under the alias is derived from earlier rows."""
        for body in self._bodies({}):
            bound = self._led_by(body, alias).filter(*self._before(body, alias), *self._absent(body))
            yield f"EXISTS ({self._sql(bound, ['1'], frozenset({alias}))})"

    # What a change adds.

    def returns(self) -> Iterator[str]:
        """Yield what fills the first of `grown` with rows in `gone` that what is left derives."""
        for body in self._bodies({}):
            alias = self.circuit.names.alias()
            found = self._led_by(body, alias)
            found = replace(found, sources=(Source(self.head.gone, alias, delta=True), *found.sources))
            grown = self._grow(found.filter(*self._absent(body)), body, self.head.of(alias))
            yield f"{grown} ORDER BY {len(self.head.columns) + 1}"  # the lowest proof first

    def seeds(self, changed: frozenset[str]) -> Iterator[str]:
        """Yield what fills the first of `grown` with rows that changed inputs derive."""
        for place, plan in self._given():
            if self.inputs[plan].change in changed:
                for body in self._bodies({place: self._changed(plan, ">")}):
                    yield self._grow_new(body)
        for absence in self.clause.absences:
            if self.inputs[absence.plan].change in changed:
                for body in self._met(absence, "<"):
                    yield self._grow_new(body)

    def grows(self, turn: int) -> Iterator[str]:
        """Yield what fills the other of `grown` with rows that those in the one whose turn it is derive."""
        for place, table in self._recursive():
            for body in self._bodies({place: self._temporary(table, table.grown[turn])}):
                yield self._grow_new(body, 1 - turn)

    def missing(self) -> Iterator[str]:
        """Yield what finds rows that the clause derives from the rows there are, and that are not there."""
        for body in self._bodies({}):
            found = body.filter(*self._absent(body), self._not_there(self._head(body)))
            yield found.sql(columns=self._head(body))

    def _grow_new(self, body: Select, turn: int = 0) -> str:
        head = self._head(body)
        return self._grow(body.filter(*self._absent(body), self._not_there(head)), body, head, turn)

    def _not_there(self, head: Sequence[str]) -> Condition:
        alias = self.circuit.names.alias()
        state = self.head.state.name
        there = (
            f"SELECT 1 FROM {state} AS {alias} WHERE {same_row(self.head.schema, self.head.of(alias), head)}"
        )
        return Condition(f"NOT EXISTS ({there})")

    def _grow(self, found: Select, body: Select, row: Sequence[str], turn: int = 0) -> str:
        names = listed((*self.head.columns, LEVEL))
        text = self._sql(found, [*row, self._level(body)])
        return f"INSERT OR IGNORE INTO {self.head.grown[turn]} ({names}) {text}"

    # Parts of statements.

    def _given(self) -> Iterator[tuple[int, Plan]]:
        """The places of atoms that do not read the group."""
        return ((i, atom) for i, atom in enumerate(self.clause.atoms) if not isinstance(atom, RecursiveScan))

    def _recursive(self) -> Iterator[tuple[int, Tables]]:
        for place, atom in enumerate(self.clause.atoms):
            if isinstance(atom, RecursiveScan):
                yield place, self.group[atom.name]

    def _bodies(self, special: Mapping[int, Reader]) -> Iterator[Select]:
        """The clause's body, some atoms read specially, the others as they are now."""
        readers = [special.get(place) or self._now(atom) for place, atom in enumerate(self.clause.atoms)]
        for parts in product(*(reader() for reader in readers)):
            body = parts[0]
            for part in parts[1:]:
                body = body.cross(part)
            yield body.filter(*conditions(conjunction(self.clause.conditions), body.columns))

    def _now(self, atom: Plan) -> Reader:
        if not isinstance(atom, RecursiveScan):
            return self.inputs[atom].now
        table = self.group[atom.name]

        def rows() -> list[Select]:
            alias = self.circuit.names.alias()
            self._rank[alias] = table
            return [Select((Source(table.state.name, alias, stored=True, large=True),), table.of(alias))]

        return rows

    def _temporary(self, table: Tables, name: str) -> Reader:
        def rows() -> list[Select]:
            alias = self.circuit.names.alias()
            self._rank[alias] = table
            return [Select((Source(name, alias, delta=True),), table.of(alias))]

        return rows

    def _changed(self, plan: Plan, sign: str) -> Reader:
        """The rows that an input gained (>) or lost (<); of a bag it may have others of the kind left."""
        source = self.inputs[plan]

        def rows() -> list[Select]:
            names = columns(len(plan.schema))
            select = from_table(self.circuit.names, source.change, names, stored=False, delta=True)
            return [select.filter(Condition(f"{select.sources[0].alias}.w {sign} 0"))]

        return rows

    def _met(self, absence: Absence, sign: str) -> Iterator[Select]:
        """The body where a row that an absence forbids has come (>) or gone (<)."""
        for body in self._bodies({}):
            (changed,) = self._changed(absence.plan, sign)()
            both = body.cross(changed)
            yield both.filter(*conditions(absence.condition, both.columns)).project(body.columns)

    def _absent(self, body: Select) -> Iterator[Condition]:
        """What the absences of the clause say."""
        bound = frozenset(source.alias for source in body.sources) | aliases(" ".join(body.columns))
        for absence in self.clause.absences:
            for row in self.inputs[absence.plan].now():
                met = row.filter(*conditions(absence.condition, body.columns + row.columns))
                yield Condition(f"NOT EXISTS ({self._sql(met, ['1'], bound)})")

    def _head(self, body: Select) -> list[str]:
        return [compile_expression(expression, body.columns) for expression in self.clause.head]

    def _led_by(self, body: Select, alias: str) -> Select:
        """The body, narrowed to the derivations of the row under an alias."""
        pairs = zip(self._head(body), self.head.of(alias), self.head.schema, strict=True)
        return body.filter(*(equality(made, own, null_safe=f.nullable) for made, own, f in pairs))

    def _ranked(self, body: Select) -> list[tuple[str, Tables]]:
        return [(s.alias, self._rank[s.alias]) for s in body.sources if s.alias in self._rank]

    def _level(self, body: Select) -> str:
        """One above the rows that it is derived from."""
        below = [f"{alias}.{LEVEL}" for alias, _ in self._ranked(body)]
        return f"1 + {f'max({listed(below)})' if len(below) > 1 else ''.join(below)}" if below else "1"

    def _before(self, body: Select, alias: str) -> Iterator[Condition]:
        """Every row of the group in the body comes before the row under the alias."""
        for other, table in self._ranked(body):
            mine, theirs = f"{alias}.{LEVEL}", f"{other}.{LEVEL}"
            if table.number != self.head.number:
                sign = "<=" if table.number < self.head.number else "<"
                yield Condition(f"{theirs} {sign} {mine}")
            else:
                rows = listed((theirs, *table.of(other))), listed((mine, *self.head.of(alias)))
                yield Condition(f"({rows[0]}) < ({rows[1]})")

    def _sql(self, select: Select, shown: list[str], bound: frozenset[str] = frozenset()) -> str:
        return select.sql(columns=shown, bound=bound, on_index=self.circuit.request_index)
