"""A site's knowledge in its store: the state, the numbers of sites, the tags of commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.names import MEMBERSHIP, SITES, STORE, TAGS
from everview.engines.sqlite.relations.base import VECTOR
from everview.engines.sqlite.store import Store
from everview.language.relations import Semantics
from everview.replication.groups import Groups
from everview.replication.membership import Membership
from everview.replication.messages import Versions
from everview.replication.noticing import Essence, Extent
from everview.replication.state import State, dump, dump_listed, dump_others, is_crowded, load

SAVE_EVERY_US = 60_000_000
"""How often what is always changing is saved, such as when a peer was last heard of."""


def stored_state(connection: sqlite3.Connection) -> State | None:
    """The state in a store; None if it has never met another."""
    parts = dict(connection.execute(f"SELECT one, state FROM {MEMBERSHIP}").fetchall())
    return load(parts[1], parts.get(2, b""), parts.get(3, b"")) if parts else None


def received_parts(engine: Engine) -> list[str]:
    """The cores and partial aggregates of views that a store receives."""
    return sorted([*engine.received, *engine.partials])


@dataclass(slots=True)
class Knowledge:
    """What is in memory of it; `refresh` before use, `save` in the transaction that changes it."""

    store: Store
    incarnation: str = ""
    name: str = ""
    state: State = field(default_factory=State)
    membership: Membership = field(init=False)
    groups: Groups = field(init=False)
    numbers: dict[str, int] = field(default_factory=dict)
    """Incarnation → its number here; of the site itself not 0 but the other one."""
    _revision: int = -1
    _saved: Essence = field(default_factory=Essence)
    _saved_us: int = 0
    _others: Extent = field(default_factory=Extent)
    """Of whom something was saved, where that is saved apart: who is told of is in the store first."""
    _others_us: int = 0
    """When what they have was last saved there."""

    def __post_init__(self) -> None:
        self._bind()

    def _bind(self) -> None:
        engine, foreign = self.store.engine, self.state.inputs

        def inputs_of(stream: str) -> tuple[str, ...]:
            return engine.inputs_of(stream) or tuple(foreign.get(stream, ()))

        wanted = {name: stream.inputs for name, stream in engine.streams.items()}
        now_us = self.store.environment.now_us
        self.membership = Membership(self.state, self.incarnation, wanted, inputs_of, now_us)
        relations = engine.program.relations
        bags = [name for name, relation in relations.items() if relation.semantics is Semantics.BAG]
        self.groups = Groups(self.membership, inputs_of, engine.exchange.hidden, bags)

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Read the state anew if another process, or a rollback, has left it behind."""
        found = connection.execute(f"SELECT revision FROM {MEMBERSHIP} WHERE one = 1").fetchone()
        revision = -1 if found is None else found[0]
        if revision == self._revision and self.incarnation:
            return
        self.incarnation, self.name = connection.execute(f"SELECT incarnation, site FROM {STORE}").fetchone()
        # Nothing has come yet to a store that has met nobody.
        self.state = stored_state(connection) or State(cores=received_parts(self.store.engine))
        self._revision, self._others = revision, Extent()
        listed = f"SELECT incarnation, number FROM {SITES} WHERE number > 0"
        self.numbers = dict(connection.execute(listed).fetchall())
        self.store.number = self.numbers[self.incarnation]
        self.store.floors, self.store.apart = self.state.floors, self.state.apart
        self.store.clock.past = self.state.moved
        self.state.names[self.incarnation] = self.store.name or self.name
        self._bind()
        self._saved.note(self.state, self.incarnation)
        self._saved_us = self.store.environment.now_us()

    def forget(self) -> None:
        """What is in memory may not be what is in the store."""
        self._revision = -2

    @property
    def changed(self) -> bool:
        """Whether there is something to save; what is always changing waits for a while."""
        return self._is_late() or not self._saved.is_of(self.state, self.incarnation)

    def _is_late(self) -> bool:
        return self.store.environment.now_us() - self._saved_us > SAVE_EVERY_US

    def save(self, connection: sqlite3.Connection) -> None:
        """Write the state, if it changed."""
        if self.changed:
            revision = max(self._revision, 0) + 1
            write = f"INSERT OR REPLACE INTO {MEMBERSHIP} VALUES (?, ?, ?)"
            connection.execute(write, (1, dump(self.state, self.incarnation), revision))
            now = self.store.environment.now_us()
            if not is_crowded(self.state, self.incarnation):
                connection.execute(f"DELETE FROM {MEMBERSHIP} WHERE one > 1")
                self._others = Extent()
            else:
                anew = self._others.note(self.state)
                if anew or now - self._others_us > SAVE_EVERY_US:
                    connection.execute(write, (2, dump_others(self.state, self.incarnation), revision))
                    self._others_us = now
                if anew or not self._saved.lists(self.state):
                    connection.execute(write, (3, dump_listed(self.state), revision))
            self._saved.note(self.state, self.incarnation)
            self._revision, self._saved_us = revision, now

    # Sites.

    def intern(self, connection: sqlite3.Connection, incarnations: Iterable[str]) -> None:
        """Give every site a number."""
        for incarnation in incarnations:
            if incarnation not in self.numbers:
                name = self.state.names.get(incarnation, "")
                number = connection.execute(
                    f"INSERT INTO {SITES} SELECT max(number) + 1, ?, ? FROM {SITES} RETURNING number",
                    (incarnation, name),
                ).fetchone()[0]
                self.numbers[incarnation] = number

    def learn_names(self, incarnations: Sequence[str], names: Sequence[str]) -> None:
        """Take note of what sites are called; who mentions a site may not know, and then says nothing of it.

        Owners are known by their names: a row whose writer has none would be dropped. Nobody gives another
        site, of whom something was heard, a new name.
        """
        known = self.state.names
        if list(map(known.get, incarnations)) != names:  # mostly there is nothing new
            told = [one for one in zip(incarnations, names, strict=True) if one[1]]
            known.update(one for one in told if one[0] not in known or one[0] == incarnations[0])

    def learn_inputs(self, versions: Versions | None) -> None:
        """Take note of what the views of other programs tell of: who holds them counts as much as any."""
        for stream, inputs in () if versions is None else versions.inputs.items():
            if not self.store.engine.inputs_of(stream):
                self.state.inputs[stream] = inputs

    def former(self) -> list[str]:
        """The incarnations that were given up and went by this site's name, the first ones first."""
        names = self.state.names
        return [one for one in self.state.expired if names.get(one) == names[self.incarnation]]

    def incarnations(self) -> dict[int, str]:
        """Number → incarnation."""
        return {0: self.incarnation} | {number: inc for inc, number in self.numbers.items()}

    def vector(self, told: Mapping[str, int]) -> dict[int, int]:
        """A vector by numbers; the site itself stands under both of its own."""
        found = {self.numbers[inc]: commit for inc, commit in told.items() if inc in self.numbers}
        if self.incarnation in told:
            found[0] = told[self.incarnation]
        return found

    def lay_out(self, connection: sqlite3.Connection, told: Mapping[str, int]) -> None:
        """Put a vector where statements compare origins with it."""
        connection.execute(f"DELETE FROM temp.{VECTOR}")
        connection.executemany(f"INSERT INTO temp.{VECTOR} VALUES (?, ?)", self.vector(told).items())

    # Commits.

    def head(self, connection: sqlite3.Connection) -> int:
        """The number of the last commit."""
        return int(connection.execute(f"SELECT version FROM {STORE}").fetchone()[0])

    def tags(self, connection: sqlite3.Connection, versions: Iterable[int] | None = None) -> dict[int, int]:
        """The tags of commits at which batches ended: all, or those of these versions."""
        if versions is None:
            return dict(connection.execute(f"SELECT version, tag FROM {TAGS}"))
        wanted = sorted(set(versions))
        marks = ", ".join("?" * len(wanted))
        return dict(connection.execute(f"SELECT version, tag FROM {TAGS} WHERE version IN ({marks})", wanted))
