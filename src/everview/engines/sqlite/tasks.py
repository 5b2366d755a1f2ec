"""Tasks: several of them share a thread, and a transaction belongs to one."""

from __future__ import annotations

import sys

__all__ = ["current_task"]


def current_task() -> object | None:
    """Return the task of asyncio or trio that is running; None where none is.

    Another thread may be importing either at this moment: a module without its functions runs no task.
    """
    found: object | None = None
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)  # a tenth of the time of others
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    if running is not None and running() is not None:
        found = sys.modules["asyncio"].current_task()
    elif lowlevel is not None and lowlevel.in_trio_task():
        found = lowlevel.current_task()
    return found
