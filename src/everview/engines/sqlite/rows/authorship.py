"""Authorship: when a store writes the rows of which it is the owner.

What a commit changes in a view is set aside, and written when the commit ends. That begins before others are
first told of it, in an epoch of this incarnation; a store that was copied or put back begins anew.

An owner that meets a greater epoch than its own was once itself another incarnation, or has a namesake. It
begins another one: against a store that was given up at once, as it gave up its own past when it was put
back. Otherwise the same store does so once a minute at most: of two that live neither gives in. What it meets
of its name in lesser epochs it removes.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, Statement, consolidated, live
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.owned import OwnedRows
from everview.engines.sqlite.rows.owner import Owner
from everview.engines.sqlite.rows.staging import stage_columns
from everview.planner.published import view_of

_LOG = logging.getLogger("everview")

CONTEST_US = 60_000_000
"""How long a store leaves a greater epoch alone that is not its own, once it has begun one."""

HOUR_US = 60 * CONTEST_US
"""For so long after it had to begin another it says that it has a namesake."""

_NOBODY = -1
"""The site whose rows follow a view that was just made."""


class _Following(NamedTuple):
    """The site whose rows follow the view here, when its epoch began, and when that was last contested."""

    site: int
    began_us: int
    contested_us: int


@dataclass(frozen=True)
class Authorship:
    """What a store writes of one stream."""

    owner: Owner
    head: str
    """The table of what follows the view; it is made anew with the view."""
    pending: str
    """Temporary: what the commit under way has changed in the view."""
    source: Node | None
    """The view; None where its rows are computed elsewhere, and put here."""

    @property
    def rows(self) -> OwnedRows:
        """The rows of the stream."""
        return self.owner.rows

    def declare(self, circuit: Circuit) -> None:
        """Add what is made anew with the views, and the step that follows the view."""
        counts = ", ".join(f"{name} INTEGER NOT NULL" for name in _Following._fields)
        circuit.ddl += [
            f"CREATE TABLE {self.head} ({counts})",
            f"INSERT INTO {self.head} VALUES ({_NOBODY}, 0, 0)",
            self.owner.index_ddl(),
        ]
        if self.source is None:
            return
        table, branches = self.rows.table.name, self.source.delta()
        marks = f"SELECT 1 FROM {self.head} AS h JOIN {table} AS m ON m.dot >> 40 = h.site"
        going = f"EXISTS ({marks} WHERE m.copies = 0 AND {self.owner.owns('m')})"

        def statements(changed: Changed) -> list[Statement]:
            rows = consolidated(live(branches, changed), self.rows.relation.schema)
            return [Statement(f"INSERT INTO {self.pending} SELECT * FROM ({rows}) WHERE {going}")]

        how = "by change: rows that others are to have"
        circuit.step("publish", how, branches, statements, makes="", table=table)

    # Where it stands.

    def is_own(self, connection: sqlite3.Connection, site: int) -> bool:
        """Whether this store's rows are what is shown, and follow the view."""
        return self._following(connection).site == site and self.owner.epoch(connection, site) is not None

    def is_due(self, connection: sqlite3.Connection, rows: str, site: int, now_us: int) -> bool:
        """Whether something is to be written before others are told; `rows` is the SELECT of the view."""
        if self.owner.is_in(connection, self.rows.held):
            return True
        return self._may_begin(connection, rows, site, now_us)

    def is_contested(self, connection: sqlite3.Connection, site: int, now_us: int) -> bool:
        """Whether another store writes under this name, too, as of late."""
        following = self._following(connection)
        if following.site != site:
            return False
        is_beaten = self.owner.epoch(connection, site) is None and not self.owner.is_of_the_lost(connection)
        return is_beaten or 0 <= now_us - following.contested_us < HOUR_US

    def _may_begin(self, connection: sqlite3.Connection, rows: str, site: int, now_us: int) -> bool:
        if self.is_own(connection, site):
            return False
        following = self._following(connection)
        has_just_begun = following.site == site and 0 <= now_us - following.began_us < CONTEST_US
        if has_just_begun and not self.owner.is_of_the_lost(connection):
            return False
        (some,) = connection.execute(f"SELECT EXISTS ({rows})").fetchone()
        return bool(some) or self.owner.is_in(connection, self.rows.table.name)

    def _following(self, connection: sqlite3.Connection) -> _Following:
        return _Following(*connection.execute(f"SELECT * FROM {self.head}").fetchone())

    # What it writes.

    def publish(self, connection: sqlite3.Connection, rows: str, commit: Commit, now_us: int) -> None:
        """Do what is due: begin, if this may, and remove what there is of this name in lesser epochs."""
        if self._may_begin(connection, rows, commit.site, now_us):
            self.begin(connection, rows, commit, now_us)
        self.owner.remove(connection, self.rows.held, commit)

    def begin(self, connection: sqlite3.Connection, rows: str, commit: Commit, now_us: int) -> None:
        """Publish rows and no others, from now on; in the present epoch only if the view was made anew."""
        site, _, contested_us = self._following(connection)
        is_contest = site == commit.site and not self.owner.is_of_the_lost(connection)
        if site == _NOBODY and self.owner.epoch(connection, commit.site) is not None:
            self.owner.change(connection, rows, commit, whole=True)
        else:
            self.owner.begin(connection, rows, commit)
        if is_contest:
            contested_us = now_us
            _LOG.warning(
                "another site publishes %s as %s, too: of two sites with that name only one may live",
                view_of(self.rows.stream),
                self.owner.name,
            )
        following = _Following(commit.site, now_us, contested_us)
        connection.execute(f"UPDATE {self.head} SET site = ?, began_us = ?, contested_us = ?", following)

    def put(self, connection: sqlite3.Connection, rows: str, commit: Commit, *, whole: bool) -> int:
        """Add rows with weights to those there are, or put them in their place; return how many changed."""
        return self.owner.change(connection, rows, commit, whole=whole)

    def flush(self, connection: sqlite3.Connection, commit: Commit) -> int:
        """Write what the commit has changed in the view, at its end; return how many tuples that are."""
        if self.source is None:
            return 0
        if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM {self.pending})").fetchone()[0]:
            return 0
        count = 0
        if self.is_own(connection, commit.site):
            count = self.put(connection, self.staged, commit, whole=False)
        self.void(connection)
        return count

    # Rows that were computed elsewhere.

    def stage(self, connection: sqlite3.Connection, columns: Sequence[Sequence[Any]]) -> None:
        """Set rows aside, column by column, with their weights as the last column."""
        stage_columns(connection, self.pending, columns)

    @property
    def staged(self) -> str:
        """The SELECT of rows that were set aside, and their weights."""
        return f"SELECT {self.owner.listed('w')} FROM {self.pending}"

    def void(self, connection: sqlite3.Connection) -> None:
        """Forget what was set aside."""
        connection.execute(f"DELETE FROM {self.pending}")
