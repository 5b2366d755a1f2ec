"""A view that is hosted without its inputs is kept as derivations that name rows.

A derivation exists while all the rows that it names are held, and is shown while all of them are shown.
So a removal is told once, of the row, and every derivation that names the row goes with it.
The example is a natural join of any number of parts; a part is a relation or again a view.

A hollow input `~r` is the relation r without its values. It is replicated like any relation.

A host of a view over views derives it from views that it hosts, hollow or not: then any upstream of a part
feeds it. A host of the whole alone needs an upstream that derives the whole.
Versions must not fall: a transfer goes by them, and would step over a derivation whose latest row goes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spec.replication.relations import Cursor, Relation
from spec.replication.rows import Key, Name
from spec.replication.rules import Rule, holds

Monomial: TypeAlias = tuple[Name, ...]
Relations: TypeAlias = Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class Derivation:
    """The join key of a monomial, and the store's version at which it last became news."""

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


def names(relation: Relation) -> dict[Name, int]:
    """Return each name that a derivation may use, and the version of the latest row that bears it."""
    found: dict[Name, int] = {}
    for dot, row in relation.rows.items():
        if relation.kind.supports(row):
            name = relation.kind.name(dot, row)
            found[name] = max(found.get(name, 0), relation.came[dot])
    return found


def shown_names(relation: Relation) -> set[Name]:
    """Return the names of the rows that are shown."""
    kind = relation.kind
    return {kind.name(dot, group[dot]) for group in relation.groups().values() for dot in kind.winners(group)}


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
        kept: dict[Monomial, Derivation] = {}
        for monomial, derivation in found.items():
            came = [known.get(name) for known, name in zip(inputs, monomial, strict=True)]
            if None not in came:
                kept[monomial] = _risen(derivation, max(at for at in came if at is not None))
        done[title] = replace(view, derivations=kept)
    return done


def _risen(derivation: Derivation, latest: int) -> Derivation:
    """Return the derivation with its version: at least that of its latest row, and never less than before."""
    if not holds(Rule.RISING):
        return replace(derivation, version=latest)
    return replace(derivation, version=max(derivation.version, latest if holds(Rule.RAISED) else 0))


def _products(view: View, views: Views, relations: Relations) -> dict[Monomial, Key]:
    """Return what the parts of the view give, nothing if one of them is not here."""
    joined: dict[Monomial, Key] = {}
    for place, part in enumerate(view.parts):
        found: dict[Monomial, Key] = {}
        if part in relations:
            relation = relations[part]
            for dot, row in relation.rows.items():
                if relation.kind.supports(row):
                    found[(relation.kind.name(dot, row),)] = row.key
        elif part in views:
            found = {monomial: derivation.key for monomial, derivation in views[part].derivations.items()}
        if not place:
            joined = found
        else:
            joined = {a + b: key for a, key in joined.items() for b, other in found.items() if key == other}
    return joined
