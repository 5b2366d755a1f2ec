"""Backlog: what other members are not known to have of what is here, in commits and in rows.

A commit of this site counts for a member if it wrote, or brought, a row of a relation that the member holds,
or holds derivations from, and the member's vector does not cover that row. So a commit that concerns nothing
it holds does not count, nor one that only brought what it has from elsewhere, nor one whose rows have all
been written again since. Where this site only receives a view, and passes it on, it writes nothing: what
counts is how many commits of others it has, and the member is not known to have.

Rows are looked at from the newest on, and only so many. What lies before them is counted by the numbers of
commits, which is as much or more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from everview.engines.sqlite.parts import Brought, Held
from everview.engines.sqlite.streams import wholes_of
from everview.replication.knowledge import Knowledge

LOOKED_AT = 4_096
"""So many rows of a relation are looked at where it is asked often: for metrics, and by the console."""

COUNTED = 100_000
"""So many rows of a relation are counted where somebody asks what waits."""


class Behind(NamedTuple):
    """What a member lacks: commits, rows that wait for it, and whether there are more rows than that."""

    commits: int
    rows: int
    more: bool


class _Whole(NamedTuple):
    """Something that a member holds, and where it is found here."""

    relation: str
    stream: str
    """Where it is here: the relation itself, or the view that is received."""
    is_base: bool
    seen: int
    """The commit of this site up to which the member has it."""
    vector: Mapping[str, int]


class Backlog:
    """What the other members lack, as it is known now; `most` rows of each relation are looked at."""

    def __init__(self, knowledge: Knowledge, connection: sqlite3.Connection, most: int) -> None:
        self._knowledge, self._connection, self._most = knowledge, connection, most
        self._wholes: dict[str, list[_Whole]] = {}
        self._lowest: dict[tuple[str, str], int] = {}
        self._found: dict[tuple[str, str], list[Brought]] = {}

    def add(self, incarnation: str) -> None:
        """Have a member looked at, too: tables are read once for all, from where the last one stands."""
        self._wholes[incarnation] = list(self._held(incarnation))
        for whole in self._wholes[incarnation]:
            place = whole.stream, whole.relation
            self._lowest[place] = min(whole.seen, self._lowest.get(place, whole.seen))

    def of(self, incarnation: str) -> Behind:
        """What a member lacks that was added."""
        commits: set[int] = set()
        below, lowest = 0, 0  # the commits that count by their numbers
        foreign = dict[str, int]()
        rows, more = dict[str, int](), False
        for whole in self._wholes[incarnation]:
            if not whole.is_base and not self._gaps(whole, foreign):
                continue
            grown, cut = self._grown(whole.stream, whole.relation)
            theirs, unseen, oldest = self._knowledge.vector(whole.vector), 0, False
            for version, site, commit, number in grown:
                if version <= whole.seen:
                    break
                oldest = commit > theirs.get(site, 0)
                if oldest:
                    unseen += number
                    if whole.is_base:
                        commits.add(version)
            rows[whole.relation] = max(unseen, rows.get(whole.relation, 0))
            if cut and whole.is_base:
                # Of a commit that was not read to its end what was read counts: it has one writer, or sender.
                least = grown[-1].version - (grown[-1].version not in commits)
                if least > whole.seen:
                    lowest = min(lowest, whole.seen) if below else whole.seen
                    below, more = max(below, least), True
            more |= cut and oldest and not whole.is_base
        own = sum(1 for commit in commits if commit > below) + below - lowest
        return Behind(own + sum(foreign.values()), sum(rows.values()), more)

    def _held(self, incarnation: str) -> Iterator[_Whole]:
        """What a member holds of which something is here."""
        membership, state = self._knowledge.membership, self._knowledge.state
        told = state.known.get(incarnation, {})
        for stream, groups in state.members.get(incarnation, {}).items():
            if not any(held.length % 2 for held in groups.values()):
                continue
            inputs = membership.inputs(stream)
            for whole, relation in zip(wholes_of(stream, inputs), inputs, strict=True):
                vector = told[whole].vector if whole in told else {}
                if membership.is_base(relation):
                    seen = vector.get(self._knowledge.incarnation, 0)
                    yield _Whole(relation, relation, is_base=True, seen=seen, vector=vector)
                elif stream in membership.wanted:
                    yield _Whole(relation, stream, is_base=False, seen=0, vector=vector)

    def _gaps(self, whole: _Whole, found: dict[str, int]) -> bool:
        """Note how far a member is behind each site in a view that is received here; whether it is."""
        mine = self._knowledge.membership.own(f"{whole.stream}>{whole.relation}").vector
        gaps = {site: commit - whole.vector.get(site, 0) for site, commit in mine.items()}
        for site, gap in gaps.items():
            if gap > 0:
                found[site] = max(gap, found.get(site, 0))
        return any(gap > 0 for gap in gaps.values())

    def _grown(self, stream: str, relation: str) -> tuple[list[Brought], bool]:
        """What grew here since the member stands that is farthest behind, and whether not all was read."""
        place = stream, relation
        if place not in self._found:
            part = self._part(stream, relation)
            self._found[place] = part.brought(self._connection, self._lowest[place], self._most)
        found = self._found[place]
        return found, sum(one.rows for one in found) >= self._most

    def _part(self, stream: str, relation: str) -> Held:
        held = self._knowledge.store.engine.streams[stream]
        return held.held[held.inputs.index(relation)]
