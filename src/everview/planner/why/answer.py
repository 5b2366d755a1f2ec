"""The answer to why: minimal sets of base rows, and what is known of each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.algebra import provenance as algebra
from everview.algebra.ids import Id
from everview.language.order import row_order_key
from everview.language.program import Program
from everview.language.shown import shown
from everview.planner.why.proofs import Proof
from everview.tables import html

__all__ = ["Named", "Proof", "Provenance", "Witness", "answer"]


@dataclass(frozen=True, slots=True)
class Witness:
    """A base row: its label in the printed provenance, its id, relation, values by column, and origin.

    Or a row of a published view, whose origin is the view's authority; or, where only what owners' rows come
    to is known, a group of the view, whose origin is an owner that has rows in it.
    """

    label: str
    id: bytes
    relation: str
    values: Mapping[str, Any]
    origin: str


@dataclass(frozen=True, slots=True)
class Named:
    """A base row that an id stands for: those of its values that are known, and who wrote it."""

    id: bytes
    relation: str
    values: Mapping[str, Any]
    origin: str


class Provenance:
    """Why a row is there. `monomials` are the minimal sets of ids; `str()` prints them as t1·t3 + t2."""

    def __init__(
        self, element: algebra.Provenance, witnesses: Sequence[Witness], proof: Proof | None = None
    ) -> None:
        self.proof = proof
        """Of a row of a recursive view: a smallest proof, a tree."""
        self._element = element
        self._witnesses = tuple(witnesses)

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
        order: dict[Id, int] = {witness.id: number for number, witness in enumerate(self._witnesses)}
        products = sorted(sorted(order[id_] for id_ in monomial) for monomial in self._element.monomials)
        labels = [witness.label for witness in self._witnesses]
        return " + ".join("·".join(labels[number] for number in one) or "1" for one in products) or "0"

    def __repr__(self) -> str:
        return f"<Provenance {self}>"

    def _repr_html_(self) -> str:
        if not self:
            return html.heading("0") + html.note("there is no such row")
        cells = [
            (
                witness.label,
                witness.relation,
                ", ".join(f"{name}={shown(value)}" for name, value in witness.values.items()),
                witness.origin,
            )
            for witness in self._witnesses
        ]
        made = html.heading(str(self)) + html.table(("", "relation", "row", "from"), cells)
        if self.proof is None:
            return made
        return made + html.tree(
            (depth, f"{proof.relation}({', '.join(map(shown, proof.row))})")
            for depth, proof in self.proof.walk()
        )


def answer(
    program: Program, element: algebra.Provenance, known: Iterable[Named], proof: Proof | None = None
) -> Provenance:
    """The provenance with its rows labelled t1, t2, … by relation, then in the order of rows."""

    def order(found: Named) -> tuple[Any, ...]:
        columns = [column.name for column in program.schema(found.relation)]
        return found.relation, row_order_key([found.values.get(c) for c in columns]), found.id

    used = sorted((found for found in known if found.id in element.ids), key=order)
    witnesses = [
        Witness(f"t{number}", found.id, found.relation, found.values, found.origin)
        for number, found in enumerate(used, start=1)
    ]
    return Provenance(element, witnesses, proof)
