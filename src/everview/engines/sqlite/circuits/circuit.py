"""A circuit: the operators that keep a program's views, and the statements that carry a change through.

Every operator that remembers something has a state table in the file and, where somebody reads its
change, a delta in a temporary table. A commit puts the changes of relations into their deltas and runs
the steps in order; a step whose inputs did not change is skipped, and a statement contains only those
branches whose deltas have rows. All states that a step reads are new ones: where the old one matters it
is computed as new less delta.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

from everview.engines.sqlite.circuits.names import BY, TEMP, Names, columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, Source
from everview.engines.sqlite.circuits.statetable import StateTable
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.plan import Schema
from everview.language.types import Field


@dataclass(frozen=True, slots=True)
class Strategy:
    """How sizes that are known when a commit runs choose between statements that give the same result."""

    many: int = 32
    """A delta of so many rows is not paired with another one row by row."""
    anew: float = 1.0
    """An operator is computed anew where its tables have fewer rows than this times those its change visits.

    A join of a relation with itself visits its delta three times, one of three with themselves seven times.
    """


class Changed(NamedTuple):
    """The deltas that have rows, and which of them have many."""

    filled: frozenset[str]
    many: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to run; `fills` names the delta or scratch table that it puts rows into.

    `sweeps` marks one that has something to do only where rows may have gone.
    """

    sql: str
    fills: str | None = None
    sweeps: bool = False


class Procedure(Protocol):
    """Statements whose order and number are known only when they run."""

    def run(self, connection: sqlite3.Connection, *, shrinks: bool) -> Iterable[str]:
        """Run them; return the tables that have rows now. `shrinks` says whether rows may go from inputs."""
        ...


@dataclass(frozen=True, slots=True)
class Anew:
    """How an operator is computed from all rows there are: its change is what differs from before."""

    reads: Callable[[], Iterable[str]]
    """The tables that this reads from end to end."""
    statements: Callable[[], list[Statement]]


@dataclass(slots=True)
class Step:
    """The statements that bring one operator up to date, given which of its inputs changed."""

    title: str
    how: str
    reads: frozenset[str]
    statements: Callable[[Changed], list[Statement | Procedure]]
    makes: str
    """The delta that it fills, where somebody reads it."""
    table: str
    """The state table that it keeps, if it has one."""
    grows: bool
    """Whether its delta has only insertions when those of its inputs have."""
    needs: tuple[frozenset[str], ...]
    """What each of the branches needs."""
    subtracting: tuple[frozenset[str], ...]
    """The same of those that take away what others have too much."""
    also: frozenset[str] = frozenset()
    """Further deltas that it fills and tables that it keeps."""
    anew: Anew | None = None
    _known: dict[object, tuple[list[Statement | Procedure], bool]] = field(default_factory=dict)

    def forget(self) -> None:
        """Make the statements anew when they are next needed."""
        self._known.clear()

    def for_changes(
        self, filled: frozenset[str], many: frozenset[str]
    ) -> tuple[list[Statement | Procedure], bool]:
        """Return the statements for these changes, and whether they take something away by themselves.

        They are made once for each combination.
        """
        key = (filled, many) if many else filled
        if key not in self._known:
            subtracts = any(needs <= filled for needs in self.subtracting)
            self._known[key] = self.statements(Changed(filled, many)), subtracts
        return self._known[key]

    def visits(self, sizes: Mapping[str, int]) -> int:
        """Return how many rows of deltas the branches visit, given those that are not empty."""
        return sum(min(sizes[delta] for delta in needs) for needs in self.needs if needs <= sizes.keys())


