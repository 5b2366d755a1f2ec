"""Tasks: several of them share a thread, and a transaction belongs to one."""

from __future__ import annotations

import sys

__all__ = ["current_task"]


def current_task() -> object | None:
    """Return the task of asyncio or trio that is running; None where none is."""
    found: object | None = None
    asyncio, trio = sys.modules.get("asyncio"), sys.modules.get("trio")  # unloaded, they run no task
    if asyncio is not None and asyncio._get_running_loop() is not None:  # noqa: SLF001 - a tenth of the time
        found = asyncio.current_task()
    elif trio is not None and trio.lowlevel.in_trio_task():
        found = trio.lowlevel.current_task()
    return found
