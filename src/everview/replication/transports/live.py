"""Live: a site and a peer that stay in agreement for as long as both are there.

A sync follows every commit of either side, at once where the peer can be waited for, and in any case every
few seconds. What fails is tried again, ever less often, for as long as it takes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress

from everview.errors import EverviewError, SyncError
from everview.replication.transports.base import Replica, Transport
from everview.replication.transports.report import SyncReport

__all__ = ["Live"]

FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
LOOK_SECONDS = 0.5
POLL_SECONDS = 20.0


class Live:
    """Keeps syncing over a transport, in threads of its own, until it is stopped.

    `on_report` is called after every sync, `on_error` with every error; both in one thread.
    """

    def __init__(
        self,
        replica: Replica,
        transport: Transport,
        *,
        every: float = 5.0,
        on_report: Callable[[SyncReport], object] = lambda _report: None,
        on_error: Callable[[EverviewError], object] = lambda _error: None,
    ) -> None:
        self._replica = replica
        self._transport = transport
        self._every = every
        self._on_report = on_report
        self._on_error = on_error
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._met = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"everview-{name}", daemon=True)
            for name, target in (("live", self._sync), ("own", self._heed_own), ("peer", self._heed_peer))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; a sync under way is finished first, within reason."""
        self._stopping.set()
        self._news.set()
        self._met.set()
        live, own, _peer = self._threads
        live.join(30)
        own.join(2 * LOOK_SECONDS)
        self._transport.close()  # whoever still waits for the peer's news hears of it here

    def _sync(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping.is_set():
            self._news.clear()
            try:
                report = self._transport.sync(self._replica)
            except EverviewError as error:
                if self._stopping.is_set():
                    return
                self._on_error(error)
                self._stopping.wait(delay * random.uniform(0.5, 1.0))
                delay = min(2 * delay, LONGEST_DELAY)
                continue
            delay = FIRST_DELAY
            self._met.set()
            self._on_report(report)
            self._news.wait(self._every)

    def _heed_own(self) -> None:
        """Sync after a commit of this site; after what a sync has brought, too, which moves nothing."""
        head = self._replica.head
        while not self._stopping.is_set():
            with suppress(EverviewError):
                if self._replica.wait(head, LOOK_SECONDS):
                    head = self._replica.head
                    self._news.set()

    def _heed_peer(self) -> None:
        """Sync after a commit of the peer, once it has been met."""
        self._met.wait()
        while not self._stopping.is_set():
            try:
                if self._transport.wait(POLL_SECONDS):
                    self._news.set()
            except (SyncError, RuntimeError):  # it is away, or the transport was closed; syncs say so
                self._stopping.wait(self._every)
