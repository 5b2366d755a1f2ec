"""Lineage: whether a store's file is the one that last spoke to others, or a copy, or an old state of it.

The file says which file it is (its inode and path), which a copy contradicts. Beside it lies `<file>-shown`,
with the last commit that anybody may have seen, and how often what the store knows of others was written by
then: a file that was put back from a backup is behind that. The second matters where it has no fewer commits
than it had, but has forgotten a group that it joined. Peers have seen what they were told; when the store is
closed, whoever copies its file sees the rest. Beside a store that has told nobody anything lies nothing.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from everview.engines.sqlite.names import MEMBERSHIP, STORE
from everview.engines.sqlite.store import Store

_FORMER = 100
"""So many former incarnations are remembered."""

_REVISION = f"coalesce((SELECT revision FROM {MEMBERSHIP} WHERE one = 1), 0)"


class Shown(NamedTuple):
    """What lies beside a store's file: who was last there, at which commit and revision; and who before."""

    incarnation: str
    head: int
    revision: int
    former: list[str]
    told: int = 0
    """The number after the last commit that peers were told; a file from before that, which calls it `shown`,
    has forgotten tags that they know. 0: nobody was told anything.
    """

    def is_ahead(self, incarnation: str, head: int, revision: int, told: int) -> bool:
        """Whether a store that says this of itself is of an earlier time."""
        later = self.head > head or self.revision > revision or self.told > told
        return incarnation in self.former or (incarnation == self.incarnation and later)


class Lineage:
    """The identity of a store's file."""

    def __init__(self, file: str, *, in_memory: bool) -> None:
        self._file = None if in_memory else file
        self._shown = ("", 0, 0)

    @property
    def side_file(self) -> Path:
        """Where the last commit that was shown is written."""
        return Path(f"{self._file}-shown")

    def look(self, connection: sqlite3.Connection) -> str | None:
        """Return what `strange` says, and take the file for the store's from now on."""
        strange = self.strange(connection)
        if self._file is not None:
            connection.execute(f"UPDATE {STORE} SET file = ?1 WHERE file <> ?1", (self._here(self._file),))
        return strange

    def strange(self, connection: sqlite3.Connection) -> str | None:
        """Return "copied" or "rewound" if the file is not the one that last spoke, or is behind it.

        Of a copy the original lives on; a file that was moved here, or put back, is all there is.
        """
        if self._file is None:
            return None
        incarnation, head, revision, shown, marked = connection.execute(
            f"SELECT incarnation, version, {_REVISION}, shown, file FROM {STORE}"
        ).fetchone()
        here = self._here(self._file)
        strange: str | None = None
        if marked and marked.split()[0] != here.split(maxsplit=1)[0]:
            strange = "copied" if _is_there(marked) else "rewound"
        else:
            beside = self._read()
            spoke = beside is not None and incarnation in (beside.incarnation, *beside.former)
            behind = beside is not None and beside.is_ahead(incarnation, head, revision, shown)
            if behind or (shown and not spoke):
                strange = "rewound"  # where nothing was shown the file beside it may be another store's
        return strange

    @property
    def former(self) -> list[str]:
        """The incarnations that the store had before."""
        beside = None if self._file is None else self._read()
        return [] if beside is None else beside.former

    @staticmethod
    def _here(file: str) -> str:
        return f"{os.stat(file).st_ino} {file}"  # noqa: PTH116 - as the path was given

    def show(self, store: Store, incarnation: str, former: Callable[[], Iterable[str]]) -> None:
        """Remember, before anything is told, up to which commit others may know this store.

        And who it was before: that is not beside the file where all of it was put back, and a peer found out.
        """
        if self._file is None:
            return
        connection = store.writer.connection
        head, revision, shown = connection.execute(
            f"SELECT version, {_REVISION}, shown FROM {STORE}"
        ).fetchone()
        if (incarnation, head, revision) == self._shown:
            return
        # A process may die between any two of these, and is not to take itself for one that went back: the
        # file says that it has spoken after the other knows who it is, and before that says what was told.
        if not shown:
            self._write(incarnation, head, revision, former(), told=0)
        told = head + 1
        if shown < told:
            with store.writing() as writer:
                writer.execute(f"UPDATE {STORE} SET shown = ?", (told,))
        self._write(incarnation, head, revision, former(), told=told)
        self._shown = incarnation, head, revision

    def note(self, connection: sqlite3.Connection, former: Callable[[], Iterable[str]]) -> None:
        """Remember, before a store that has spoken is closed, how far it has come, though nobody was told.

        A copy of the file has it, too, and may tell it. Put back to before it, the store would give the
        numbers of those commits to others.
        """
        if self._file is None:
            return
        incarnation, head, revision, shown = connection.execute(
            f"SELECT incarnation, version, {_REVISION}, shown FROM {STORE}"
        ).fetchone()
        beside = self._read()
        if beside is not None and beside.is_ahead(incarnation, head, revision, shown):
            return  # another process has come further
        if shown and (beside is None or beside[:3] != (incarnation, head, revision)):
            self._write(incarnation, head, revision, former(), told=shown)

    def _read(self) -> Shown | None:
        try:
            found = json.loads(self.side_file.read_text())
            former = [str(name) for name in found.get("former", ())]
            revision, told = int(found.get("revision", 0)), int(found.get("told", 0))
            return Shown(str(found["incarnation"]), int(found["head"]), revision, former, told)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _write(self, incarnation: str, head: int, revision: int, before: Iterable[str], *, told: int) -> None:
        beside = self._read()
        known = [] if beside is None else [*beside.former, beside.incarnation]
        former = [one for one in dict.fromkeys((*before, *known)) if one != incarnation][-_FORMER:]
        new = Path(f"{self.side_file}.new")
        # Not forced to the disk: that matters only if a power loss and a restored backup come together, and
        # then the first peer that has met the store finds out by its tags.
        now = Shown(incarnation, head, revision, former, told)
        new.write_text(json.dumps(now._asdict()))
        new.replace(self.side_file)


def _is_there(marked: str) -> bool:
    """Whether the file that was marked so is still where it was."""
    inode, _, path = marked.partition(" ")
    try:
        return str(os.stat(path).st_ino) == inode  # noqa: PTH116 - as the path was given
    except OSError:
        return False
