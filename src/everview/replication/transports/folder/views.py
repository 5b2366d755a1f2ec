"""Views that sites host without their inputs, in a folder: a subfolder for each core that somebody wants.

::

    <folder>/view-<core>/<incarnation>/<serial>.all     all that its writer can tell of the core
    <folder>/view-<core>/<incarnation>/<serial>.more    what has changed since its file before

Whoever hosts a view without its inputs makes the subfolder; who comes later and can tell of the core writes
there, unless others have. A name that is no core of the visitor's own program is not looked into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from everview.errors import EverviewError, StoreError
from everview.replication.cuts.applying import Outcome
from everview.replication.transports.folder.files import Files, Piece
from everview.replication.transports.folder.framed import Frames, TornFileError
from everview.replication.transports.folder.shelves import ALL, MORE, NAME, Filed, Shelves, listed
from everview.replication.transports.folder.summaries import Vectors, includes, join
from everview.replication.transports.folder.visits import Visit
from everview.replication.transports.report import SyncReport
from everview.replication.wire.messages import Place

__all__ = ["Views"]

PREFIX = "view-"

LIGHT = 1 << 16
MANY = 16
"""So many files that follow a whole one, or so many bytes, are worth a new whole one."""


class Views:
    """The subfolders of cores."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shelves: dict[str, Shelves] = {}

    def _cores(self, visit: Visit) -> Iterator[tuple[Files, Shelves]]:
        """Yield the cores that somebody wants, of those that the visitor can tell of."""
        for core, files in visit.files.cores.items():
            path = self._folder / f"{PREFIX}{core.lstrip('#')}"
            if files.is_received:
                path.mkdir(exist_ok=True)
            if path.is_dir():
                yield files, self._shelves.setdefault(core, Shelves(path))

    def find(self, visit: Visit) -> None:
        """Hear which stores are lost; have the visitor go on as another if it went back behind its files."""
        for files, shelves in self._cores(visit):
            own = visit.visitor.incarnation
            there = shelves.files(files.read, visit.skip)
            for one in there:
                visit.visitor.hear_endings(one.summary.message.news)
            found = [one for one in there if one.writer == own]
            if any(files.is_ahead(one.summary) for one in found):
                visit.visitor.go_back()
                return

    # Taking.

    def take(self, visit: Visit) -> bool:
        """Take what others have written; False if it turned out that the visitor went back in time."""
        return all(self._take(visit, *one) for one in self._cores(visit) if one[0].is_received)

    def _take(self, visit: Visit, files: Files, shelves: Shelves) -> bool:
        found = [one for one in shelves.files(files.read, visit.skip) if one.path not in visit.torn]
        for one in _ordered(found):
            if one.writer == visit.visitor.incarnation:
                continue
            if files.follows(one.summary, files.read_of(one.writer)) and one.summary.fits(files.seen()):
                outcome = self._take_one(visit, files, shelves, one)
                if outcome is Outcome.REWOUND:
                    return False
        return True

    @staticmethod
    def _take_one(visit: Visit, files: Files, shelves: Shelves, filed: Filed) -> Outcome:
        try:
            shelves.verify(filed)
            outcome, rows = files.take(filed.summary, Frames(filed.path))
        except StoreError:  # its own trouble, and none of the file's
            raise
        except EverviewError as error:  # whole, and yet no cut
            visit.skip(filed.path, error)
            return Outcome.GAP
        except (TornFileError, OSError):
            visit.skip(filed.path)
            return Outcome.GAP
        if outcome is Outcome.APPLIED:
            visit.add(SyncReport(received_rows=rows, received_bytes=filed.size))
        return outcome

    # Giving.

    def give(self, visit: Visit) -> None:
        """Write what others cannot learn there yet."""
        for files, shelves in self._cores(visit):
            self._give(visit, files, shelves)
            self._forget_former(visit, files, shelves)
            shelves.tidy(visit.visitor.incarnation)

    def _give(self, visit: Visit, files: Files, shelves: Shelves) -> None:
        me, seen = visit.visitor.incarnation, files.seen()
        whole: dict[str, list[Filed]] = {me: []}
        for one in _ordered(shelves.files(files.read, visit.skip)):
            if _is_whole(one, shelves, visit):
                whole.setdefault(one.writer, []).append(one)
        chains = {writer: _chain(found) for writer, found in whole.items()}
        own = chains.pop(me)
        began_anew = not all(includes(seen.get(place, {}), one) for place, one in _reached(own).items())
        if not began_anew:
            if not any(seen.values()) or _is_told(files, seen, chains.values()):
                return
            if own and not files.has_news(one.summary for one in own):
                return
        heavy = max(LIGHT, own[0].size // 2) if own else 0
        if began_anew or len(own) > MANY or sum(one.size for one in own[1:]) > heavy:
            own = []
        serial = 1 + max((one.serial for one in whole[me]), default=0)
        written = self._write(visit, files, shelves, serial, own)
        if written.summary.is_whole:
            away = [one.path for one in whole[me] if one.path != written.path]
            torn = [path for path in visit.torn if path.parent == written.path.parent]
            shelves.remove([*away, *(path for path in torn if NAME.fullmatch(path.name))])

    @staticmethod
    def _forget_former(visit: Visit, files: Files, shelves: Shelves) -> None:
        """Remove what this store has written as another, where other files tell it as well."""
        former = set(visit.visitor.former) - {visit.visitor.incarnation}
        if not former:
            return
        whole: dict[str, list[Filed]] = {}
        for one in _ordered(shelves.files(files.read, visit.skip)):
            if _is_whole(one, shelves, visit):
                whole.setdefault(one.writer, []).append(one)
        others = [_chain(found) for writer, found in whole.items() if writer not in former]
        for writer in former & whole.keys():
            if _is_told(files, _reached(whole[writer]), others):
                shelves.clear(writer)

    @staticmethod
    def _write(visit: Visit, files: Files, shelves: Shelves, serial: int, own: list[Filed]) -> Filed:
        last = Piece(b"", 0)

        def messages() -> Iterator[bytes]:
            nonlocal last
            for last in files.write({}, [one.summary for one in own]):
                visit.add(SyncReport(sent_rows=last.rows, sent_bytes=len(last.data)))
                yield last.data

        def kind() -> str:
            return ALL if files.read(last.data).is_whole else MORE

        return shelves.write(visit.visitor.incarnation, serial, messages(), kind, files.read)

    # Waiting.

    def look(self, but: str) -> frozenset[tuple[str, int, int]]:
        """Return names, times and sizes of all writers' files but one's, and what is wanted."""
        found: set[tuple[str, int, int]] = set()
        for path in listed(self._folder):
            if path.name.startswith(PREFIX):
                found.add((path.name, 0, 0))
                with suppress(OSError):
                    told = Shelves(path).look(but)
                    found |= {(f"{path.name}/{name}", when, size) for name, when, size in told}
        return frozenset(found)


def _ordered(found: Iterable[Filed]) -> list[Filed]:
    """In the order in which their writers have written them."""
    return sorted(found, key=lambda one: (one.writer, one.summary.head.version))


def _is_whole(filed: Filed, shelves: Shelves, visit: Visit) -> bool:
    """Whether every byte of a file is what was written."""
    try:
        shelves.verify(filed)
    except (TornFileError, OSError):
        visit.skip(filed.path)
        return False
    return True


def _chain(found: list[Filed]) -> list[Filed]:
    """Return a writer's last file that follows none, and those that follow it one by one."""
    start = max((at for at, one in enumerate(found) if one.summary.is_whole), default=len(found))
    chain = found[start : start + 1]
    for one in found[start + 1 :]:
        if one.summary.since == chain[-1].summary.head:
            chain.append(one)
    return chain


def _reached(found: Iterable[Filed]) -> Vectors:
    """Return what files lead to together."""
    reached: dict[Place, dict[str, int]] = {}
    for one in found:
        for place, span in one.summary.spans.items():
            join(reached.setdefault(place, {}), span.reached)
    return reached


def _is_told(files: Files, seen: Vectors, chains: Iterable[list[Filed]]) -> bool:
    """Whether others have told all that this store knows of a core.

    One that holds the inputs knows of derivations from rows that others have told one by one; so it looks for
    another such store that has seen as much. What was received was told so before.
    """
    chains = [chain for chain in chains if chain]
    if files.is_received:
        learnt = [_reached(one for chain in chains for one in chain)]
    else:
        learnt = [_reached(chain) for chain in chains if all(one.summary.is_complete for one in chain)]
    return any(all(includes(one.get(place, {}), vector) for place, vector in seen.items()) for one in learnt)
