"""Bundles: a clause of many inputs with some of them joined beforehand.

Rows of one derivation may go from several inputs at once, so every combination of inputs that changed is
looked at, and these double with each input. Where there are too many, inputs that an equality connects become
one: a join that the circuit keeps by change like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from everview.language.expressions import Call, Column, Expression, columns_of, conjunction, substitute
from everview.language.plan import Join, JoinKind, Plan, RecursiveScan
from everview.language.recursion import Absence, Clause

MOST_INPUTS = 5
"""How many inputs a clause may have: 31 combinations."""


def bundled(clause: Clause) -> Clause:
    """Return a clause of the same rows with few inputs; connected ones are joined first."""
    while True:
        places = [i for i, atom in enumerate(clause.atoms) if not isinstance(atom, RecursiveScan)]
        if len(places) <= MOST_INPUTS:
            return clause
        linked = (pair for pair in _links(clause) if pair[0] in places and pair[1] in places)
        clause = _joined(clause, *next(linked, (places[-2], places[-1])))


def _links(clause: Clause) -> Iterator[tuple[int, int]]:
    """The pairs of atoms, the first one first, that an equality of columns connects."""
    for one, other in combinations(range(len(clause.atoms)), 2):
        for condition in clause.conditions:
            match condition:
                case Call("=", (Column() as left, Column() as right)):
                    if {_atom_of(clause, left.index), _atom_of(clause, right.index)} == {one, other}:
                        yield one, other
                case _:
                    pass


def _atom_of(clause: Clause, column: int) -> int:
    return max(place for place, start in enumerate(clause.offsets) if start <= column)


def _joined(clause: Clause, one: int, other: int) -> Clause:
    """The clause with two inputs as one, in the place of the first; what concerns both alone joins them."""
    left, right = clause.atoms[one], clause.atoms[other]
    pair = [
        *range(clause.offsets[one], clause.offsets[one] + len(left.schema)),
        *range(clause.offsets[other], clause.offsets[other] + len(right.schema)),
    ]
    inside = [c for c in clause.conditions if columns_of(c) and columns_of(c) <= set(pair)]
    local = {column: place for place, column in enumerate(pair)}
    bundle = Join(JoinKind.INNER, left, right, conjunction([_moved(c, local) for c in inside]))
    atoms: list[Plan] = [
        *clause.atoms[:one],
        bundle,
        *clause.atoms[one + 1 : other],
        *clause.atoms[other + 1 :],
    ]
    order: list[int] = []
    for place, atom in enumerate(clause.atoms):
        start = clause.offsets[place]
        if place == one:
            order += pair
        elif place != other:
            order += range(start, start + len(atom.schema))
    at = {column: place for place, column in enumerate(order)}
    return Clause(
        tuple(atoms),
        tuple(_moved(c, at) for c in clause.conditions if c not in inside),
        tuple(Absence(absence.plan, _moved(absence.condition, at)) for absence in clause.absences),
        tuple(_moved(e, at) for e in clause.head),
    )


def _moved(expression: Expression, at: dict[int, int]) -> Expression:
    """The expression over columns in other places; those of an absence's plan, behind all, stay."""
    return substitute(expression, lambda c: replace(c, index=at.get(c.index, c.index)))
