"""The hub: the data pipeline on Spark.

A public name is loaded when it is first used: the processes that Spark starts for a part of the hub need not
wait for all of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everview.hub.hub import Hub
    from everview.hub.publish import PublishReport
    from everview.hub.refresh import Change, RefreshReport
    from everview.hub.running import Running
    from everview.hub.screening import Rejected
    from everview.hub.source import register
    from everview.hub.status import HubStatus
    from everview.hub.vacuum import VacuumReport

__all__ = [
    "Change",
    "Hub",
    "HubStatus",
    "PublishReport",
    "RefreshReport",
    "Rejected",
    "Running",
    "VacuumReport",
    "register",
]

_HOMES = {
    "Change": "refresh",
    "Hub": "hub",
    "HubStatus": "status",
    "PublishReport": "publish",
    "RefreshReport": "refresh",
    "Rejected": "screening",
    "Running": "running",
    "VacuumReport": "vacuum",
    "register": "source",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'everview.hub' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"everview.hub.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
