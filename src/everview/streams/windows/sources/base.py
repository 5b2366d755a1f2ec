"""Source: messages that can be read again from any point on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Source"]


class Source(Protocol):
    """An ordered, replayable stream of messages, each with its offset: a partition of a log.

    - Asked again from the same offset, it gives the same messages under the same offsets.
    - Offsets ascend. They need not be dense: a client of a log that leaves numbers out fits as it is.

    A consumer of Kafka would `seek` to the offset, poll until records come, and give each under its own
    offset.
    """

    async def read(self, offset: int, limit: int) -> Sequence[tuple[int, Any]]:
        """Return up to `limit` messages from `offset` on; wait while there is none yet.

        None at all says that there will never be more.
        """
        ...

    def release(self, offset: int) -> None:
        """Learn that nothing before `offset` will be asked for again; it may be forgotten."""
        ...
