"""One hierarchy of errors.

::

    EverviewError
    ├── ProgramError         bad program or query text: line, column, hint
    ├── DataError            a value or row that does not fit: relation, column, value, expected
    ├── LimitError           something outgrew a declared limit
    ├── SyncError            a peer, what failed, whether to try again
    │   └── WireError        bytes that are no message, or hold what no store holds: where
    ├── StoreError           a file, what is wrong with it, what to do
    ├── NonDeterminismError  two values where one was promised
    └── MissingDependencyError  an optional part is not installed, and which extra brings it

Nothing is half-applied when one of them is raised. Each says what was being done, why it failed,
and what to do next.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "DataError",
    "EverviewError",
    "LimitError",
    "MissingDependencyError",
    "NonDeterminismError",
    "ProgramError",
    "StoreError",
    "SyncError",
    "WireError",
]


class EverviewError(Exception):
    """The root of all errors that Everview raises on purpose."""


class ProgramError(EverviewError):
    """The text of a program or query cannot be used.

    `line` and `column` count from 1 and are None where no place in the text is to blame.
    """

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, hint: str | None = None
    ) -> None:
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
        place = f"line {line}, column {column}: " if line is not None else ""
        advice = f" ({hint})" if hint else ""
        super().__init__(f"{place}{message}{advice}")


class DataError(EverviewError):
    """A value or a row does not fit where it was put."""

    def __init__(
        self,
        message: str,
        *,
        relation: str | None = None,
        column: str | None = None,
        value: Any = None,
        expected: str | None = None,
    ) -> None:
        self.relation = relation
        self.column = column
        self.value = value
        self.expected = expected
        super().__init__(message)


class LimitError(EverviewError):
    """Something grew past the limit declared for it; nothing was cut off silently."""

    def __init__(self, message: str, *, limit: int) -> None:
        self.limit = limit
        super().__init__(message)


class SyncError(EverviewError):
    """An exchange with a peer failed; `retry` says whether trying again can help."""

    def __init__(self, message: str, *, peer: str | None = None, retry: bool = False) -> None:
        self.peer = peer
        self.retry = retry
        super().__init__(message)


class WireError(SyncError):
    """Bytes from a peer are no message, or a message holds what no store can hold.

    `where` names the layer that refused: frame, header, section, column or value. Trying again can help
    only when the bytes were damaged on their way.
    """

    def __init__(self, message: str, *, where: str, peer: str | None = None, retry: bool = False) -> None:
        self.where = where
        super().__init__(message, peer=peer, retry=retry)


class StoreError(EverviewError):
    """A store's file cannot be used as it is; the message says what to do."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        self.path = path
        super().__init__(message)


class NonDeterminismError(EverviewError):
    """Two different values stand where exactly one was promised."""


class MissingDependencyError(EverviewError):
    """An optional part is not installed; the message names the extra that brings it."""
