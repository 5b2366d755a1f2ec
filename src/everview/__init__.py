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
    from everview import crdt, testing
    from everview.language.program import Program
    from everview.site import Provenance, Site

__all__ = [
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
    "crdt",
    "testing",
]

_MODULES = ("crdt", "testing")
_HOMES = {
    "Program": "everview.language.program",
    "Provenance": "everview.site",
    "Site": "everview.site",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"everview.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'everview' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_OF_THE_HUB = ("Hub", "RefreshReport")


def __getattr__(name: str) -> Any:
    if name not in _OF_THE_HUB:
        raise AttributeError(f"module 'everview' has no attribute {name!r}")
    try:
        from everview import hub  # noqa: PLC0415 - a device has no Spark
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"everview.{name} needs {error.name}: pip install 'everview[hub]'"
        ) from error
    return getattr(hub, name)
