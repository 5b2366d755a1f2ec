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