@dataclass(slots=True)
class Circuit:
    """Tables, indexes and steps; the last thing that is built from a program."""

    names: Names = field(default_factory=Names)
    states: set[str] = field(default_factory=set)
    ddl: list[str] = field(default_factory=list)
    temporary: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    initial: list[Statement] = field(default_factory=list)
    demanded: set[str] = field(default_factory=set)
    strategy: Strategy = field(default_factory=Strategy)
    _indexes: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    _rows_by: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def scratch(self, name: str, schema: Sequence[Field], extras: Iterable[str] = ("w",)) -> str:
        """Declare a temporary table of rows and further columns; return its name.

        Its columns have the types of stored ones. Otherwise SQLite would convert one of two columns that it
        compares, and then no index on that serves.
        """
        name = internal(name)
        table = f"{TEMP}{name}"
        types = (column_type(field.type) for field in schema)
        cells = (f"{column} {type_}" for column, type_ in zip(columns(len(schema)), types, strict=True))
        self.temporary[table] = f"CREATE TEMP TABLE {name} ({', '.join([*cells, *extras])})"
        return table

    def declare(self, table: StateTable) -> None:
        """Add the table in which an operator keeps its state."""
        self.ddl.extend(table.ddl())
        self.states.add(table.name)

    def demand(self, change: str) -> None:
        """Note that somebody reads this delta; one that nobody reads is not made."""
        if change not in self.demanded:
            self.demanded.add(change)
            for step in self.steps:
                step.forget()

    def start(self, sql: str, fills: str) -> None:
        """Add a change that happens once, when the store is created."""
        self.initial.append(Statement(sql, fills))

    def request_index(self, source: Source, by: tuple[str, ...]) -> None:
        """Ask for an index on a table by these columns, over the rows that its readers see."""
        self._indexes[source.table, by] = source.partial

    def rows_by(self, table: str, key: tuple[str, ...]) -> None:
        """Note that a table finds its rows by this key, so that it needs no index that begins like it."""
        self._rows_by[table] = key

    def step(
        self,
        title: str,
        how: str,
        branches: Iterable[Select],
        statements: Callable[[Changed], list[Statement]] | Callable[[Changed], list[Statement | Procedure]],
        *,
        makes: str,
        table: str = "",
        grows: bool = False,
        also: Iterable[str] = (),
        anew: Anew | None = None,
    ) -> None:
        """Add a step that runs when one of the branches may have rows; `how` tells people what it does.

        `grows` promises that where no row goes from the inputs none goes from the output.
        """
        listed = list(branches)
        for branch in listed:
            branch.sql(on_index=self.request_index)
        needs = tuple(branch.needs for branch in listed)
        reads = frozenset[str]().union(*needs)
        subtracting = tuple(branch.needs for branch in listed if "-" in branch.weight)
        made = cast("Callable[[Changed], list[Statement | Procedure]]", statements)
        self.steps.append(
            Step(title, how, reads, made, makes, table, grows, needs, subtracting, frozenset(also), anew)
        )

    def steps_behind(self, tables: Iterable[str]) -> list[Step]:
        """Return the steps that the contents of these state tables depend on, in order."""
        wanted = set(tables)
        found = []
        for step in reversed(self.steps):
            if step.table in wanted or step.makes in wanted or not step.also.isdisjoint(wanted):
                found.append(step)
                wanted |= step.reads
        return found[::-1]

    def index_ddl(self, *, temporary: bool = False) -> list[str]:
        """Return what creates the indexes that were asked for, those that another one covers left out.

        They are on the tables of the file, or on temporary ones.
        """
        made = []
        wanted = {
            (table, by): partial
            for (table, by), partial in self._indexes.items()
            if (table in self.temporary) is temporary and not self._has_index(table, by)
        }
        for (table, by), partial in sorted(wanted.items()):
            longer = (other for t, other in wanted if t == table and other != by)
            if any(other[: len(by)] == by for other in longer):
                continue
            where = f" WHERE {partial}" if partial else ""
            name = f"{table}{BY}{'_'.join(by).replace(' ', '_')}"
            made.append(f"CREATE INDEX {name} ON {table.removeprefix(TEMP)} ({', '.join(by)}){where}")
        return made

    def _has_index(self, table: str, by: tuple[str, ...]) -> bool:
        return set(by) == set(self._rows_by.get(table, ())[: len(by)])

    def run(
        self,
        connection: sqlite3.Connection,
        changed: Iterable[str],
        shrunk: Iterable[str] = (),
        *,
        rows: int | None = None,
    ) -> set[str]:
        """Carry the changes in the given deltas through all steps; return all tables that have rows now.

        `shrunk` are those of the deltas in which rows may go. Where none goes nothing has to be swept, and
        most commits only insert. `rows` says how many rows a delta has at most, where that is known.
        """
        filled = set(changed)
        less = set(shrunk)
        sizes: dict[str, int] = {}
        """The deltas of many rows, and how many that are."""
        if rows is None or rows >= self.strategy.many:
            self._measure(connection, filled, sizes)
        for step in self.steps:
            live = step.reads & filled
            if not live:
                continue
            many = live.intersection(sizes) if sizes else _NONE
            statements, subtracts = step.for_changes(live, many)
            if many and step.anew is not None and self._pays(connection, step, step.anew, live, sizes):
                statements = list(step.anew.statements())
            shrinks = subtracts or not less.isdisjoint(live)
            for statement in statements:
                if not isinstance(statement, Statement):
                    made = set(statement.run(connection, shrinks=shrinks))
                    self._measure(connection, made, sizes)
                    filled |= made
                    continue
                if statement.sweeps and not shrinks:
                    continue
                count = connection.execute(statement.sql).rowcount
                if statement.fills is not None and count > 0:
                    filled.add(statement.fills)
                    if count >= self.strategy.many:
                        sizes[statement.fills] = sizes.get(statement.fills, 0) + count
            if shrinks or not step.grows:
                less |= {step.makes, *step.also}
        return filled

    def _measure(self, connection: sqlite3.Connection, deltas: Iterable[str], sizes: dict[str, int]) -> None:
        """Note those of the deltas that have many rows."""
        for delta in deltas:
            count = _count(connection, delta, None)
            if count >= self.strategy.many:
                sizes[delta] = count

    def _pays(
        self,
        connection: sqlite3.Connection,
        step: Step,
        anew: Anew,
        live: frozenset[str],
        sizes: Mapping[str, int],
    ) -> bool:
        """Whether a step is done sooner anew than by change; to find out takes no longer than either."""
        room = self.strategy.anew * step.visits({delta: sizes.get(delta, 1) for delta in live})
        for table in anew.reads():
            room -= _count(connection, table, None if room == math.inf else max(int(room), 0) + 1)
        return room > 0


