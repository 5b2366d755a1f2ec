"""A node in provenance mode: what it knows follows from its base relations and from mail, whatever happens.

So nothing else is kept, and a site that was put back from a backup needs no special care: where others know
more of its facts than it does itself, their causal lengths go on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from everview.algebra.provenance import Provenance
from everview.errors import DataError
from everview.language.values import check_rows
from everview.located.coding import item_of, row_of
from everview.located.facts import Fact, Row
from everview.located.items import Derivation, Length
from everview.located.node import Change, Node, Store
from everview.located.program import LocatedProgram
from everview.located.provenance import MOST_MONOMIALS, ProvenancePlace

__all__ = ["ProvenanceNode"]


class ProvenanceNode(Node):
    """One place of a located program whose heads travel as derivations."""

    def __init__(
        self,
        site: Store,
        program: LocatedProgram,
        place: str,
        hosted: frozenset[str],
        limit: int | None = None,
    ) -> None:
        super().__init__(site, program, place, hosted)
        self._limit = MOST_MONOMIALS if limit is None else limit
        self._core = self._empty()
        self._unsent: dict[str, int] = {}
        self._said: dict[str, set[Row]] = {}
        """Place → the rows that were put into its mail here, and that are told as any other commit's."""
        self._boxes = {to: program.mail(to) for to in program.places if program.mail(to) in hosted}
        self._watches += [site.watch(name, partial(self._on_mail, to)) for to, name in self._boxes.items()]
        self.refresh()

    def why(self, relation: str, row: Mapping[str, Any] | Sequence[Any]) -> Provenance:
        """The minimal sets of base facts, by their ids, that a fact of this place is there for."""
        found = self.program.relations.get(relation)
        if found is None:
            raise DataError(f"{relation} is not in the program", relation=relation)
        (checked,) = check_rows(relation, found.schema, [row])
        self.refresh()
        return Provenance(self._core.monomials((relation, checked)))

    def status(self) -> dict[str, Any]:
        """How much is kept, and for which places there is something that cannot be sent from here."""
        self.refresh()
        return {"place": self.place, **self._core.size(), "unsent": dict(self._unsent)}

    def collect(self) -> int:
        """Forget derivations over base facts that have been gone since this was last called; return how many.

        Should such a fact return, what follows from it is derived anew, and sent again.
        """
        forgotten = 0

        def work() -> None:
            nonlocal forgotten
            stale = self._core.stale()
            for name in self._boxes.values():
                derivations, lengths = _superfluous(self._site.rows(name), stale)
                self._site.delete(name, [*derivations, *lengths])
                forgotten += len(derivations)
            self._core.forget(stale)

        self._react(work)
        return forgotten

    # Inside.

    def _empty(self) -> ProvenancePlace:
        return ProvenancePlace(self.place, self.program.rules, self.program.identify, limit=self._limit)

    def _rebuild(self) -> None:
        self._core, self._unsent, self._said = self._empty(), {}, {}
        base = self._base_facts()
        self._core.hold(base)
        # First what others have been sent, so that it is not sent again.
        for to, name in sorted(self._boxes.items(), key=lambda box: box[0] == self.place):
            self._core.hear(to, map(item_of, self._site.rows(name)))
        for fact in base:
            self._core.write(fact, present=True)
        news = self._core.take()
        news.changes = self._differences(self._core.rows)
        self._send(news.add, news.drop)
        self._show(news.changes)

    def _write_base(self, fact: Fact, *, present: bool) -> None:
        self._core.write(fact, present=present)

    def _on_mail(self, to: str, changes: list[Change]) -> None:
        said = self._said.pop(to, ())
        items = [item_of(row) for row, weight in changes if weight > 0 and row not in said]
        gone = [item_of(row) for row, weight in changes if weight < 0]

        def work() -> None:
            self._core.hear(to, items)
            if any(isinstance(item, Derivation) and self._core.counts_on(to, item) for item in gone):
                # Somebody has forgotten it. If it is live after all, whoever can make it sends it again.
                self._core.take()
                self._rebuild()
            else:
                self._flush()

        if items or gone:
            self._react(work)

    def _flush(self) -> None:
        news = self._core.take()
        self._send(news.add, news.drop)
        self._show(news.changes)

    def _send(self, add: Mapping[str, Sequence[Any]], drop: Mapping[str, Sequence[Any]]) -> None:
        for to, items in add.items():
            if to in self._boxes:
                rows = list(map(row_of, items))
                self._site.insert(self._boxes[to], rows)
                self._said.setdefault(to, set()).update(rows)
            else:
                self._unsent[to] = self._unsent.get(to, 0) + len(items)
        for to, items in drop.items():
            if to in self._boxes:
                self._site.delete(self._boxes[to], map(row_of, items))


def _superfluous(rows: Iterable[Row], stale: frozenset[bytes]) -> tuple[list[Row], list[Row]]:
    """Of a place's mail: the derivations over stale ids, and the lengths of an id but the greatest."""
    derivations: list[Row] = []
    lengths: dict[bytes, list[tuple[int, Row]]] = {}
    for row in rows:
        match item_of(row):
            case Derivation(_, ids) if not stale.isdisjoint(ids):
                derivations.append(row)
            case Length(_, id_, length):
                lengths.setdefault(id_, []).append((length, row))
    return derivations, [row for found in lengths.values() for _, row in sorted(found)[:-1]]
