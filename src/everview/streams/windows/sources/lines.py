"""Messages of a file of JSON lines."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from everview.errors import DataError, StoreError
from everview.streams.windows.sources.base import Source, changed

__all__ = ["JsonLines"]

_LOOK_SECONDS = 0.2


class JsonLines(Source):
    """One message a line, numbered from 0; a blank line is no message, and has its number all the same.

    With `follow` the file is waited for to grow, for ever; a line counts when its end is there. Lines that
    were read must stay as they are: a file is replayed. A StoreError says if it became shorter, or another.
    """

    def __init__(self, path: str | os.PathLike[str], *, follow: bool = False) -> None:
        self._path = Path(path)
        self._follow = follow
        self._rewind()

    def _rewind(self) -> None:
        self._line, self._byte = 0, 0
        """The number of the next line, and where it begins."""
        self._last = b""
        """The line before it."""
        self._marks = {0: ""}
        """Digests of all lines before a line, for those that were read last."""

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

    def mark(self, offset: int) -> str | None:
        """Return a digest of all lines before one of those that were read last, or of the next."""
        return self._marks.get(offset)

    async def check(self, offset: int, mark: str) -> None:
        """Refuse a file whose lines before `offset` are others than those that `mark` is of."""
        await asyncio.to_thread(self._check, offset, mark)

    def _check(self, offset: int, mark: str) -> None:
        self._rewind()
        self._read(offset, 0)
        if self._line < offset:
            raise changed(self._path, f"it has {self._line} lines, and {offset} were read of it")
        if self._marks[offset] != mark:
            raise changed(self._path, f"the first {offset} lines are not those that were read")

    def _read(self, offset: int, limit: int) -> tuple[list[tuple[int, Any]], int]:
        """Messages from a line on, and the line after them; blank lines may leave none."""
        if offset < self._line:
            self._rewind()
        found: list[tuple[int, Any]] = []
        mark = self._marks[self._line]
        self._marks = {self._line: mark}
        try:
            with self._path.open("rb") as file:
                self._go_on(file)
                while self._wants_more(offset, limit, len(found)) and (text := file.readline()):
                    if self._follow and not text.endswith(b"\n"):
                        break
                    if self._line >= offset and text.strip():
                        found.append((self._line, self._message(text)))
                    self._line += 1
                    self._byte += len(text)
                    self._last = text
                    mark = hashlib.blake2b(mark.encode() + text, digest_size=8).hexdigest()
                    if self._line < offset:
                        self._marks.clear()
                    self._marks[self._line] = mark
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error}", path=str(self._path)) from None
        return found, max(self._line, offset)

    def _wants_more(self, offset: int, limit: int, count: int) -> bool:
        return count < limit or self._line < offset

    def _go_on(self, file: BinaryIO) -> None:
        """Go to the next line, if the last one is still before it."""
        file.seek(self._byte - len(self._last))
        there = file.read(len(self._last) + 1)
        file.seek(self._byte)
        # A line without its end that has become longer was another message.
        if self._last and there != self._last and not (self._last[-1:] == b"\n" and there[:-1] == self._last):
            raise changed(self._path, f"line {self._line} is not there any more as it was read")

    def _message(self, text: bytes) -> Any:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise DataError(
                f"{self._path}, line {self._line + 1} is no JSON: {error}", value=text[:80], expected="JSON"
            ) from None
