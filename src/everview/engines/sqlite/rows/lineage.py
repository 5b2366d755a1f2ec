"""Lineage: whether a store's file is the one that last spoke to others, or a copy, or an old state of it.

The file says which file it is (its inode and path), which a copy contradicts. Beside it lies `<file>-shown`:
who was there last, up to which commit, and what of that others were told; a file that was put back is behind
that. Peers have seen what they were told; when the store is closed, whoever copies its file sees the rest.
Beside a store that has told nobody anything lies nothing.
"""

from __future__ import annotations

import enum
import json
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.store import Store

_FORMER = 100
"""So many former incarnations are remembered."""


class Strange(enum.Enum):
    """Why a file is not what it was."""

    COPIED = "the original lives on"
    REWOUND = "it was put back or moved, and is all there is"


class Shown(NamedTuple):
    """What lies beside a store's file: who was last there, at which commit; and who before."""

    incarnation: str
    head: int
    told: int
    """The number after the last commit that peers were told; a file from before that, which calls it `shown`,
    has forgotten tags that they know. 0: nobody was told anything.
    """
    former: list[str]
    stamp: str = ""
    """The file as its store was closed last: whoever puts another in its place changes that."""

    def is_ahead(self, incarnation: str, head: int, told: int) -> bool:
        """Whether a store that says this of itself is of an earlier time."""
        later = self.head > head or self.told > told
        return incarnation in self.former or (incarnation == self.incarnation and later)


class Lineage:
    """The identity of a store's file."""

    def __init__(self, file: str, *, in_memory: bool) -> None:
        self._file = None if in_memory else file
        beside = None if in_memory else self._read()
        self.is_unbroken = beside is not None and bool(beside.stamp) and beside.stamp == self._stamp()
        """Whether it is certain that the file is the one that was closed last."""
        self._shown = ("", 0)
        self._former: list[str] = []

    @property
    def side_file(self) -> Path:
        """Where the last commit that was shown is written."""
        return Path(f"{self._file}-shown")

    @property
    def former(self) -> list[str]:
        """The incarnations that the store had before."""
        beside = None if self._file is None else self._read()
        return list(dict.fromkeys([*self._former, *([] if beside is None else beside.former)]))

    def was(self, incarnation: str) -> None:
        """Note who the store was: that is not beside the file if that was put back, too."""
        self._former.append(incarnation)

    def strange(self, connection: sqlite3.Connection) -> Strange | None:
        """Return why the file is not the one that last spoke, if it is not, or is behind it."""
        if self._file is None:
            return None
        incarnation, head, told, marked = self._said(connection)
        if marked and marked.split()[0] != self._here(self._file).split(maxsplit=1)[0]:
            return Strange.COPIED if _is_there(marked) else Strange.REWOUND
        beside = self._read()
        if beside is not None and beside.is_ahead(incarnation, head, told):
            return Strange.REWOUND
        if told and (beside is None or incarnation not in (beside.incarnation, *beside.former)):
            return Strange.REWOUND  # where nothing was told the file beside it may be another store's
        return None

    def mark(self, connection: sqlite3.Connection) -> None:
        """Take the file for the store's from now on."""
        if self._file is not None:
            connection.execute(f"UPDATE {STORE} SET file = ?1 WHERE file <> ?1", (self._here(self._file),))

    @staticmethod
    def _said(connection: sqlite3.Connection) -> tuple[str, int, int, str]:
        incarnation, head, told, marked = connection.execute(
            f"SELECT incarnation, version, shown, file FROM {STORE}"
        ).fetchone()
        return incarnation, head, told, marked

    @staticmethod
    def _here(file: str) -> str:
        return f"{os.stat(file).st_ino} {file}"  # noqa: PTH116 - as the path was given

    def show(self, store: Store) -> None:
        """Remember, before anything is told, up to which commit others may know this store."""
        if self._file is None:
            return
        incarnation, head, told, _ = self._said(store.writer.connection)
        if (incarnation, head) == self._shown:
            return
        # A process may die between any two of these, and is not to take itself for one that went back: the
        # file says that it has spoken after the other knows who it is, and before that says what was told.
        if not told:
            self._write(Shown(incarnation, head, 0, self._former))
        if told < head + 1:
            with store.writing() as writer:
                writer.execute(f"UPDATE {STORE} SET shown = ?", (head + 1,))
        self._write(Shown(incarnation, head, head + 1, self._former))
        self._shown = incarnation, head

    def told(self, connection: sqlite3.Connection) -> None:
        """Remember with a commit that others may know it, in a store that has spoken."""
        connection.execute(f"UPDATE {STORE} SET shown = version + 1 WHERE shown > 0")

    def note(self, connection: sqlite3.Connection) -> None:
        """Remember, before a store that has spoken is closed, how far it has come, though nobody was told.

        A copy of the file has it, too, and may tell it. Put back to before it, the store would give the
        numbers of those commits to others.
        """
        if self._file is None:
            return
        incarnation, head, told, _ = self._said(connection)
        beside = self._read()
        if beside is not None and beside.is_ahead(incarnation, head, told):
            return  # another process has come further
        if told and (beside is None or beside[:3] != (incarnation, head, told)):
            self._write(Shown(incarnation, head, told, self._former))

    def seal(self) -> None:
        """Remember the file as it is, now that its store is closed."""
        beside = None if self._file is None else self._read()
        if beside is not None:
            self._write(beside, self._stamp())

    def _stamp(self) -> str:
        """What changes with the file, and what nobody can set: the time of its last change."""
        if os.name != "posix" or self._file is None:  # elsewhere that is when it was created
            return ""
        found = os.stat(self._file)  # noqa: PTH116 - as the path was given
        return f"{found.st_dev} {found.st_ino} {found.st_ctime_ns}"

    def _read(self) -> Shown | None:
        try:
            found = json.loads(self.side_file.read_text())
            former = [str(name) for name in found.get("former", ())]
            stamp = str(found.get("stamp", ""))
            return Shown(str(found["incarnation"]), int(found["head"]), int(found["told"]), former, stamp)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _write(self, now: Shown, stamp: str = "") -> None:
        beside = self._read()
        known = [] if beside is None else [*beside.former, beside.incarnation]
        former = [one for one in dict.fromkeys((*now.former, *known)) if one != now.incarnation][-_FORMER:]
        new = Path(f"{self.side_file}.new")
        # Not forced to the disk: that matters only if a power loss and a restored backup come together, and
        # then the first peer that has met the store finds out by its tags.
        stamp = stamp or ("" if beside is None else beside.stamp)
        new.write_text(json.dumps(now._replace(former=former, stamp=stamp)._asdict()))
        new.replace(self.side_file)


def _is_there(marked: str) -> bool:
    """Whether the file that was marked so is still where it was."""
    inode, _, path = marked.partition(" ")
    try:
        return str(os.stat(path).st_ino) == inode  # noqa: PTH116 - as the path was given
    except OSError:
        return False
