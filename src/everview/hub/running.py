"""A hub that runs: it refreshes by itself whenever something has arrived, until it is stopped.

A batch of the stream is done when all that had arrived before it is in a refresh or was set aside. A refresh
that fails is tried again, a few times; then the run ends with its error. Nothing is lost by that: what is in
no refresh stays in the inbox. A stream that fails beside the refreshes is started again, in the end without
its checkpoint, of which nothing is needed (see `streaming`).
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from pyspark.sql.streaming.query import StreamingQuery

from everview.errors import StoreError
from everview.hub.refresh import RefreshReport
from everview.hub.screening import Rejected

__all__ = ["Running", "Work"]

_WAITS = (0.1, 1.0, 5.0)
"""Seconds to wait before a refresh that has failed, or the stream, is tried again."""

_BLOCKED = 0.05
"""Seconds to wait for a write that is under way and has others behind it."""

_STARTS = 2
"""How often a stream that fails is started again, the last time without its checkpoint."""

_LONG = 60.0
"""After how many seconds a stream's failure is no longer the same as the last."""

_log = logging.getLogger(__name__)


class _Stream(Protocol):
    def start(self, trigger: str, batch: Callable[[], object]) -> StreamingQuery: ...
    def forget(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a run does: refresh; see whether the store is still ours, and which writes are still under way.

    `given` is the greatest number of a write so far, `is_settled` whether none up to a number is under way.
    """

    name: str
    refresh: Callable[[], RefreshReport]
    require_store: Callable[[], None]
    given: Callable[[], int]
    is_settled: Callable[[int], bool]


class Running:
    """A run of a hub, from `Hub.run`; as a context manager it ends with its block."""

    def __init__(
        self,
        work: Work,
        stream: _Stream,
        trigger: str,
        on_report: Callable[[RefreshReport], None] | None = None,
    ) -> None:
        self._on_report = on_report
        self.trigger = trigger
        self.last_report: RefreshReport | None = None
        """Of the last refresh that took something in, or set something aside."""
        self.rejected: tuple[Rejected, ...] = ()
        """All writes that were set aside since it runs."""
        self.error: Exception | None = None
        """Why it has ended, if it was not stopped."""
        self._work = work
        self._stream = stream
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._working = threading.Lock()
        self._starting = threading.Lock()
        self._query = stream.start(trigger, self._batch)
        self._watcher = threading.Thread(target=self._watch, name=f"{work.name} runs", daemon=True)
        self._watcher.start()
        # Or Spark would find nobody to call, and say so at length.
        atexit.register(self.end)

    def __repr__(self) -> str:
        state = "running" if self.is_active else "ended" if self.error is None else f"failed: {self.error}"
        return f"Running(trigger={self.trigger!r}, {state})"

    @property
    def is_active(self) -> bool:
        """Whether it goes on."""
        return self.error is None and not self._stopping.is_set() and not self._ended.is_set()

    def stop(self) -> None:
        """End it, after the refresh that is under way; if it had failed, raise its error."""
        self.end()
        self._raise()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, or for so many seconds; whether it has. If it failed, raise its error."""
        ended = self._ended.wait(timeout)
        self._raise()
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if error is None:
            self._raise()

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        """End it like `stop`, whether or not it had failed."""
        self._stopping.set()
        atexit.unregister(self.end)
        # Spark stops a stream by cancelling what it is doing: first the refresh under way comes to its end.
        with self._working:
            pass
        with self._starting:
            if self._ended.is_set():
                return
            try:
                self._query.stop()
            except Exception as error:  # noqa: BLE001  (Spark itself has ended)
                self.error = self.error or error
                return
        self._watcher.join()

    def _batch(self) -> None:
        """Refresh until all that has arrived by now is in, unless it is to end."""
        with self._working:
            upto = self._work.given()
            try:
                while not self._stopping.is_set():
                    # Asked before, or a write could become whole too late for this refresh, and wake nobody.
                    settled = self._work.is_settled(upto)
                    self._note(self._refreshed())
                    if settled or self._stopping.wait(_BLOCKED):
                        break
            except Exception as error:
                self.error = error
                raise

    def _note(self, report: RefreshReport) -> None:
        self.rejected += report.rejected
        if report.arrivals or report.rejected or self.last_report is None:
            self.last_report = report
            if self._on_report is not None:
                self._on_report(report)

    def _refreshed(self) -> RefreshReport:
        """The report of a refresh, be it of the last try."""
        for wait in _WAITS:
            try:
                return self._work.refresh()
            except Exception as error:
                # That the store is another's now does not pass.
                self._work.require_store()
                _log.warning("a refresh of %s failed and is tried again: %s", self._work.name, error)
                if self._stopping.wait(wait):
                    raise
        return self._work.refresh()

    def _watch(self) -> None:
        """Start the stream again when it fails; say that the run has ended when it has."""
        failures = 0
        try:
            while not self._stopping.is_set() and self.error is None:
                started = time.monotonic()
                failure = _outcome(self._query)
                failures = 1 if time.monotonic() - started > _LONG else failures + 1
                with self._starting:
                    if self._stopping.is_set() or self.error is not None:
                        break
                    self._start_again(failures, failure)
        except Exception as error:  # noqa: BLE001  (whoever stops or waits is told)
            self.error = error
        finally:
            if self.error is not None:
                _log.error("%s no longer runs: %s", self._work.name, self.error)
            self._ended.set()

    def _start_again(self, failures: int, failure: Exception | None) -> None:
        reason = failure if failure is not None else "it was stopped"
        if failures > _STARTS:
            raise StoreError(f"the stream of {self._work.name}'s inbox fails: {reason}") from failure
        _log.warning("the stream of %s's inbox is started again: %s", self._work.name, reason)
        if self._stopping.wait(_WAITS[failures - 1]):
            return
        if failures == _STARTS:
            self._stream.forget()
        self._query = self._stream.start(self.trigger, self._batch)


def _outcome(query: StreamingQuery) -> Exception | None:
    """Wait for the end of a stream; why it failed, if it did."""
    try:
        query.awaitTermination()
    except Exception as error:  # noqa: BLE001  (Spark's, or that Spark itself has ended)
        return error
    return None
