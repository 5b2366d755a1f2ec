"""Derivations: a clause followed from rows that are given, by lookups of rows that meet them.

A clause is a join of atoms. Whichever rows of it are given (an atom's, an absence's, or the head that it is
to derive), the other atoms are joined one after the other, each found by columns that are known by then:
first the one of which most is known. So a derivation costs what it finds, not what there is.

Columns have numbers in a space of their own while this goes on: those of the atoms, as the clause has them,
then what the rows of the group have besides, then those of the head and of the absences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

from everview.language.expressions import (
    And,
    Call,
    Case,
    Column,
    Expression,
    IsDistinct,
    Literal,
    Not,
    Or,
    columns_of,
    conjunction,
    substitute,
)
from everview.language.plan import Filter, Plan, Project, RecursiveScan, Scan, Schema
from everview.language.recursion import Absence, Clause
from everview.language.types import BIGINT, BOOLEAN, Field
from everview.planner.circuit.parts import BOUND, LEVEL, MET, NUMBER, PLACE, WEIGHT, Derivation, Step
from everview.planner.circuit.weighted import add, compare
from everview.planner.conditions import conjuncts

__all__ = ["Derivations"]

_ONE = Literal(1, BIGINT)


@dataclass(frozen=True)
class _Space:
    """The columns that may be known of a clause."""

    clause: Clause
    head: Schema

    @cached_property
    def levels(self) -> Mapping[int, int]:
        """Of each atom of the group where its level is; its place in the order comes next."""
        places = (i for i, atom in enumerate(self.clause.atoms) if isinstance(atom, RecursiveScan))
        return {place: self.clause.width + 2 * number for number, place in enumerate(places)}

    @cached_property
    def heads(self) -> int:
        """Where the head's columns begin; its level, its place and its number come behind them."""
        return self.clause.width + 2 * len(self.levels)

    @cached_property
    def absences(self) -> Sequence[int]:
        """Where the columns of each absence begin."""
        start, found = self.heads + len(self.head) + 3, []
        for absence in self.clause.absences:
            found.append(start)
            start += len(absence.plan.schema) + 1
        return found

    def atom(self, place: int) -> list[int]:
        """The columns of an atom's rows, and of what they have besides."""
        start = self.clause.offsets[place]
        own = list(range(start, start + len(self.clause.atoms[place].schema)))
        level = self.levels.get(place)
        return [*own, -1] if level is None else [*own, level, level + 1]

    def absence(self, number: int) -> list[int]:
        start = self.absences[number]
        return [*range(start, start + len(self.clause.absences[number].plan.schema)), -1]

    def forbidden(self, number: int) -> Expression:
        """What an absence says, in this space."""
        width, start = self.clause.width, self.absences[number]

        def placed(column: Column) -> Expression:
            return column if column.index < width else replace(column, index=column.index - width + start)

        return substitute(self.clause.absences[number].condition, placed)


