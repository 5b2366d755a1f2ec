"""Materialized views that every site can read and write into, online or offline, and that converge."""

from everview import crdt, testing
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

__all__ = [
    "DataError",
    "EverviewError",
    "LimitError",
    "MissingDependencyError",
    "NonDeterminismError",
    "ProgramError",
    "StoreError",
    "SyncError",
    "crdt",
    "testing",
]
