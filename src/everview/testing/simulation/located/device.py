"""A site of a located world: its store and protocol, its node, and the base facts that it must have."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from everview.engines.sqlite.store import Store
from everview.located import CountingNode, LocatedProgram, ProvenanceNode, open_counting, open_node
from everview.located.facts import Fact
from everview.replication.replica import Replica
from everview.site import Site
from everview.testing.simulation.clocks import Clocks
from everview.testing.simulation.device import Device
from everview.testing.simulation.steps import Return


class _Site(Site):
    """A site whose pages are as large as a case says."""

    def __init__(self, store: Store, page_rows: int) -> None:
        super().__init__(store)
        self._replica = Replica(store, self._writing, page_rows=page_rows)
        self.reading, self.writing = self._reading, self._writing


class LocatedDevice(Device):
    """One place. Its process can die at any statement, also while its node reacts or is being opened."""

    site: _Site
    node: ProvenanceNode | CountingNode

    def __init__(
        self,
        name: str,
        folder: Path,
        located: LocatedProgram,
        clocks: Clocks,
        page_rows: int,
        *,
        hosts: Collection[str] | None = None,
    ) -> None:
        self.located = located
        self.base: frozenset[Fact] = frozenset()
        """The base facts that have been written here, and that no backup has undone."""
        self.deaf = False
        """Whether the node is closed."""
        self._kept_base: frozenset[Fact] = frozenset()
        super().__init__(name, folder, located.program, clocks, page_rows, hosts=hosts)

    def open(self, crash: int = 0) -> None:
        """Start the process, and the node in it, which may be the end of both."""
        environment = self._clocks.environment(self.name)
        path, hosts = str(self.path), self._hosts
        store = Store(path, self._program, self.name, environment=environment, hosts=hosts)
        self.site = _Site(store, self._page_rows)
        self.store, self.replica = store, self.site.replica
        self.writing, self.reading = self.site.writing, self.site.reading
        self._handle = store.writer
        self.arm(crash)
        try:
            opened: Any = open_node if self.located.mode == "provenance" else open_counting
            self.node = opened(self.site, self.located)
        finally:
            self.disarm()
        self.deaf = False

    def deafen(self) -> None:
        """Close the node."""
        self.node.close()
        self.deaf = True

    def table(self, relation: str) -> frozenset[Fact]:
        """What a relation of the program shows here."""
        return frozenset((relation, row) for row in self.rows(f"{relation}@{self.name}"))

    def keep(self) -> None:
        """Make a backup."""
        super().keep()
        self._kept_base = self.base

    def put_back(self, how: Return) -> None:
        """Put the backup back and start again."""
        self.base = self._kept_base
        super().put_back(how)
