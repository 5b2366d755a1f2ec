"""Applying a cut: one commit takes all of it, with cursors and vectors, or nothing of it.

`tests/model/sync.py` and `tests/model/joining.py` are the specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from everview.engines.sqlite.carrying import Carrying
from everview.engines.sqlite.integers import is_same
from everview.engines.sqlite.partials import ENTRIES
from everview.engines.sqlite.parts import Arrival
from everview.engines.sqlite.published import ROWS
from everview.engines.sqlite.relations.staging import Columns
from everview.engines.sqlite.streams import Stream
from everview.errors import WireError
from everview.language.limits import HIGHEST_FLOOR
from everview.language.relations import Semantics
from everview.replication.admitting import admitted, observe
from everview.replication.arriving import Arriving
from everview.replication.catching_up import catch_up, last_delete, passed, value_due
from everview.replication.membership import join
from everview.replication.messages import START, Cursor, Message, Section
from everview.replication.partials import PartialArrivals
from everview.replication.publishing import Arrivals, wanted
from everview.replication.strangers import cancelled_of


@dataclass(slots=True)
class Cut(Arriving):
    """A cut that is being applied."""

    floors: dict[str, int] = field(init=False, default_factory=dict)
    """The floors before it."""

    def apply(self, streams: Mapping[str, bool]) -> int:
        """Join all rows of these streams, then floors, vectors and cursors; return how many rows grew."""
        state = self.knowledge.state
        joining = {name for name in streams if name not in state.joined and self.page.froms[name] == 0}
        evident = [
            name for name in streams if not self.engine.streams[name].is_base and self._is_evident(name)
        ]
        for name in [name for name in joining if not self.engine.streams[name].is_base]:
            self._clear(name)
        returning = {name for name in joining if self._holds_any(self.engine.streams[name])}
        self._raise_floors()
        grown = self._value_due() if returning else 0
        grown += sum(self._lift(name) for name in sorted(returning))
        arrivals = Arrivals(self.engine, self.connection, self.published)
        partials = PartialArrivals(self.knowledge, self.connection, self.partials)
        carrying = Carrying(self.engine, self.connection, self.on_change)
        for message in chain(self.staged, (self.last,)):
            self.knowledge.learn_names(message.sites, message.names)
            self.knowledge.intern(self.connection, message.sites)
            sections = [] if message.page is None else message.page.sections
            for section in sections:
                if section.stream in arrivals.streams:
                    arrivals.add(message, section)
                elif section.stream in partials.streams:
                    partials.add(message, section)
                elif self._is_wanted(section, streams):
                    grown += self._merge(carrying, message, section, joining, returning)
        carrying.carry()
        grown += sum(self._settle(name) for name in sorted(returning))
        grown += arrivals.take(self.on_change)
        grown += partials.take(self.sender, self.page, self.commit.version, self.on_change)
        state.dropped += arrivals.dropped + partials.dropped
        self.commit.grown |= grown > 0
        state.settled = sorted({*evident, *(name for name in state.settled if name not in joining)})
        self._note(streams)
        self._note_published(arrivals)
        self._note_partials(partials)
        return grown

    def _is_wanted(self, section: Section, streams: Mapping[str, bool]) -> bool:
        if section.stream in streams:
            return True
        here = section.stream in self.engine.streams
        if section.stream in self.engine.published:
            here = section.part == ROWS and section.stream in wanted(self.engine, self.connection)
        if section.stream in self.engine.partials:
            here = section.part == ENTRIES
        if here and not self.rights.may_write(section.stream):
            self.knowledge.state.dropped += section.count
        return False

    def _holds_any(self, stream: Stream) -> bool:
        return any(part.read(self.connection, 0, None, 1).rows for part in stream.parts)

    def _merge(
        self,
        carrying: Carrying,
        message: Message,
        section: Section,
        joining: set[str],
        returning: set[str],
    ) -> int:
        stream = self.engine.streams[section.stream]
        if section.part >= len(stream.parts):
            raise WireError(f"{stream.name} has no part {section.part}", where="section")
        columns = admitted(self.knowledge, message, section, stream.parts[section.part])
        covered, joins = False, stream.name in joining
        if (stream.is_base or not joins) and section.part < len(stream.wholes):
            whole = stream.wholes[section.part]
            told = self.knowledge.membership.own(whole).vector
            vector = self.knowledge.vector(told)
            covered = any(seq <= vector.get(site, 0) for site, seq in _origins(columns))
            if covered:
                self.knowledge.lay_out(self.connection, told)
        if joins and stream.is_base:
            self._pass_deletes(columns, stream.name)
        arrival = Arrival(
            columns,
            self.commit.version,
            covered,
            joining=joins,
            returning=stream.name in returning,
            limit=observe(self.knowledge, columns, section.stream, self.sender),
            owners=self._owners(stream) if joins and covered else {},
            floor=self.floors.get(stream.name, 0),
            founded_again=self.knowledge.groups.is_founded_again(stream.name, self.gossip),
        )
        return carrying.merge(stream.name, section.part, arrival)

    def _owners(self, stream: Stream) -> dict[str, tuple[int, int]]:
        """Owner → where in its rows those are dead which were collected here, and the sender still has.

        The site's own die by this commit; of others, after the last commit known here, where the sender has
        less: it would not have them otherwise.
        """
        relation, knowledge = self.engine.program.relations[stream.name], self.knowledge
        if relation.owner is None:
            return {}
        theirs, names = self._theirs(stream.name).vector, knowledge.state.names
        ours = sorted(knowledge.membership.own(stream.name).vector.items())
        found = {
            names.get(incarnation, ""): (knowledge.numbers[incarnation], commit)
            for incarnation, commit in ours
            if incarnation in knowledge.numbers and commit > theirs.get(incarnation, 0)
        }
        return {**found, self.commit.name: (0, 0)}

    def _pass_deletes(self, columns: Columns, name: str) -> None:
        """What all have passed of the deletes that the snapshot holds may be forgotten without asking us."""
        relation, clock = self.engine.program.relations[name], self.knowledge.store.clock
        if relation.semantics is not Semantics.KEYED:
            return
        by_all = passed(self.knowledge, self.tidings, self.sender, name, self.gossip.groups.get(name, []))
        if by_all > clock.limit():
            stamp = last_delete(columns, relation, min(by_all, clock.farthest()))
            if stamp:
                catch_up(self.knowledge, self.commit, stamp, name, self.sender)

    def _raise_floors(self) -> None:
        """Nobody writes below what a sender, or anyone before it, has forgotten, whatever its clock says."""
        state, store = self.knowledge.state, self.knowledge.store
        self.floors = dict(state.floors)
        for name, floor in self.gossip.floors.items():
            relation = self.engine.program.relations.get(name)
            if relation is None or floor <= state.floors.get(name, 0) or not self.rights.may_write(name):
                continue
            if relation.semantics is Semantics.KEYED:
                if floor > store.clock.farthest():
                    continue  # of a clock that is wrong beyond reason; it comes again, and its time may too
                catch_up(self.knowledge, self.commit, floor, name, self.sender)
            elif floor > HIGHEST_FLOOR:
                continue
            state.floors[name] = floor
        self.commit.floors, store.floors, store.apart = state.floors, state.floors, state.apart

    def _value_due(self) -> int:
        """What waits, and by the floors has come, is judged by the snapshot like all that is held."""
        return value_due(self.knowledge.store, self.connection, self.commit.version, self.on_change)

    def _clear(self, name: str) -> None:
        """A view that is received writes nothing: on joining it starts empty, and nothing is lost."""
        self.commit.grown |= self.engine.clear(self.connection, name, self.on_change)
        for whole in self.engine.streams[name].wholes:
            self.knowledge.membership.own(whole).vector.clear()

    def _lift(self, name: str) -> int:
        """What the snapshot by which the site joins does not cover is unseen, and goes above the floor."""
        self.knowledge.lay_out(self.connection, self._theirs(name).vector)
        state, floor = self.knowledge.state, self.commit.floors.get(name, 0)
        wanted = floor + floor % 2
        by = wanted - state.lifted.get(name, 0)  # a site that is not listed yet may take several wholes
        state.lifted[name] = wanted
        if by <= 0:
            return 0
        return self.engine.relations[name].lift(self.connection, self.commit, by)

    def _settle(self, name: str) -> int:
        """The snapshot by which the site joins decides over what it held before."""
        self.knowledge.lay_out(self.connection, self._theirs(name).vector)
        group = self.gossip.groups.get(name, [""])[0]
        from_another = self.knowledge.state.former.get(name, group) != group
        return self.engine.settle(
            self.connection, name, self.commit, self.on_change, from_another=from_another
        )

    def _note_published(self, arrivals: Arrivals) -> None:
        """Of what is published a cursor only tells which files have been read."""
        end = Cursor(self.page.head, self.page.tags.get(self.page.head, 0))
        for stream in arrivals.streams:
            if arrivals.is_up_to_date(stream):
                self._read(stream, end)

    def _note_partials(self, partials: PartialArrivals) -> None:
        """A file that nobody asked for may tell too little: then its writer is asked for everything."""
        end = Cursor(self.page.head, self.page.tags.get(self.page.head, 0))
        for stream in partials.streams:
            if not self.page.cut and partials.lacks(stream):
                self._read(stream, START, anyway=True)
            else:
                self._read(stream, end)

    def _read(self, stream: str, cursor: Cursor, *, anyway: bool = False) -> None:
        """A stream was read up to there; not that a cut of an earlier time takes that back."""
        cursors = self.knowledge.state.cursors
        before = cursors.get(self.sender, {})
        if anyway or cursor.head >= before.get(stream, START).head:
            cursors[self.sender] = {**before, stream: cursor}

    def _note(self, streams: Mapping[str, bool]) -> None:
        """Vectors, membership and cursors: the last part of the commit."""
        state, membership = self.knowledge.state, self.knowledge.membership
        apart = self.knowledge.groups.strangers(joining=True)
        end = Cursor(self.page.head, self.page.tags.get(self.page.head, 0))
        for name, listed in streams.items():
            for whole in self.engine.streams[name].wholes:
                join(membership.own(whole).vector, self._theirs(whole).vector)
            self._read(name, end)
            self.knowledge.groups.note_cancelled(name, cancelled_of(self.told, self.sender, name))
            if name in state.joined:
                self.knowledge.groups.absorb(name, self.gossip)
            else:
                self.knowledge.groups.join(
                    name,
                    self.gossip,
                    self.sender,
                    self.commit.version,
                    self._has(name),
                    listed=listed,
                )
        membership.advance(
            self.commit.version if self.commit.grown else self.commit.version - 1,
            self.knowledge.store.clock.last,
        )
        membership.believe(self.tidings.new_known, self.sender, apart)


def _origins(columns: Columns) -> set[tuple[int, int]]:
    """The sites and commits that rows come from; mostly all of a page are of one."""
    sites, commits = columns[-2:]
    if is_same(sites) and is_same(commits):
        return {(sites.least, commits.least)}
    return set(zip(sites, commits, strict=True))
