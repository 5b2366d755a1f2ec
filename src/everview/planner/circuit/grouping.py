"""Aggregates: what a group remembers adds up, or is ranked, or is its values.

- count, sum, avg, bool_and and bool_or add up, so a group keeps sums (see `sums`).
- min and max keep the group's values with how often each is there, ranked: a lookup takes the few that
  decide.
- Sums of DOUBLEs keep digits that add up (see `doubles`).
- Sketches keep how often each of their places is there: so many rows a group as a sketch can tell apart.
- Sums of DECIMALs that are too long to add up keep the values too, and all of a touched group are read.

DISTINCT is an operator of its own below: its values come once and go once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.language.aggregates import AggregateCall, SortKey
from everview.language.expressions import Call, Case, Cast, Expression, Literal
from everview.language.plan import Aggregate, Distinct, Filter, Plan, Project, Scan, UnionAll, Values
from everview.language.types import DOUBLE, TEXT, Field
from everview.planner.circuit.doubles import digits, summed
from everview.planner.circuit.parts import (
    Keeping,
    Kept,
    Lookup,
    Operator,
    changed_scan,
    found_scan,
    rows_scan,
)
from everview.planner.circuit.sums import Sums, adding
from everview.planner.circuit.weighted import (
    ONE,
    ZERO,
    columns,
    compare,
    consolidated,
    difference,
    or_zero,
    project,
    sum_up,
    total,
    weighted,
    zero,
)
from everview.planner.conditions import not_null

if TYPE_CHECKING:
    from everview.planner.circuit.build import Builder

__all__ = ["aggregate"]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A call whose group keeps its values."""

    kept: Kept
    """Keys, value, weight; or keys, unit, number and digits."""
    call: AggregateCall
    """Over the value."""

    @property
    def by_rank(self) -> bool:
        """Whether a few of the values are enough."""
        return self.call.function in ("min", "max")

    @property
    def in_digits(self) -> bool:
        """Whether it is a sum of doubles, kept in digits."""
        return self.call.type == DOUBLE and not self.by_rank

    @property
    def in_places(self) -> bool:
        """Whether it is a sketch."""
        return self.call.function in ("sketch_marks", "sketch_counts")

    @property
    def pick(self) -> str:
        """What chooses the value among those that the group's rows bring."""
        return "min" if self.call.function == "min" else "max"


def aggregate(builder: Builder, name: str, plan: Aggregate) -> Operator:
    """The touched groups' rows, after minus before."""
    width = len(plan.keys)
    flat = _prepared(plan)
    sums: list[Sums | None] = []
    ranked: list[_Ranked | None] = []
    for place, call in enumerate(plan.aggregates):
        own = adding(call.function, flat.schema[width + place].type, call.type)
        sums.append(own)
        ranked.append(_ranked(builder, flat, width, place, call) if own is None else None)
    groups = builder.keep_sums(_added(builder, flat, plan, sums), width, tuple(range(width)))
    rules = _Rules(name, plan, width, groups, sums, ranked)
    steps, before = rules.at("before")
    more, after = rules.at("after")
    # Also a row that brings a call no value touches the group whose row is shown with that call's value, and
    # values may change while all sums stay.
    touched = dict.fromkeys([groups, *(own.kept for own in ranked if own is not None)])
    keys = [_keys(kept, width) for kept in touched]
    lookups = [Lookup(groups, key) for key in (keys if width else [None])]
    for values in ranked:
        if values is not None:
            taken = 1 if values.by_rank else None
            wanted = keys if width or values.by_rank else [None]
            lookups += [Lookup(values.kept, key, taken, last=values.pick == "max") for key in wanted]
    return Operator(
        name,
        plan.schema,
        "Aggregate",
        _keeping(ranked, width),
        tuple(lookups),
        (*steps, *more),
        difference(after, before),
        None if width else weighted(_nothing_yet(plan), 1),
    )


def _keys(kept: Kept, width: int) -> Plan:
    """The keys of the groups in which these rows change."""
    changed = changed_scan(kept)
    return project(changed, columns(changed)[:width])


def _keeping(ranked: Sequence[_Ranked | None], width: int) -> Keeping:
    if all(own is None or own.by_rank or own.in_digits or own.in_places for own in ranked):
        return Keeping.DELTA
    return Keeping.PARTITION if width else Keeping.FULL


def _prepared(plan: Aggregate) -> Plan:
    """The keys, and for each call its argument where its filter holds, else NULL: every call skips NULLs."""
    arguments: list[Expression] = []
    for call in plan.aggregates:
        argument = ONE if call.argument is None else call.argument
        if call.filter is not None:
            argument = Case(((call.filter, argument),), Literal(None, argument.type))
        arguments.append(argument)
    return project(plan.input, (*plan.keys, *arguments))


def _added(builder: Builder, flat: Plan, plan: Aggregate, sums: Sequence[Sums | None]) -> Plan:
    """Keys, the number of rows, and what each call that adds up gets.

    A call with DISTINCT gets it from the values of its group that come and go, by rows of their own.
    """
    width = len(plan.keys)
    change = builder.change(flat)
    every = columns(change)
    parts: list[Expression] = [*every[:width], every[-1]]
    apart: list[tuple[int, Sums, int]] = []
    for place, (call, own) in enumerate(zip(plan.aggregates, sums, strict=True)):
        if own is None:
            continue
        if call.distinct:
            apart.append((place, own, len(parts)))
        given = own.contributions(every[width + place], every[-1])
        parts += [zero(part.type) for part in given] if call.distinct else given
    terms = [project(change, parts)]
    for place, own, start in apart:
        terms.append(_distinct_values(builder, flat, width, place, own, start, parts))
    return UnionAll(tuple(terms)) if len(terms) > 1 else terms[0]


