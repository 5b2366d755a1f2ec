"""Messages of a list, for examples and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from everview.streams.windows.sources.base import Source

__all__ = ["Listed"]


class Listed(Source):
    """The messages of a list, numbered from 0; it ends with the last."""

    def __init__(self, messages: Iterable[Any]) -> None:
        self._messages = list(messages)

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return messages from a number on."""
        return list(enumerate(self._messages[offset : offset + limit], offset))

    def release(self, offset: int) -> None:
        """Keep them all."""
