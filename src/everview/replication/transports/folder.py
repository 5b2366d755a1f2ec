"""A folder that sites share: a disk, a stick that is carried about, a mount of an object store.

Every site has a subfolder named by its incarnation, in which nobody else writes (see `outbox.py`). A visit
reads the others' requests, takes their cuts, and leaves a request and whatever the others do not have. So two
sites that visit in turn, first one, then the other, then the first again, have everything of each other.

Nothing in a folder is trusted to be whole, or there at all. A file that is torn, foreign or half-written is
skipped and counted, and the next request complains of it, so that its writer writes it again. That holds for
whatever else may lie there, too: one bad file must not keep a site from everybody else's.
"""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from everview.errors import EverviewError, StoreError, SyncError
from everview.replication.arriving import Outcome
from everview.replication.report import OnProgress, Progress, SyncReport
from everview.replication.transports.base import Replica
from everview.replication.transports.framed import TEMPORARY, TornFileError, read_frames, verify
from everview.replication.transports.outbox import LAST_SERIAL, REQUEST, Box, CutHeader, Note, plan
from everview.replication.transports.shared_folder import FolderTransport as DotsTransport
from everview.replication.transports.shared_folder import Visitor

__all__ = ["FolderTransport"]

_LOG = logging.getLogger("everview")

INCARNATION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{3,63}", re.ASCII)
LOOK_SECONDS = 0.5
"""How often a folder is looked at by who waits for news."""

MOST_COMPLAINTS = 20
"""So many files of a site does a request complain of; others' turn comes when those were written again."""

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


@dataclass(slots=True)
class _Visit:
    """What one visit has done so far."""

    replica: Replica
    folder: str
    on_progress: OnProgress | None
    doing: str = "receiving"
    report: SyncReport = field(default_factory=SyncReport)
    seen: dict[str, int] = field(default_factory=dict)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    torn: dict[str, list[str]] = field(default_factory=dict)
    unlisted: dict[str, list[str]] = field(default_factory=dict)
    unlisted_before: frozenset[str] = frozenset()
    """Those of whom the last visit asked for a whole cut that lists this site."""
    untaken: bool = False
    """Whether a cut was there that is not for this site, or not yet."""

    def add(self, more: SyncReport) -> None:
        self.report += more
        if self.on_progress is not None:
            self.on_progress(Progress.of(self.folder, self.doing, self.report))

    def skip(self, path: Path, error: Exception | None = None) -> None:
        """Go on without a file. What is no fault of messages is logged."""
        self.add(SyncReport(skipped_files=1))
        if isinstance(error, EverviewError) and not isinstance(error, SyncError):
            _LOG.warning("%s is skipped: %s", path, error)

    def complain(self, of: dict[str, list[str]], path: Path) -> None:
        """Take down a file that its writer should write again."""
        names = of.setdefault(path.parent.name, [])
        if len(names) < MOST_COMPLAINTS:
            names.append(path.name)


