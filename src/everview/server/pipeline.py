"""A pipeline: a hub that is kept running while it is served.

A run that ends with an error is started again, ever less often: devices go on meanwhile, what they push
waits, and the health address says why. Only when another hub has taken the store over is there nothing left
to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from everview.errors import EverviewError, StoreError

if TYPE_CHECKING:
    from everview.hub import Hub, RefreshReport, Running

__all__ = ["Pipeline"]

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0

log = logging.getLogger("everview.hub")


class Pipeline:
    """Runs a hub from `start` to `stop`. `on_lost` is called when the store is no longer ours."""

    def __init__(
        self,
        hub: Hub,
        trigger: str,
        on_report: Callable[[RefreshReport], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._hub, self._trigger = hub, trigger
        self._on_report, self._on_lost = on_report, on_lost
        self._run: Running | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="everview-pipeline", daemon=True)
        self.error: Exception | None = None
        """Why it does not run, if it does not."""
        self.failures = 0
        """How often a run has ended with an error."""
        self.is_lost = False

    @property
    def is_running(self) -> bool:
        """Whether it refreshes, or looks for something to refresh by."""
        return self._run is not None and self._run.is_active

    def start(self) -> None:
        """Begin; what is wrong with the trigger is said at once."""
        self._run = self._hub.run(self._trigger, on_report=self._on_report)
        self._thread.start()

    def stop(self) -> None:
        """End after the refresh that is under way."""
        self._stopping.set()
        run = self._run
        if run is not None:
            run.end()
        if self._thread.ident is not None:
            self._thread.join()

    def _keep(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if self._run is None:
                    self._run = self._hub.run(self._trigger, on_report=self._on_report)
                    self.error = None
                self._run.wait()
            except Exception as error:
                if self._stopping.is_set():
                    return
                self.error, self.failures, self._run = error, self.failures + 1, None
                if self._lost():
                    return
                if not isinstance(error, EverviewError):
                    log.exception("the pipeline failed")
                pause = FIRST_PAUSE if time.monotonic() - began > LONGEST_PAUSE else pause
                log.error(  # noqa: TRY400 - the traceback of an error of ours says nothing more
                    "the pipeline has ended and is started again in %d seconds: %s",
                    pause,
                    " ".join(str(error).split()),
                    extra={"event": "pipeline", "fields": {"failures": self.failures}},
                )
                self._stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return  # it was stopped

    def _lost(self) -> bool:
        """Whether another hub has the store."""
        with suppress(OSError):
            try:
                self._hub.check()
            except StoreError as error:
                self.error, self.is_lost = error, True
                self._on_lost()
        return self.is_lost
