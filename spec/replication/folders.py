"""A folder holds snapshots and increments of its writers: one set of files for all readers.

A file is a cut that was chosen against the writer's own vectors at an earlier moment, the mark.
It fits every reader that has seen what the writer had seen then, from whomever.
Files may be lost, read twice, late, or in any order. Derivations go by cursors, and are not among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spec.replication.cuts import Cut, Mode, Part
from spec.replication.relations import START, Relation
from spec.replication.stores import Store
from spec.replication.vectors import Vector


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an increment may begin: the writer's incarnation and version, and its vectors then."""

    incarnation: str
    version: int
    vectors: Mapping[str, Vector]


def mark(store: Store) -> Mark:
    """Return the mark of this moment."""
    return Mark(
        store.incarnation, store.version, {name: relation.vector for name, relation in _whole(store).items()}
    )


def snapshot(store: Store) -> Cut:
    """Return a file with everything, for any reader."""
    parts = {
        name: Part(
            Mode.LIVE,
            {},
            0,
            relation.vector,
            relation.rows,
            live=frozenset(relation.rows),
            digest=relation.digest,
        )
        for name, relation in _whole(store).items()
    }
    return Cut(store.incarnation, START, parts, ended=store.ended)


def increment(store: Store, since: Mark) -> Cut | None:
    """Return a file with what is new since the mark.

    None if the mark is of another self, or the log is too short.
    """
    relations = _whole(store)
    if since.incarnation != store.incarnation or since.vectors.keys() != relations.keys():
        return None
    if any(since.version < relation.floor for relation in relations.values()):
        return None
    parts = {
        name: _since(relation, since.version, since.vectors[name]) for name, relation in relations.items()
    }
    return Cut(store.incarnation, START, parts, ended=store.ended)


def _whole(store: Store) -> dict[str, Relation]:
    return {name: relation for name, relation in store.relations.items() if not name.startswith("~")}


def _since(relation: Relation, version: int, seen: Vector) -> Part:
    gone = frozenset(dot for dot, at in relation.log.items() if at > version)
    return Part(Mode.SINCE, seen, 0, relation.vector, relation.missing(seen), gone, digest=relation.digest)
