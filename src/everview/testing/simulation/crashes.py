"""Crashes: a process dies at a chosen statement, and what it had not committed is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any


class Crashed(BaseException):
    """The process is dead. No handler of errors may catch it, as none would run."""


class Fuse:
    """A connection that lets so many statements pass, and none after them.

    It also refuses the statements by which handlers would clean up: a process that was killed does not.
    """

    def __init__(self, connection: sqlite3.Connection, statements: int) -> None:
        self._connection = connection
        self.left = statements

    def _burn(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crashed

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run a statement, or die before it."""
        self._burn()
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement for many rows, or die before it."""
        self._burn()
        return self._connection.executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
