"""Staying in sync with peers while a command runs, and what is said about it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import typer

from everview.cli.options import print_json
from everview.cli.syncing import show_report
from everview.errors import EverviewError
from everview.replication.transports.base import TRY_LATER, Transport
from everview.replication.transports.live import Live
from everview.replication.transports.report import Denied, SyncReport
from everview.site import Site

__all__ = ["staying"]


class _Teller:
    """Prints reports that moved something, and each error once until something works again.

    What is not allowed is said when that changes.

    Who is away is no error: it is tried again until it is there.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()
        self._said: dict[str, str] = {}
        self._denied: dict[str, tuple[Denied, ...]] = {}

    def report(self, peer: str, report: SyncReport) -> None:
        with self._lock:
            back = self._said.pop(peer, None)
            denied = self._denied.get(peer, ()) != report.denied
            self._denied[peer] = report.denied
            if back is not None or denied or report.sent_rows or report.received_rows:
                show_report(peer, report, as_json=self._as_json, denied=denied)

    def error(self, peer: str, error: EverviewError) -> None:
        with self._lock:
            if self._said.get(peer) == str(error):
                return
            self._said[peer] = str(error)
            again = getattr(error, "retry", False)
            if self._as_json:
                print_json({"peer": peer, "error": str(error), "retry": again})
            said = f"trying again: {str(error).removesuffix(TRY_LATER)}" if again else f"error: {error}"
            typer.echo(said, err=True)


@contextmanager
def staying(site: Site, ways: Sequence[Transport], pause: float, *, as_json: bool = False) -> Iterator[None]:
    """Keep syncing over these ways while the body runs."""
    teller = _Teller(as_json=as_json)
    with ExitStack() as stack:
        for way in ways:
            live = Live(
                site.replica,
                way,
                every=pause,
                on_report=partial(teller.report, way.peer),
                on_error=partial(teller.error, way.peer),
            )
            live.start()
            stack.callback(live.stop)
        yield