class FolderTransport:
    """A way to everybody who visits a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.peer = str(folder)
        self._me = ""
        self._looked: frozenset[tuple[str, int, int]] = frozenset()
        self._dots = DotsTransport(folder)

    def sync(self, replica: Replica, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Visit the folder once."""
        if isinstance(replica, Visitor):
            return self._dots.sync(replica, on_progress=on_progress)
        visit = _Visit(replica, self.peer, on_progress)
        try:
            self._open()
            mine = Box(self.folder, replica.incarnation)
            others = self._others(mine)
            self._me = mine.incarnation
            self._looked = self._look()
            with suppress(TornFileError, OSError):
                last = mine.request()
                if last is not None:
                    there = {box.incarnation for box in others}
                    visit.seen.update((k, v) for k, v in last[0].seen.items() if k in there)
                    visit.refused.update((k, v) for k, v in last[0].refused.items() if k in there)
                    visit.unlisted_before = frozenset(last[0].unlisted)
            notes, cursors = self._read_requests(visit, others)
            for box in others:
                self._take_cuts(visit, box)
            # An applied cut may have shown that this store had been put back: then it has a new name.
            mine = Box(self.folder, replica.incarnation)
            visit.doing = "sending"
            mine.path.mkdir(exist_ok=True)
            mine.tidy()
            self._leave_cut(visit, mine, notes, cursors)
            note = Note(visit.seen, visit.refused, visit.torn, visit.unlisted)
            visit.add(SyncReport(sent_bytes=mine.write_request(note, replica.request())))
            if visit.untaken:
                visit.add(SyncReport(held_up=replica.waiting))
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

    def _others(self, mine: Box) -> list[Box]:
        return [
            Box(self.folder, path.name)
            for path in sorted(self.folder.iterdir())
            if path.name != mine.incarnation and INCARNATION.fullmatch(path.name) and _may_be_box(path)
        ]

    def _read_requests(
        self, visit: _Visit, others: list[Box]
    ) -> tuple[dict[str, Note], dict[str, int | None]]:
        """Take note of who reads here, before anything is written, so that what is written lists them."""
        notes: dict[str, Note] = {}
        cursors: dict[str, int | None] = {}
        for box in others:
            try:
                found = box.request()
                if found is None:
                    continue
                cursors[box.incarnation] = visit.replica.cursor_of(found[1])
            except StoreError:  # its own trouble, and none of the file's
                raise
            except (TornFileError, EverviewError, OSError) as error:
                visit.skip(box.path / REQUEST, error)
                continue
            notes[box.incarnation] = found[0]
        return notes, cursors

    def _take_cuts(self, visit: _Visit, box: Box) -> None:
        try:
            cuts, foreign = box.cuts()
        except FileNotFoundError:  # it has just been removed
            return
        except OSError:
            visit.skip(box.path)
            return
        if foreign:
            visit.add(SyncReport(skipped_files=foreign))
        for cut in cuts:
            cursor = visit.replica.cursor_on(box.incarnation)
            known = cut.serial <= visit.seen.get(box.incarnation, 0)
            begins_anew = cut.since == 0 and box.incarnation in visit.unlisted_before and not known
            if not begins_anew and (cut.head < cursor or (cut.head == cursor and known)):
                continue
            last, then = visit.refused.get(box.incarnation, (0, ""))
            if cut.serial <= last and then == visit.replica.standing:
                visit.untaken = True
                continue
            try:
                _, size = verify(cut.path, CutHeader)
                taken = visit.replica.take(read_frames(cut.path))
                if taken.outcome in (Outcome.LEFT, Outcome.REWOUND):  # and now as a stranger
                    taken = visit.replica.take(read_frames(cut.path))
            except FileNotFoundError:  # its writer has replaced it; the next visit finds the other
                continue
            except StoreError:
                raise
            except EverviewError as error:  # whole, and yet no messages: somebody else's idea of such a file
                visit.skip(cut.path, error)
                continue
            except (TornFileError, OSError):
                visit.complain(visit.torn, cut.path)
                visit.skip(cut.path)
                continue
            visit.add(SyncReport(received_rows=taken.grown, received_bytes=size))
            match taken.outcome:
                case Outcome.APPLIED | Outcome.STALE:
                    visit.seen[box.incarnation] = cut.serial
                case Outcome.UNLISTED:
                    visit.untaken = True
                    visit.complain(visit.unlisted, cut.path)
                case Outcome.REFUSED:
                    visit.untaken = True
                    visit.refused[box.incarnation] = (cut.serial, visit.replica.standing)
                case Outcome.GAP | Outcome.LEFT | Outcome.REWOUND:  # what is missing comes with another visit
                    pass

    def _leave_cut(
        self, visit: _Visit, mine: Box, notes: dict[str, Note], cursors: dict[str, int | None]
    ) -> None:
        me = mine.incarnation
        torn = {name for note in notes.values() for name in note.torn.get(me, [])}
        cuts = []
        for cut in mine.cuts()[0]:
            if cut.torn or cut.path.name in torn:
                with suppress(OSError):
                    cut.path.unlink()
            else:
                cuts.append(cut)
        # Who is listed for more than before needs a cut that says so, or it would wait for ever.
        label = {reader: f"{reader} {visit.replica.listing(reader)}" for reader in notes}
        unlisted = {label[reader]: note.unlisted[me] for reader, note in notes.items() if me in note.unlisted}
        readers = {label[reader]: cursor for reader, cursor in cursors.items()}
        planned = plan(cuts, visit.replica.head, visit.replica.standing, readers, unlisted)
        if planned is None:
            return
        known = [cut.serial for cut in cuts] + [note.last_of(me) for note in notes.values()]

        batch = visit.replica.batch(planned.since)
        first = list(islice(batch, 1))
        # The first writer in a folder founds a group by what it writes: it stands otherwise than before.
        planned = replace(planned, standing=visit.replica.standing)

        def messages() -> Iterator[tuple[bytes, int]]:
            for message in chain(first, batch):
                rows, head = visit.replica.extent(message)
                visit.add(SyncReport(sent_rows=rows, sent_bytes=len(message)))
                yield message, head

        # By the clock, so that serials go on even where all files, and all memory of them, were lost.
        serial = max(int(time.time()), max(known, default=0) + 1)
        written = mine.write_cut(min(serial, LAST_SERIAL), planned, messages())
        for cut in planned.replaces:
            if cut.path != written.path:
                with suppress(OSError):
                    cut.path.unlink()

    # Waiting

    def wait(self, timeout: float) -> bool:
        """Look at the folder until others have left cuts, or a new reader has come."""
        if self._dots.is_used:
            return self._dots.wait(timeout)
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0:
            if (found := self._look()) != self._looked:
                self._looked = found
                return True
            time.sleep(min(LOOK_SECONDS, left))
        return False

    def _look(self) -> frozenset[tuple[str, int, int]]:
        """Return the names, times and sizes of the files of others.

        A request is written at every visit; were its time news, two sites would visit in turn for ever.
        """
        found = set()
        for box in _listed(self.folder):
            if box.name == self._me or not INCARNATION.fullmatch(box.name):
                continue
            for path in _listed(box):
                if path.name.startswith(TEMPORARY):
                    continue
                with suppress(OSError):
                    state = path.stat()
                    when = 0 if path.name == REQUEST else state.st_mtime_ns
                    size = 0 if path.name == REQUEST else state.st_size
                    found.add((f"{box.name}/{path.name}", when, size))
        return frozenset(found)

    def close(self) -> None:
        """Nothing is held open between visits."""


def _may_be_box(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # who reads it will see
        return True


def _listed(folder: Path) -> list[Path]:
    """Return what is in a folder; nothing if it cannot be read, or is none."""
    with suppress(OSError):
        return list(folder.iterdir())
    return []
