"""Materialized views that every site can read and write into, online or offline, and that converge.

A public name is loaded when it is first used: `everview --help` need not wait for the engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from everview.errors import (
    DataError,
    EverviewError,
    LimitError,
    MissingDependencyError,
    NonDeterminismError,
    ProgramError,
    StoreError,
    SyncError,
)

if TYPE_CHECKING:
    from everview import crdt, streams, testing, windowed
    from everview.async_site import AsyncSite
    from everview.language.program import Program
    from everview.site import Provenance, Site, SyncReport

__all__ = [
    "AsyncSite",
    "DataError",
    "EverviewError",
    "LimitError",
    "MissingDependencyError",
    "NonDeterminismError",
    "Program",
    "ProgramError",
    "Provenance",
    "Site",
    "StoreError",
    "SyncError",
    "SyncReport",
    "crdt",
    "streams",
    "testing",
    "windowed",
]

_MODULES = ("crdt", "streams", "testing", "windowed")
_HOMES = {
    "AsyncSite": "everview.async_site",
    "Hub": "everview.hub",
    "Program": "everview.language.program",
    "Provenance": "everview.site",
    "RefreshReport": "everview.hub",
    "Site": "everview.site",
    "SyncReport": "everview.replication.transports.report",
}
_EXTRAS = {"everview.hub": "hub"}
"""What a device may lack, and the extra that brings it."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"everview.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'everview' has no attribute {name!r}")
    home = _HOMES[name]
    try:
        value = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if home not in _EXTRAS:
            raise
        raise MissingDependencyError(
            f"everview.{name} needs {error.name}: pip install 'everview[{_EXTRAS[home]}]'"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