_NONE: frozenset[str] = frozenset()


def _count(connection: sqlite3.Connection, table: str, limit: int | None) -> int:
    """Return how many rows a table has, at most up to a limit."""
    rows = table if limit is None else f"(SELECT 1 FROM {table} LIMIT {limit})"
    return int(connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])


def live(branches: Iterable[Select], changed: Changed) -> list[Select]:
    """Return the branches that may have rows."""
    return [branch.knowing(changed.many) for branch in branches if branch.needs <= changed.filled]


def named(select: Select, schema: Schema) -> str:
    """Return the rows of a select under the columns' own names, and their weight as w."""
    shown = [f"{sql} AS {name}" for sql, name in zip(select.columns, columns(len(schema)), strict=True)]
    return select.sql(columns=[*shown, f"{select.weight} AS w"])


def united(selects: list[Select], schema: Schema) -> str:
    """Return the rows of all selects under the columns' own names, and their weights as w."""
    first, *others = selects
    return " UNION ALL ".join([named(first, schema), *(other.sql() for other in others)])


BRANCHES = 50
"""How many branches rows may come from to be computed anew; SQLite takes 500 in one statement."""


def from_contents(
    source: Node, kept: Callable[[], list[str]], statements: Callable[[list[Select]], list[Statement]]
) -> Anew | None:
    """Return how an operator is computed from the rows that its source has, if they can be read.

    `kept` are the tables of its own that are read, too.
    """
    contents = source.contents
    if contents is None or len(contents()) > BRANCHES:
        return None
    tables = dict.fromkeys(table.table for select in contents() for table in select.sources)
    return Anew(lambda: [*tables, *kept()], lambda: statements(contents()))


def consolidated(branches: list[Select], schema: Schema) -> str:
    """Return each row of the branches once, with its weights summed, those that cancel left out."""
    if len(branches) == 1:
        (branch,) = branches
        shown = [f"{sql} AS {name}" for sql, name in zip(branch.columns, columns(len(schema)), strict=True)]
        total = f"sum({branch.weight})"
        group = ", ".join(str(position + 1) for position in range(len(schema)))
        return branch.sql(columns=[*shown, f"{total} AS w"], tail=f"GROUP BY {group} HAVING {total} <> 0")
    listed = ", ".join(columns(len(schema)))
    rows = united(branches, schema)
    return f"SELECT {listed}, sum(w) AS w FROM ({rows}) GROUP BY {listed} HAVING sum(w) <> 0"
