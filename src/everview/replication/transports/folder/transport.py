"""A folder that sites share: a disk, a stick that is carried about, a mount of an object store.

A visit takes every file of others that is news and fits, and then looks at what a newcomer would learn here.
If that is less than what this site knows, it writes a file with the rest. So every row is written once,
whatever number of sites come by, and what was lost or torn is written again by whoever has it.

A site that has written many small files puts one in their place. That one relies on nothing that somebody
else might put another in the place of: on no other file, or on snapshots where this site has none of its own.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path

from everview.errors import EverviewError, StoreError, SyncError
from everview.replication.cuts.applying import Outcome
from everview.replication.protocol.replica import Replica
from everview.replication.transports.folder.files import Files, Piece
from everview.replication.transports.folder.framed import Frames, TornFileError
from everview.replication.transports.folder.shelves import ALL, MORE, NAME, Filed, Shelves
from everview.replication.transports.folder.summaries import Summary, Vectors, includes, reach
from everview.replication.transports.folder.views import Views
from everview.replication.transports.folder.visits import Visit
from everview.replication.transports.report import OnProgress, SyncReport

__all__ = ["FolderTransport"]

LOOK_SECONDS = 0.5
"""How often a folder is looked at by who waits for news."""

LIGHT = 1 << 16
"""Files that weigh less than this together are worth a new one only if they are many."""

MANY = 16
KEPT = 8
"""So many small files stay beside the one in their place, for sites that are nearly up to date."""

_SELVES = 3
"""How often a visit may begin again, because this store turned out to have gone back in time."""

_TRY_AGAIN = "try again"
_FORBIDDEN = "make it readable and writable for this user, then sync again"
_IN_THE_WAY = "something else is in the place of a folder: remove it, then sync again"
_ADVICE = {
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: _FORBIDDEN,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
}
"""What to do where trying again does not help."""


class FolderTransport:
    """A way to everybody who visits a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.peer = str(folder)
        self._shelves, self._views = Shelves(folder), Views(folder)
        self._me = ""
        self._looked: frozenset[tuple[str, int, int]] = frozenset()

    def sync(self, replica: Replica, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Visit the folder once."""
        visit = Visit(replica, Files(replica), self.folder, on_progress)
        try:
            self._open()
            self._me = replica.incarnation
            self._looked = self._look()
            for _ in range(_SELVES):
                me = replica.incarnation
                found = self._found(visit)
                if replica.incarnation == me and self._take(visit, found) and self._views.take(visit):
                    break
            else:
                raise SyncError(f"{self.peer} knows this store as another again and again", peer=self.peer)
            self._me = me
            visit.doing = "sending"
            self._give(visit, [one for one in found if one.path not in visit.torn])
            self._views.give(visit)
            self._shelves.tidy(me)
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            advice = _ADVICE.get(error.errno or 0, _TRY_AGAIN)
            raise SyncError(
                f"cannot sync with the folder {self.peer}: {what}; what was taken stays, {advice}",
                peer=self.peer,
                retry=advice is _TRY_AGAIN,
            ) from error
        return visit.report

    def _open(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise SyncError(f"{self.peer} is a file; sites share a folder", peer=self.peer)
        if not self.folder.parent.is_dir():
            # A stick that is not in its place must not become a folder on the device's own disk.
            raise SyncError(
                f"there is no folder {self.folder.parent} to sync in; is it mounted?",
                peer=self.peer,
                retry=True,
            )
        self.folder.mkdir(exist_ok=True)

    def _found(self, visit: Visit) -> list[Filed]:
        """Return the files that are there; its own files a site reads through, for nobody else does."""
        found, own = [], {visit.visitor.incarnation, *visit.visitor.former}
        for one in self._shelves.files(visit.files.read, visit.skip):
            if one.writer in own:
                try:
                    self._shelves.verify(one)
                except (TornFileError, OSError):
                    visit.skip(one.path)
                    continue
            found.append(one)
        for one in found:
            visit.visitor.hear_endings(one.summary.message.news)
        if any(visit.files.is_ahead(one.summary) for one in found):
            visit.visitor.go_back()
        else:
            self._views.find(visit)
        return found

    # Taking.

    def _take(self, visit: Visit, found: list[Filed]) -> bool:
        """Take what others have written; False if it turned out that this store went back in time."""
        visitor = visit.visitor
        left = [one for one in found if one.writer != visitor.incarnation]
        while True:
            seen = visit.files.seen()
            ready = [one for one in left if one.summary.is_news(seen) and one.summary.fits(seen)]
            if not ready:
                return True
            for one in sorted(ready, key=lambda one: one.size):  # the others may then tell nothing new
                left.remove(one)
                if one.summary.is_news(visit.files.seen()) and not self._take_one(visit, one):
                    return False

    def _take_one(self, visit: Visit, filed: Filed) -> bool:
        rows = 0
        try:
            self._shelves.verify(filed)
            outcome, rows = visit.files.take(filed.summary, Frames(filed.path))
        except StoreError:  # its own trouble, and none of the file's
            raise
        except EverviewError as error:  # whole, and yet no cut: somebody else's idea of such a file
            visit.skip(filed.path, error)
            return True
        except (TornFileError, OSError):
            visit.skip(filed.path)
            return True
        if outcome is Outcome.REWOUND:
            return False
        if outcome is Outcome.APPLIED:
            visit.add(SyncReport(received_rows=rows, received_bytes=filed.size))
        return True

    # Giving.

    def _give(self, visit: Visit, found: list[Filed]) -> None:
        """Write what a newcomer would not learn here."""
        files, me = visit.files, visit.visitor.incarnation
        learnt = reach(one.summary for one in found)
        if not _has_all(learnt, files.seen()):
            own = [one.summary for one in found if one.writer == me]
            found = [*found, self._write(visit, found, learnt, own)]
        own_files = sorted((one for one in found if one.writer == me), key=lambda one: one.serial)
        ground = next((one for one in reversed(own_files) if one.kind == ALL), None)
        since = [one for one in own_files if ground is None or one.serial > ground.serial]
        heavy = max(LIGHT, ground.size // 2 if ground is not None else 0)
        if len(since) > MANY or sum(one.size for one in since) > heavy:
            snapshots = [one for one in found if one.kind == ALL and one.summary.is_snapshot]
            has_snapshot = any(one.writer == me for one in snapshots)
            base = [] if has_snapshot else [one.summary for one in snapshots]
            ground = self._write(visit, found, reach(base), (), is_all=True)
        self._put_away(visit, ground, own_files)
        self._forget_former(visit, found)

    def _write(
        self,
        visit: Visit,
        found: list[Filed],
        had: Vectors,
        own: list[Summary] | tuple[()],
        *,
        is_all: bool = False,
    ) -> Filed:
        files, me = visit.files, visit.visitor.incarnation
        last = Piece(b"", 0)

        def messages() -> Iterator[bytes]:
            nonlocal last
            for last in files.write(had, own):
                rows = 0 if is_all else last.rows
                visit.add(SyncReport(sent_rows=rows, sent_bytes=len(last.data)))
                yield last.data

        def kind() -> str:
            # What tells some partitions from their beginning does not stand for files about the others.
            has_all = is_all or _has_all(reach([files.read(last.data)]), files.seen())
            return ALL if has_all else MORE

        serial = 1 + max((one.serial for one in found if one.writer == me), default=0)
        return self._shelves.write(me, serial, messages(), kind, files.read)

    def _put_away(self, visit: Visit, ground: Filed | None, own: list[Filed]) -> None:
        """Remove what is torn, and what another file stands for but for the last few small ones."""
        away, kept, weight = [], 0, 0
        for one in reversed(own):
            if ground is None or one.serial >= ground.serial:
                continue
            kept, weight = kept + 1, weight + one.size
            if one.kind == ALL or kept > KEPT or weight > max(LIGHT, ground.size // 4):
                away.append(one.path)
        torn = [path for path in visit.torn if path.parent.name == visit.visitor.incarnation]
        self._shelves.remove([*away, *(path for path in torn if NAME.fullmatch(path.name))])

    def _forget_former(self, visit: Visit, found: list[Filed]) -> None:
        """Remove what this store has written as another, where that is in other files as well."""
        for writer in visit.visitor.former:
            shelf = [one.summary for one in found if one.writer == writer]
            if not shelf or writer == visit.visitor.incarnation:
                continue
            learnt = reach(one.summary for one in found if one.writer != writer)
            if all(len(one.ours) == len(one.spans) and not one.is_news(learnt) for one in shelf):
                self._shelves.clear(writer)

    # Waiting.

    def wait(self, timeout: float) -> bool:
        """Look at the folder until others have left files."""
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0:
            if (found := self._look()) != self._looked:
                self._looked = found
                return True
            time.sleep(min(LOOK_SECONDS, left))
        return False

    def _look(self) -> frozenset[tuple[str, int, int]]:
        return self._shelves.look(self._me) | self._views.look(self._me)

    def close(self) -> None:
        """Nothing is held open between visits."""


def _has_all(learnt: Vectors, seen: Vectors) -> bool:
    return all(place in learnt and includes(learnt[place], vector) for place, vector in seen.items())
