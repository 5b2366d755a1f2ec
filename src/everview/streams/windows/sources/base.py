"""Source: messages that can be read again from any point on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from everview.errors import StoreError

__all__ = ["Marked", "Source", "changed"]


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


@runtime_checkable
class Marked(Protocol):
    """A source that can be told from one that was put in its place: a file, which anybody may write to.

    A processor notes the mark of where it goes on with each window, and has it checked when it begins there
    again. A source without marks is believed.
    """

    def mark(self, offset: int) -> str | None:
        """Return what tells the messages before `offset` from others; None where that is not at hand."""
        ...

    async def check(self, offset: int, mark: str) -> None:
        """Raise StoreError when the messages before `offset` are not those that `mark` is of."""
        ...


def changed(path: Path, how: str) -> StoreError:
    """What to raise of a file that is not what it was."""
    return StoreError(
        f"{path} was changed under a processor: {how}. Windows hold what was read before; put the file back, "
        "and have it only grow, or begin a group of another name",
        path=str(path),
    )
