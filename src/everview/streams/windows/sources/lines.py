"""Messages of a file of JSON lines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from everview.errors import DataError, StoreError
from everview.streams.windows.sources.base import Source

__all__ = ["JsonLines"]

_LOOK_SECONDS = 0.2


class JsonLines(Source):
    """One message a line, numbered from 0; a blank line is no message, and has its number all the same.

    With `follow` the file is waited for to grow, for ever; a line counts when its end is there. Lines that
    were read must stay as they are: a file is replayed.
    """

    def __init__(self, path: str | os.PathLike[str], *, follow: bool = False) -> None:
        self._path = Path(path)
        self._follow = follow
        self._line, self._byte = 0, 0
        """The number of the next line, and where it begins."""

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return the messages of the next lines."""
        while True:
            found, line = await asyncio.to_thread(self._read, offset, limit)
            if found or (not self._follow and line == offset):
                return found
            offset = line
            if self._follow:
                await asyncio.sleep(_LOOK_SECONDS)

    def release(self, offset: int) -> None:
        """Keep the file: it is not ours."""

    def _read(self, offset: int, limit: int) -> tuple[list[tuple[int, Any]], int]:
        """Messages from a line on, and the line after them; blank lines may leave none."""
        if offset < self._line:
            self._line, self._byte = 0, 0
        found: list[tuple[int, Any]] = []
        try:
            with self._path.open("rb") as file:
                file.seek(self._byte)
                while len(found) < limit and (text := file.readline()):
                    if self._follow and not text.endswith(b"\n"):
                        break
                    if self._line >= offset and text.strip():
                        found.append((self._line, self._message(text)))
                    self._line += 1
                    self._byte += len(text)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error}", path=str(self._path)) from None
        return found, max(self._line, offset)

    def _message(self, text: bytes) -> Any:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise DataError(
                f"{self._path}, line {self._line + 1} is no JSON: {error}", value=text[:80], expected="JSON"
            ) from None
