"""Ledger: where a group's records are kept, and how those of others are heard of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from everview.streams.windows.records import News

__all__ = ["Ledger"]


class Ledger(Protocol):
    """The narrow waist between processors and whatever stores and carries their records.

    - Records of one writer are kept in the order in which they were written: who finds an entry finds all
      entries of the same processor before it, and the outputs that were written with or before it.
    - What was told of once is kept. A record may be told of often, and late.
    - The floor and the entries above it are kept and told of together.
    """

    def open(self, tell: Callable[[News], None]) -> None:
        """Tell of all that is kept, at once, and from now on of all that comes, in the loop's thread."""
        ...

    def write(self, news: News) -> None:
        """Keep some records, soon. They are told of when they are kept, and not before."""
        ...

    async def room(self) -> None:
        """Wait while more is to be written than should be."""
        ...

    async def run(self) -> None:
        """Write what is to be written, until cancelled. What fails here ends the work at this ledger."""
        ...

    async def settle(self) -> None:
        """Wait until all that was to be written is kept."""
        ...

    def close(self) -> None:
        """Tell nothing any more."""
        ...