@dataclass(slots=True)
class _Path:
    """A derivation that is being made: what is known, and what is still to be asked."""

    space: _Space
    leaves: Callable[[Plan | Absence], int]
    schema: list[Field]
    at: dict[int, int]
    """Where the columns that are known stand."""
    waiting: list[Expression]
    steps: list[Step] = field(default_factory=list)

    def ready(self) -> Expression | None:
        """What can be asked by now, and was not."""
        known = self.at.keys()
        found = [part for part in self.waiting if columns_of(part) <= known]
        self.waiting = [part for part in self.waiting if part not in found]
        return self.placed(conjunction(found)) if found else None

    def placed(self, expression: Expression) -> Expression:
        return substitute(expression, lambda column: replace(column, index=self.at[column.index]))

    def filtered(self, table: str) -> Plan | None:
        condition = self.ready()
        return None if condition is None else Filter(Scan(table, tuple(self.schema)), condition)

    def pairs(self, columns: Sequence[int], conditions: Iterable[Expression]) -> dict[int, _Pair]:
        """Of the columns of a row those that must be equal to what is known, each by its place in the row."""
        known = self.at.keys()
        found = {
            place: _Pair(Column(self.at[column], self.schema[self.at[column]].type), safe=True)
            for place, column in enumerate(columns)
            if column in known
        }
        for part in conditions:
            for one, other, safe in _equalities(part):
                if isinstance(one, Column) and one.index in columns and columns_of(other):
                    place = columns.index(one.index)
                    if place not in found and columns_of(other) <= known:
                        found[place] = _Pair(self.placed(other), safe, part)
        return found

    def joined(self, leaf: int, columns: Sequence[int], fields: Schema) -> None:
        """One more atom."""
        step = self._asked(leaf, columns, self.waiting)
        start = len(self.schema)
        self.schema += fields
        self.at |= {column: start + place for place, column in enumerate(columns) if column >= 0}
        self.steps.append(replace(step, condition=self.filtered(MET)))

    def _asked(self, leaf: int, columns: Sequence[int], conditions: Sequence[Expression]) -> Step:
        pairs = self.pairs(columns, conditions)
        path = tuple(sorted(pairs))
        used = [pairs[place].part for place in path]
        self.waiting = [part for part in self.waiting if part not in used]
        scan = Scan(BOUND, tuple(self.schema))
        names = tuple(f"x{place}" for place in path)
        keys = Project(scan, tuple(pairs[place].key for place in path), names)
        return Step(leaf, keys, path, tuple(pairs[place].safe for place in path))

    def absent(self, number: int) -> Step:
        """That no row of an absence meets what is known; to be asked when all is."""
        space = self.space
        columns = space.absence(number)
        absence = space.clause.absences[number]
        before, parts = dict(self.at), list(conjuncts(space.forbidden(number)))
        for column in columns:
            self.at.pop(column, None)  # where an absence's row was given, others of it count as well
        step = self._asked(self.leaves(absence), columns, parts)
        used = [pair.part for pair in self.pairs(columns, parts).values()]
        schema = [*self.schema, NUMBER, *absence.plan.schema, WEIGHT]
        start = len(self.schema) + 1
        at = self.at | {column: start + place for place, column in enumerate(columns) if column >= 0}
        self.at = before
        left = [part for part in parts if part not in used]
        if not left:
            return step
        condition = substitute(conjunction(left), lambda column: replace(column, index=at[column.index]))
        return replace(step, condition=Filter(Scan(MET, tuple(schema)), condition))


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is known of a column, and the condition that says so."""

    key: Expression
    safe: bool
    part: Expression | None = None


def _equalities(part: Expression) -> Iterator[tuple[Expression, Expression, bool]]:
    match part:
        case Call("=", (one, other)):
            yield one, other, False
            yield other, one, False
        case Not(IsDistinct(one, other)):
            yield one, other, True
            yield other, one, True
        case _:
            pass


@dataclass(frozen=True)
class Derivations:
    """The derivations of one clause of the relation `number`, whose columns are `head`.

    `leaves` gives the number of what an atom or an absence reads, `numbers` those of the group's relations.
    """

    clause: Clause
    number: int
    head: Schema
    leaves: Callable[[Plan | Absence], int]
    numbers: Mapping[str, int]

    @cached_property
    def _space(self) -> _Space:
        return _Space(self.clause, self.head)

    def by_atoms(self) -> Iterator[tuple[int, Derivation]]:
        """From rows of each atom: the leaf that they are of, and the derivation of rows and their levels."""
        for place, atom in enumerate(self.clause.atoms):
            given = self._space.atom(place)
            path = self._begun(self._fields(place), given)
            yield self.leaves(atom), self._made(path, {place})

    def by_absences(self) -> Iterator[tuple[int, Derivation]]:
        """From rows that an absence forbids."""
        for number, absence in enumerate(self.clause.absences):
            path = self._begun((*absence.plan.schema, WEIGHT), self._space.absence(number))
            path.waiting += conjuncts(self._space.forbidden(number))
            yield self.leaves(absence), self._made(path, set())

    def support(self) -> Derivation:
        """From rows of the head: the numbers of those that rows before them derive."""
        path, begin = self._led()
        path.waiting += [self._is_before(place) for place in self._space.levels]
        self._join(path, set())
        number = path.placed(Column(self._space.heads + len(self.head) + 2, BIGINT))
        return self._ended(path, begin, (number,))

    def returns(self) -> Derivation:
        """From rows of the head: those that can be derived, and their levels."""
        path, begin = self._led()
        self._join(path, set())
        start = self._space.heads
        own = [Column(start + place, column.type) for place, column in enumerate(self.head)]
        return self._ended(path, begin, (*map(path.placed, own), path.placed(self._level())))

    def _begun(self, fields: Schema, given: Sequence[int]) -> _Path:
        at = {column: place for place, column in enumerate(given) if column >= 0}
        return _Path(self._space, self.leaves, list(fields), at, list(self.clause.conditions))

    def _led(self) -> tuple[_Path, Plan | None]:
        """The path that begins with rows of the head, their levels, places and numbers."""
        start, width = self._space.heads, len(self.head)
        path = self._begun((*self.head, LEVEL, PLACE, NUMBER), range(start, start + width + 3))
        for place, made in enumerate(self.clause.head):
            if isinstance(made, Column) and made.index not in path.at:
                path.at[made.index] = place
            else:
                own = Column(start + place, made.type)
                path.waiting.append(Not(IsDistinct(made, own)))
        return path, path.filtered(BOUND)

    def _made(self, path: _Path, done: set[int]) -> Derivation:
        begin = path.filtered(BOUND)
        self._join(path, done)
        return self._ended(path, begin, (*map(path.placed, self.clause.head), path.placed(self._level())))

    def _join(self, path: _Path, done: set[int]) -> None:
        """All atoms but those that are done, the one of which most is known first."""
        left = [place for place in range(len(self.clause.atoms)) if place not in done]
        while left:
            place = max(left, key=lambda place: (*self._known(path, place), -place))
            left.remove(place)
            atom = self.clause.atoms[place]
            path.joined(self.leaves(atom), self._space.atom(place), self._fields(place))
        if path.waiting:
            raise AssertionError("a condition reads what no atom has")

    def _known(self, path: _Path, place: int) -> tuple[bool, int, bool]:
        """How much is known of an atom: all of it; of how many columns; and inputs first, of two."""
        width = len(self.clause.atoms[place].schema)
        known = len(path.pairs(self._space.atom(place), path.waiting))
        return bool(known) and known == width, known, place not in self._space.levels

    def _fields(self, place: int) -> Schema:
        schema = self.clause.atoms[place].schema
        return (*schema, LEVEL, PLACE) if place in self._space.levels else (*schema, WEIGHT)

    def _ended(self, path: _Path, begin: Plan | None, made: Sequence[Expression]) -> Derivation:
        absences = tuple(path.absent(number) for number in range(len(self.clause.absences)))
        names = tuple(f"x{place}" for place in range(len(made)))
        shown = Project(Scan(BOUND, tuple(path.schema)), tuple(made), names)
        return Derivation(self.number, begin, tuple(path.steps), absences, shown)

    def _level(self) -> Expression:
        """One above the rows that it is derived from."""
        levels: list[Expression] = [Column(at, BIGINT) for at in self._space.levels.values()]
        return add(reduce(_greater, levels), _ONE) if levels else _ONE

    def _is_before(self, place: int) -> Expression:
        """A row of the group comes before the head: by level, then by relation, then by its place."""
        level, heads = self._space.levels[place], self._space.heads + len(self.head)
        mine, theirs = Column(heads, BIGINT), Column(level, BIGINT)
        atom = self.clause.atoms[place]
        other = self.numbers[atom.name] if isinstance(atom, RecursiveScan) else -1
        if other != self.number:
            return compare(theirs, "<=" if other < self.number else "<", mine)
        places = compare(Column(level + 1, BIGINT), "<", Column(heads + 1, BIGINT))
        return Or((compare(theirs, "<", mine), And((compare(theirs, "=", mine), places))))


def _greater(one: Expression, other: Expression) -> Expression:
    return Case(((Call(">=", (one, other), BOOLEAN), one),), other)
