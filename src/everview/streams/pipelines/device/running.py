"""A thread that keeps a pipeline going."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Running:
    """A thread that has a pipeline read its files and fire its triggers."""

    def __init__(
        self,
        read: Callable[[str, str | os.PathLike[str]], object],
        tick: Callable[[], object],
        files: dict[str, str | os.PathLike[str]],
        seconds: float,
    ) -> None:
        self._read = read
        self._tick = tick
        self._files = files
        self._seconds = seconds
        self._stopped = threading.Event()
        self.error: Exception | None = None
        """What ended it, if something did."""
        self._thread = threading.Thread(target=self._run, name="everview-pipeline", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                for source, path in self._files.items():
                    self._read(source, path)
                self._tick()
                self._stopped.wait(self._seconds)
        except Exception as error:  # noqa: BLE001 - raised again where it is stopped
            self.error = error

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop it, when the commit under way is done; raise what had ended it."""
        self._stopped.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