def _distinct_values(
    builder: Builder,
    flat: Plan,
    width: int,
    place: int,
    own: Sums,
    start: int,
    parts: Sequence[Expression],
) -> Plan:
    change = builder.change(builder.flat(Distinct(_given(flat, width, place))))
    *keys, value, weight = columns(change)
    row: list[Expression] = [*keys, *(zero(part.type) for part in parts[width:])]
    row[start : start + own.count] = own.contributions(value, weight)
    return project(change, row)


def _given(flat: Plan, width: int, place: int) -> Plan:
    """The keys and the values of one call."""
    value = columns(flat)[width + place]
    return project(Filter(flat, not_null(value)), (*columns(flat)[:width], value))


def _ranked(builder: Builder, flat: Plan, width: int, place: int, call: AggregateCall) -> _Ranked:
    values = _given(flat, width, place)
    value = columns(values)[-1]
    if call.distinct and call.function not in ("min", "max"):
        values = builder.flat(Distinct(values))
    over = AggregateCall(call.function, value)
    if over.type == DOUBLE and call.function in ("sum", "avg"):
        change = digits(builder.change(values))
        return _Ranked(builder.keep_sums(change, width + 1, range(width)), over)
    order = (SortKey(value),) if call.function in ("min", "max") else ()
    kept = builder.keep(values, columns(values)[:width], order, nulls=False)
    return _Ranked(kept, over)


def _nothing_yet(plan: Aggregate) -> Plan:
    """The row of an aggregate without keys over no rows."""
    cells = tuple(ZERO if call.function == "count" else Literal(None, call.type) for call in plan.aggregates)
    return Values(
        tuple(Field(n, c.type, c.value is None) for n, c in zip(plan.names, cells, strict=True)), (cells,)
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """The plans of one aggregate, before and after."""

    name: str
    plan: Aggregate
    width: int
    groups: Kept
    sums: Sequence[Sums | None]
    ranked: Sequence[_Ranked | None]

    def at(self, moment: str) -> tuple[list[tuple[str, Plan]], Plan]:
        """The steps that the touched groups need, and their rows."""
        found = found_scan(self.groups)
        sums = found if moment == "before" else UnionAll((found, changed_scan(self.groups)))
        nulls = [Literal(None, own.call.type) for own in self.ranked if own is not None]
        parts = [project(sums, (*columns(sums), *nulls))]
        steps: list[tuple[str, Plan]] = []
        zeros = tuple(zero(field.type) for field in self.groups.schema[self.width :])
        place = 0
        for own in self.ranked:
            if own is None:
                continue
            step = f"{self.name}@{moment}{place}"
            values, made = self._values(own, step, moment)
            if made is not None:
                steps.append((step, made))
            here: list[Expression] = list(nulls)
            here[place] = columns(values)[-1]
            parts.append(project(values, (*columns(values)[: self.width], *zeros, *here)))
            place += 1
        return steps, self._finished(parts)

    def _values(self, own: _Ranked, step: str, moment: str) -> tuple[Plan, Plan | None]:
        """Keys and value, one row or several a group, and the step that makes the table behind it."""
        found = found_scan(own.kept)
        table: Scan = found
        made: Plan | None = None
        if moment == "after":
            both = UnionAll((found, changed_scan(own.kept)))
            made = sum_up(both, self.width + 1) if own.in_digits else consolidated(both)
            table = Scan(step, own.kept.schema)
        if own.in_digits:
            return summed(table, self.width, mean=own.call.function == "avg"), made
        if own.by_rank:
            alive = Filter(table, compare(columns(table)[-1], ">", ZERO))
            return project(alive, columns(alive)[:-1]), made
        if own.in_places:
            return self._sketched(own, table), made
        bag = rows_scan(table)
        names = tuple(f"x{i}" for i in range(self.width + 1))
        return Aggregate(bag, columns(bag)[: self.width], (own.call,), names), made

    def _sketched(self, own: _Ranked, table: Scan) -> Plan:
        """Each place with its count as a sketch of its own, and these united: no row is there twice."""
        *keys, place, weight = columns(table)
        alive = Filter(table, compare(weight, ">", ZERO))
        call = own.call
        if call.function == "sketch_counts":
            begun = Call("||", (Cast(place, TEXT), Literal(";", TEXT)), TEXT)
            call = AggregateCall("sketch_counts_sum", Call("||", (begun, Cast(weight, TEXT)), TEXT))
        names = tuple(f"x{i}" for i in range(self.width + 1))
        return Aggregate(alive, tuple(keys), (call,), names)

    def _finished(self, parts: list[Plan]) -> Plan:
        """The groups' rows from their sums and values, which stand in different rows."""
        united = UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]
        every = columns(united)
        behind = len(self.groups.schema)
        picks = [own.pick for own in self.ranked if own is not None]
        calls = [total(column) for column in every[self.width : behind]]
        calls += [AggregateCall(pick, column) for pick, column in zip(picks, every[behind:], strict=True)]
        names = tuple(f"x{i}" for i in range(len(every)))
        summed: Plan = Aggregate(united, every[: self.width], tuple(calls), names)
        got = columns(summed)
        if self.width:
            summed = Filter(summed, compare(got[self.width], ">", ZERO))
        results: list[Expression] = []
        at, picked = self.width + 1, behind
        for own in self.sums:
            if own is None:
                results.append(self._picked(got[picked], len(results)))
                picked += 1
            else:
                results.append(own.result([or_zero(part) for part in got[at : at + own.count]]))
                at += own.count
        return Project(summed, (*got[: self.width], *results), self.plan.names)

    def _picked(self, value: Expression, place: int) -> Expression:
        """A count over no values has no row to bring its 0."""
        return or_zero(value) if self.plan.aggregates[place].function == "count" else value
