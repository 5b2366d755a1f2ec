"""The engine: a program's relations and views in one SQLite database, every view fresh after each write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, united
from everview.engines.sqlite.circuits.compiler import Compiler
from everview.engines.sqlite.circuits.names import internal, quoted
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select
from everview.engines.sqlite.derived.deriving import DerivedCore
from everview.engines.sqlite.derived.received import ReceivedCore
from everview.engines.sqlite.derived.reduced import Reduced
from everview.engines.sqlite.derived.sources import HollowSource
from everview.engines.sqlite.derived.telling import Teller
from everview.engines.sqlite.hosting import held_relations, received_cores
from everview.engines.sqlite.partitions import check_hosted
from everview.engines.sqlite.rows.authorship import Authorship
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.conflicts import conflict_rows, conflicts_view
from everview.engines.sqlite.rows.owned import OwnedRows
from everview.engines.sqlite.rows.published import (
    PartialRows,
    PublishedRows,
    authorships,
    partial_rows,
    published_rows,
)
from everview.engines.sqlite.rows.serving import Offer
from everview.engines.sqlite.scalars.public import public_sql
from everview.language.conflicts import CONFLICTS
from everview.language.partitions import texts_of
from everview.language.plan import Fixpoint, Plan, Scan
from everview.language.program import Program
from everview.planner.exchange import Exchange
from everview.planner.facts import Facts
from everview.planner.published import published_stream
from everview.planner.rules.share import share
from everview.planner.walking import over

OnChange = Callable[[sqlite3.Connection, Changed], None]


@dataclass
class Engine:
    """A compiled program: the tables it needs, how writes go in, and how contents are read."""

    program: Program
    hosts: frozenset[str] | None = None
    """The relations and views that are shown here; None stands for all."""
    name: str = ""
    """What the site is called: it publishes the views whose authority has this name."""
    label: str = ""
    """What the site is called, also where another engine computes what it publishes."""
    circuit: Circuit = field(default_factory=Circuit)
    exchange: Exchange = field(init=False)
    """How each of the hosted views is kept."""
    relations: dict[str, StoredRows] = field(default_factory=dict)
    """The relations that are here, also those that are not shown."""
    received: dict[str, ReceivedCore] = field(default_factory=dict)
    """The cores of views that come from elsewhere."""
    published: dict[str, PublishedRows] = field(default_factory=dict)
    """The views that are published, here or elsewhere, by their streams."""
    partials: dict[str, PartialRows] = field(default_factory=dict)
    """The partial aggregates that come from elsewhere, or are computed here for others, by their streams."""
    authors: dict[str, Authorship] = field(default_factory=dict)
    """What this site writes of published views and partial aggregates, by their streams."""
    nodes: dict[str, Node] = field(default_factory=dict)
    operators: Mapping[Plan, Node] = field(default_factory=dict, init=False)
    """The nodes of the plans of views, and of what these are made of."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """The views, rewritten one by one."""
    shared: dict[str, Plan] = field(default_factory=dict)
    """The views as they are kept: what several compute is a part of its own, kept once."""
    recursive: dict[tuple[tuple[str, ...], tuple[Plan, ...]], dict[str, Scan]] = field(default_factory=dict)
    """The groups of recursive relations, and what reads each of them."""
    recursion_faults: list[str] = field(default_factory=list)
    """What finds rows of them that should not be there, or that are missing."""
    _rows: dict[str, str] = field(default_factory=dict, init=False)
    """Relation or view → the statement that reads it: to write that takes longer than to read a few rows."""

    def __post_init__(self) -> None:
        if self.hosts is None:
            self.hosts = frozenset(self.program.names())
        self.label = self.label or self.name
        self.exchange = Exchange(self.program, self.hosts, self.name)
        self.relations.update(held_relations(self.circuit, self.exchange))
        self.received.update(received_cores(self.circuit, self.exchange))
        self.published.update(published_rows(self.circuit, self.exchange))
        self.partials.update(partial_rows(self.circuit, self.exchange))
        self.nodes.update((name, source.node(self.circuit)) for name, source in self.sources.items())
        known = dict(self.exchange.catalog)
        known.update(self.exchange.core_keys(known))
        self.plans.update((name, kept.plan) for name, kept in self.exchange.views.items())
        self.shared.update(share(self.plans).plans)
        for name, plan in self.shared.items():
            known.setdefault(name, Facts(known).keys(plan))
        compiler = Compiler(self.circuit, self.nodes, Facts(known))
        self.operators = compiler.operators
        for name, plan in self.shared.items():
            plain = isinstance(plan, Scan) and (plan.name in self.received or plan.name in self.published)
            self.nodes[name] = compiler.node(plan) if plain else compiler.kept(plan)
        for group, nodes in compiler.groups():
            scans = {
                name: Scan(f"{internal('recursive')} {len(self.recursive)} {name}", node.schema)
                for name, node in nodes.items()
            }
            self.nodes.update((scans[name].name, node) for name, node in nodes.items())
            self.recursive[group] = scans
        self.recursion_faults += compiler.recursion_faults()
        named = (self.circuit, self.exchange, compiler, self.nodes, self.owned, self.label)
        self.authors.update((author.rows.stream, author) for author in authorships(*named))
        here = (self.relations[name] for name in self.hosted() if name in self.relations)
        self._rows[CONFLICTS] = conflict_rows(here)

    def over_recursions(self, plan: Plan) -> Plan:
        """Return a plan as it was compiled, with recursions read where they are kept."""
        if isinstance(plan, Fixpoint):
            return self.recursive[plan.names, plan.plans][plan.result]
        return over(plan, self.over_recursions)

    @property
    def sources(self) -> dict[str, Any]:
        """The relations, and what comes of views from elsewhere: tables that are not computed from others."""
        return {**self.relations, **self.received, **self.published, **self.partials}

    def hosted(self) -> list[str]:
        """Return the relations and views that are shown here, relations first."""
        return [name for name in self.program.names() if name in self.exchange.hosts]

    @property
    def owned(self) -> dict[str, OwnedRows]:
        """The streams of rows that only their owners write."""
        return {**self.published, **self.partials}

    def own(self) -> list[Any]:
        """Return the views that this site publishes from its own circuits."""
        here = self.exchange.published
        return [published for published in self.published.values() if here[published.view.name]]

    def relation_ddl(self) -> list[str]:
        """Return what creates the tables of the relations, and of what is received of views."""
        return [statement for source in self.sources.values() for statement in source.ddl()]

    @property
    def truth(self) -> set[str]:
        """The tables that are not computed from others."""
        return {table for source in self.sources.values() for table in source.tables}

    def view_ddl(self) -> list[str]:
        """Return what creates the tables that keep views, indexes, and the SQL views that others read."""
        return [
            *self.circuit.ddl,
            *self.circuit.index_ddl(),
            *(self._public(name) for name in self.hosted()),
            conflicts_view(self._rows[CONFLICTS]),
        ]

    def _public(self, name: str) -> str:
        """A plain SQL view under the name that the program gives, with values as people write them."""
        schema = self.program.schema(name)
        selects = self.contents(name)
        shown = [
            [
                f"{public_sql(f.type, sql)} AS {quoted(f.name)}"
                for f, sql in zip(schema, select.columns, strict=True)
            ]
            for select in selects
        ]
        if all(select.weight == "1" for select in selects):
            rows = [select.sql(columns=cells) for select, cells in zip(selects, shown, strict=True)]
            return f"CREATE VIEW {quoted(name)} AS {' UNION ALL '.join(rows)}"
        (select,) = selects
        copies = internal("copies")  # a name that no column of a program has by accident
        inner = select.sql(columns=[*shown[0], f"{select.weight} AS {copies}"])
        names = ", ".join(quoted(f.name) for f in schema)
        return (
            f"CREATE VIEW {quoted(name)} AS WITH RECURSIVE copy ({names}, {copies}) AS ({inner} UNION ALL "
            f"SELECT {names}, {copies} - 1 FROM copy WHERE {copies} > 1) SELECT {names} FROM copy"
        )

    def contents(self, name: str) -> list[Select]:
        """Return the selects that read a relation or view."""
        reader = self.nodes[name].contents
        assert reader is not None
        return reader()

    def rows_sql(self, name: str) -> str:
        """Return the SELECT of a relation's or view's rows, as c0, c1, … and w."""
        if name not in self._rows:
            self._rows[name] = united(self.contents(name), self.nodes[name].schema)
        return self._rows[name]

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Create the temporary tables that a writing connection needs."""
        for statement in (*self.circuit.temporary.values(), *self.circuit.index_ddl(temporary=True)):
            connection.execute(statement)

    def create(self, connection: sqlite3.Connection) -> None:
        """Create all tables and bring the views to what they are over no rows."""
        for statement in self.relation_ddl():
            connection.execute(statement)
        self.create_views(connection)

    def create_views(self, connection: sqlite3.Connection) -> None:
        """Create what keeps the views, and bring them to what they are over the rows that relations have."""
        for statement in self.view_ddl():
            connection.execute(statement)
        filled: set[str] = set()
        for first in self.circuit.initial:
            connection.execute(first.sql)
            if first.fills:
                filled.add(first.fills)
        # All at once: what a step reads of other relations is what they have now, less what is staged.
        own = self.own()
        sources = [source for source in self.sources.values() if source not in own]
        for source in sources:
            if source.stage_all(connection):
                filled |= set(source.deltas if isinstance(source, ReceivedCore) else [source.delta])
        self._clear(connection, self.circuit.run(connection, filled))

    def insert(
        self,
        connection: sqlite3.Connection,
        name: str,
        rows: Sequence[Any],
        commit: Commit,
        on_change: OnChange | None = None,
    ) -> int:
        """Insert stored rows into a relation and bring all views up to date; return how many appeared.

        `on_change` is told which deltas have rows, while they have them.
        """
        relation = self.relations[name]
        if relation.is_partitioned:
            return self._in_partitions(connection, name, rows, commit, on_change, relation.insert)
        count = relation.insert(connection, rows, commit)
        shrinks = relation.replaces
        size = 2 * len(rows) if shrinks else len(rows)
        self.propagate(connection, (relation.delta,), on_change, shrinks=shrinks, rows=size)
        return count

    def delete(
        self,
        connection: sqlite3.Connection,
        name: str,
        rows: Sequence[Any],
        commit: Commit,
        on_change: OnChange | None = None,
    ) -> int:
        """Delete stored rows from a relation and bring all views up to date; return how many disappeared."""
        relation = self.relations[name]
        if relation.is_partitioned:
            return self._in_partitions(connection, name, rows, commit, on_change, relation.delete)
        count = relation.delete(connection, rows, commit)
        self.propagate(connection, (relation.delta,), on_change, shrinks=True, rows=len(rows))
        return count

    def _in_partitions(
        self,
        connection: sqlite3.Connection,
        name: str,
        rows: Sequence[Any],
        commit: Commit,
        on_change: OnChange | None,
        write: Callable[[sqlite3.Connection, Sequence[Any], Commit], int],
    ) -> int:
        """Write rows value by value: each is a partition with dots of its own."""
        relation, count = self.relations[name], 0
        by_value = texts_of(relation.relation, rows)
        commit.ledger.load(connection)
        check_hosted(relation.relation, by_value, commit.ledger.parts.get(name))
        for value, some in by_value.items():
            commit.value = value
            count += write(connection, some, commit)
            self.propagate(connection, (relation.delta,), on_change, shrinks=True)
        commit.value = ""
        return count

    # Other sites

    @cached_property
    def shares(self) -> dict[str, StoredRows]:
        """What is held here under vectors and read from others, by stream."""
        shared = {name: stored for name, stored in self.relations.items() if not stored.relation.local}
        return {**shared, **self.owned, **self.hollow}

    @cached_property
    def hollow(self) -> dict[str, StoredRows]:
        """What is kept here of views' inputs, by stream."""
        return {hollow.stream: hollow for core in self.received.values() for hollow in core.inputs}

    @cached_property
    def joined_elsewhere(self) -> frozenset[str]:
        """The relations here that others join with what is not here: what they make of these comes back."""
        joins = (join for core in self.received.values() for join in core.joins)
        return frozenset(atom.name for join in joins for atom in join.branch.atoms) & self.relations.keys()

    def written_in(self, stream: str) -> str:
        """Return the stream in which a store's own rows are written that another one tells of."""
        hollow: Any = self.hollow.get(stream)
        return stream if hollow is None else str(hollow.reduced.base.name)

    @cached_property
    def derives(self) -> dict[str, Teller]:
        """What can be told of cores' derivations: as they came here, or as they follow from relations."""
        found: dict[str, Teller] = {
            core.name: DerivedCore(self.circuit, core, self.relations) for core in self.exchange.offered()
        }
        return {**found, **self.received}

    @cached_property
    def everything(self) -> frozenset[str]:
        """The streams that a site reads which hosts all of the program."""
        relations = (name for name, relation in self.program.relations.items() if not relation.local)
        views = (published_stream(name) for name, view in self.program.views.items() if view.authority)
        return frozenset((*relations, *views, *self.exchange.all_partials))

    @cached_property
    def tells(self) -> dict[str, Offer]:
        """What can be told to others, by stream."""
        offers = {name: Offer(stored, name) for name, stored in self.shares.items()}
        for core in self.exchange.offered():
            for name in core.inputs:
                reduced = Reduced(core, self.program.relations[name])
                offers.setdefault(reduced.stream, Offer(HollowSource(self.relations[name], reduced), name))
        return offers

    def is_due(self, connection: sqlite3.Connection, site: int, now_us: int) -> bool:
        """Whether rows of which this site is the owner are to be written before others are told."""
        return any(author.is_due(connection, rows, site, now_us) for author, rows in self._followed)

    def publish_due(self, connection: sqlite3.Connection, commit: Commit, now_us: int) -> None:
        """Write them."""
        for author, rows in self._followed:
            author.publish(connection, rows, commit, now_us)

    def publish_changes(self, connection: sqlite3.Connection, commit: Commit) -> None:
        """Write what a commit that ends has changed in what this site publishes."""
        for author in self.authors.values():
            author.flush(connection, commit)

    @cached_property
    def _followed(self) -> list[tuple[Authorship, str]]:
        """What this site writes from views of its own, and the SELECT of these."""
        return [
            (author, united(author.source.contents(), author.source.schema))
            for author in self.authors.values()
            if author.source is not None and author.source.contents is not None
        ]

    def put_owned(
        self,
        connection: sqlite3.Connection,
        stream: str,
        commit: Commit,
        now_us: int,
        on_change: OnChange | None = None,
        *,
        whole: bool,
    ) -> bool:
        """Publish rows with weights that were staged and computed elsewhere; return whether any changed."""
        author, before = self.authors[stream], commit.ledger
        seen = before.partition(connection, stream).seen
        if author.is_own(connection, commit.site):
            author.put(connection, author.staged, commit, whole=whole)
        else:
            author.begin(connection, author.staged, commit, now_us)
        author.void(connection)
        self.propagate(connection, (author.rows.delta,), on_change, shrinks=True)
        return before.partition(connection, stream).seen > seen

    def propagate(
        self,
        connection: sqlite3.Connection,
        changed: tuple[str, ...],
        on_change: OnChange | None,
        *,
        shrinks: bool,
        rows: int | None = None,
    ) -> None:
        """Carry what is in deltas through all views, and empty them; `rows` is the most that one has."""
        filled = self.circuit.run(connection, changed, changed if shrinks else (), rows=rows)
        if on_change is not None:
            on_change(connection, Changed(frozenset(filled)))
        self._clear(connection, filled)

    def _clear(self, connection: sqlite3.Connection, filled: Iterable[str]) -> None:
        for table in filled:
            connection.execute(f"DELETE FROM {table}")
