"""Why a row is there, as far as a token may know: of rows that it may not read, only that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.algebra.ids import Id
from everview.console.cells import LONGEST, cells_of
from everview.language.program import Program
from everview.planner.why.answer import Proof, Provenance, Witness
from everview.replication.rights.rights import Rights

__all__ = ["told"]

Why = Callable[[str, tuple[Any, ...]], Provenance]

MOST_TUPLES = 400
MOST_MONOMIALS = 60
MOST_STEPS = 400
MOST_LEAVES = 40
"""More could not be drawn so that anybody sees something."""


def told(found: Provenance, program: Program, rights: Rights, why: Why) -> dict[str, Any]:
    """The base rows with their sites, which of them suffice together, and a proof where there is one.

    A proof ends at what the recursion reads; where that is a view, `why` says what its rows stand on.
    """
    tuples = found.tuples()
    order = {witness.id: number for number, witness in enumerate(tuples)}
    monomials = sorted(sorted(order[id_] for id_ in m if id_ in order) for m in found.monomials)
    used = {number for monomial in monomials[:MOST_MONOMIALS] for number in monomial}
    shown = [number for number in sorted(used) if number < MOST_TUPLES]
    kept = set(shown)
    return {
        "there": bool(found),
        "text": str(found) if len(tuples) <= 50 else "",
        "tuples": [_tuple(tuples[number], program, rights) for number in shown],
        "monomials": [
            [tuples[number].label for number in monomial if number in kept]
            for monomial in monomials[:MOST_MONOMIALS]
        ],
        "all_tuples": len(tuples),
        "all_monomials": len(monomials),
        "proof": None if found.proof is None else _proof(found, program, rights, why),
    }


def _tuple(witness: Witness, program: Program, rights: Rights) -> dict[str, Any]:
    if not rights.may_read(witness.relation):
        return {"label": witness.label, "hidden": True}
    columns = [field.name for field in program.schema(witness.relation)]
    values = [witness.values.get(column) for column in columns]
    cells = cells_of(values)
    whole = set(columns) <= set(witness.values) and all(c is None or len(c) <= LONGEST for c in cells)
    relation = program.relations.get(witness.relation)
    return {
        "label": witness.label,
        "id": witness.id.hex(),
        "relation": witness.relation,
        "columns": columns,
        "row": [None if cell is None else cell[:LONGEST] for cell in cells],
        "known": [column in witness.values for column in columns],
        "origin": witness.origin,
        "whole": whole,
        "system": relation is not None and relation.system,
    }


def _proof(found: Provenance, program: Program, rights: Rights, why: Why) -> list[dict[str, Any]]:
    """The steps, each before those that it stands on, with the numbers of these."""
    if found.proof is None:
        return []
    steps: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    views: list[tuple[dict[str, Any], Proof]] = []
    for _, part in found.proof.walk():
        if id(part) not in numbers and len(steps) < MOST_STEPS:
            numbers[id(part)] = len(steps)
            steps.append(_step(part, program, rights))
            if not part.premises and part.relation in program.views and len(views) < MOST_LEAVES:
                views.append((steps[-1], part))
    for _, part in found.proof.walk():
        number = numbers.get(id(part))
        if number is not None:
            below = dict.fromkeys(numbers[id(one)] for one in part.premises if id(one) in numbers)
            steps[number]["premises"] = list(below)
    labels: dict[Id, str] = {witness.id: witness.label for witness in found.tuples()}
    for step, part in views:
        ways = [m for m in why(part.relation, part.row).monomials if m <= labels.keys()]
        step["stands_on"] = sorted(labels[id_] for id_ in min(ways, key=len, default=frozenset()))
    return steps


def _step(proof: Proof, program: Program, rights: Rights) -> dict[str, Any]:
    """A name that is not the program's stands for a part of a view, and may show what a relation has."""
    names = proof.relation.split(", ")
    declared = {*program.relations, *program.views}
    if rights.reads is not None and not all(name in declared and rights.may_read(name) for name in names):
        return {"hidden": True, "leaf": not proof.premises}
    cells = [None if cell is None else cell[:LONGEST] for cell in cells_of(proof.row)]
    return {"relation": proof.relation, "row": cells, "leaf": not proof.premises}
