"""A view that is hosted without its inputs is kept as derivations that name rows.

A derivation exists while all the rows that it names are held, and is shown while all of them are shown.
So a removal is told once, of the row, and every derivation that names the row goes with it.
The example is a natural join of any number of parts; a part is a relation or again a view.

A hollow input `~r` is the relation r without its values. It is replicated like any relation.

A host of a view over views derives it from views that it hosts, hollow or not: then any upstream of a part
feeds it. A host of the whole alone needs an upstream that derives the whole.
Names are dots, and a row never changes: so a derivation stays news of the version at which it came.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spec.replication.relations import Cursor, Relation
from spec.replication.rows import Key
from spec.replication.vectors import Dot

Monomial: TypeAlias = tuple[Dot, ...]
Relations: TypeAlias = Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class Derivation:
    """The join key of a monomial, and the store's version at which it came."""

    key: Key
    version: int


@dataclass(frozen=True, slots=True)
class View:
    """A join of parts on their keys. Derivations name one row of each input, in this order."""

    parts: tuple[str, ...]
    inputs: tuple[str, ...]
    derivations: Mapping[Monomial, Derivation] = field(default_factory=dict)
    cursors: Mapping[str, Cursor] = field(default_factory=dict)

    def shown(self, relations: Relations) -> frozenset[Monomial]:
        """Return the derivations all of whose rows are shown."""
        names = [shown_names(held(relations, name)) for name in self.inputs]
        return frozenset(m for m in self.derivations if all(map(lambda n, s: n in s, m, names)))


Views: TypeAlias = Mapping[str, View]


def held(relations: Relations, name: str) -> Relation:
    """Return the input if it is hosted, otherwise its hollow form."""
    return relations[name] if name in relations else relations["~" + name]


def names(relation: Relation) -> set[Dot]:
    """Return the names that a derivation may use: dots of rows that can be shown."""
    return {dot for dot, row in relation.rows.items() if relation.kind.supports(row)}


def shown_names(relation: Relation) -> set[Dot]:
    """Return the names of the rows that are shown."""
    return {dot for group in relation.groups().values() for dot in relation.kind.winners(group)}


def refreshed(views: Views, relations: Relations, version: int) -> dict[str, View]:
    """Return the views after a commit: new derivations are derived, and those without their rows dropped.

    A site derives what its parts give, whether they are relations or views that others derived.
    """
    done: dict[str, View] = {}
    for title, view in views.items():
        inputs = [names(held(relations, name)) for name in view.inputs]
        found = dict(view.derivations)
        for monomial, key in _products(view, done, relations).items():
            found.setdefault(monomial, Derivation(key, version))
        kept = {m: d for m, d in found.items() if all(map(lambda n, known: n in known, m, inputs))}
        done[title] = replace(view, derivations=kept)
    return done


def _products(view: View, views: Views, relations: Relations) -> dict[Monomial, Key]:
    """Return what the parts of the view give, nothing if one of them is not here."""
    joined: dict[Monomial, Key] = {}
    for place, part in enumerate(view.parts):
        found: dict[Monomial, Key] = {}
        if part in relations:
            relation = relations[part]
            for dot, row in relation.rows.items():
                if relation.kind.supports(row):
                    found[(dot,)] = row.key
        elif part in views:
            found = {monomial: derivation.key for monomial, derivation in views[part].derivations.items()}
        if not place:
            joined = found
        else:
            joined = {a + b: key for a, key in joined.items() for b, other in found.items() if key == other}
    return joined
