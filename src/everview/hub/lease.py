"""One live driver per store: who opens a hub holds its lease until the hub is closed.

On files that can be locked the lease is a lock, which the system gives back the moment its holder dies. On
others it is a claim with a limit, renewed by a thread; once it has run out another may claim the store.
Claims are numbered files, each created only if absent, like records: of two who claim at once one succeeds.

A lease keeps drivers out of each other's way and no more. One that was paused for longer than its limit, or
whose clock is wrong, cannot know that it has lost it; that it still does no harm is the epoch's doing (see
`record`).
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Protocol

import msgspec

from everview.errors import StoreError
from everview.hub.files import Files, LockedError

__all__ = ["FOLDER", "LIMIT", "Claim", "Lease", "Lock", "hold"]

LIMIT = 30.0
"""After how many seconds without renewal a claim has run out."""

FOLDER = "lease"
_LOCK = f"{FOLDER}/lock"
_CLAIM = ".claim"
_TIMES = 3
"""How often a claim is renewed within its limit."""


class Lease(Protocol):
    """The right to be a store's driver."""

    def check(self) -> None:
        """StoreError when it is known to be lost."""
        ...

    def give_up(self) -> None:
        """Let others have it."""
        ...


class _Holder(msgspec.Struct, frozen=True):
    """Who has a lease, since when, and until when if it is not renewed."""

    host: str
    pid: int
    since_us: int
    until_us: int | None = None
    word: str = ""
    """Of claims: no two holders have the same."""

    def __str__(self) -> str:
        since = dt.datetime.fromtimestamp(self.since_us / 1e6, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        own = " (this one)" if (self.host, self.pid) == (socket.gethostname(), os.getpid()) else ""
        return f"process {self.pid}{own} on {self.host} since {since}"


def _now_us() -> int:
    return time.time_ns() // 1000


def _ourselves() -> _Holder:
    return _Holder(socket.gethostname(), os.getpid(), _now_us(), word=uuid.uuid4().hex)


def _held(files: Files, holder: _Holder | None, advice: str) -> StoreError:
    uri = files.uri("")
    return StoreError(f"{uri} is open already, by {holder or 'another hub'}: {advice}", path=uri)


def hold(files: Files) -> Lease:
    """The lease of a store, of the kind that its files allow; StoreError, saying who has it, when held."""
    return Lock.take(files) or Claim(files)


class Lock:
    """A lease that is a locked file."""

    def __init__(self, unlock: Callable[[], object]) -> None:
        # A hub that is forgotten without being closed does not stand in the way of the next.
        self._unlock = weakref.finalize(self, unlock)

    @classmethod
    def take(cls, files: Files) -> Lock | None:
        """The lock of a store; None when its files have no locks."""
        try:
            unlock = files.lock(_LOCK, msgspec.json.encode(_ourselves()))
        except LockedError as error:
            raise _held(files, _decoded(error.owner), "close that hub, or end its process") from None
        return cls(unlock) if unlock is not None else None

    def check(self) -> None:
        """It is never lost."""

    def give_up(self) -> None:
        """Unlock the file, which stays: another may be waiting at it."""
        self._unlock()


class Claim:
    """A lease that runs out."""

    def __init__(self, files: Files, limit: float = LIMIT) -> None:
        self._files = files
        self._limit = limit
        self._holder = _ourselves()
        self._number, holder = _newest(files)
        if holder is not None and (holder.until_us or 0) > _now_us():
            raise _held(files, holder, f"close that hub, or wait until its lease of {limit:g} s has run out")
        self._renewing = threading.Lock()
        self._until_us = 0
        self._lost = False
        self._ended = threading.Event()
        if not self._renew(limit):
            raise _held(files, _newest(files)[1], "it was opened this moment")
        self._thread = threading.Thread(target=self._keep, name="everview-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Renew a claim that has run out, unless another hub has claimed the store since."""
        if self._until_us <= _now_us() and not self._ended.is_set():
            self._renew(self._limit)
        if self._lost:
            uri = self._files.uri("")
            taken = f"{uri} was taken over by {_newest(self._files)[1] or 'another hub'}"
            raise StoreError(f"{taken} while this one was held up: open it again", path=uri)

    def give_up(self) -> None:
        """Say that it has run out."""
        self.stop()
        if not self._lost:
            self._renew(0)

    def stop(self) -> None:
        """Renew it no more."""
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._limit / _TIMES):
            try:
                if not self._renew(self._limit):
                    return
            except StoreError:
                # Files that cannot be written now may be a moment later; if not, it runs out.
                continue

    def _renew(self, limit: float) -> bool:
        """Make the next claim; it cannot be made when another has made it."""
        with self._renewing:
            until = _now_us() + int(limit * 1e6)
            content = msgspec.json.encode(msgspec.structs.replace(self._holder, until_us=until))
            number = self._number + 1
            if self._lost or not (self._files.create(_path(number), content) or self._is_ours(number)):
                self._lost = True
                return False
            if _numbers(self._files)[-1] > number:
                # The claim that took its place has been followed by others, and removed.
                self._files.remove(_path(number))
                self._lost = True
                return False
            self._number, self._until_us = number, until
            # The claim before it stays for those who have just seen it in a listing.
            self._files.remove(_path(self._number - 2))
            return True

    def _is_ours(self, number: int) -> bool:
        """Whether a claim is there that we made by an attempt of which we were told that it had failed."""
        try:
            found = _decoded(self._files.read(_path(number)))
        except StoreError:  # gone since
            return False
        return found is not None and found.word == self._holder.word


def _path(number: int) -> str:
    return f"{FOLDER}/{number:012}{_CLAIM}"


def _numbers(files: Files) -> list[int]:
    return [int(name.removesuffix(_CLAIM)) for name in files.list(FOLDER) if name.endswith(_CLAIM)]


def _newest(files: Files) -> tuple[int, _Holder | None]:
    numbers = _numbers(files)
    return (numbers[-1], _decoded(files.read(_path(numbers[-1])))) if numbers else (0, None)


def _decoded(content: bytes) -> _Holder | None:
    """Who it names; None when it is not yet written, or damaged."""
    try:
        return msgspec.json.decode(content, type=_Holder)
    except msgspec.DecodeError:
        return None
