"""Rights: what whoever sends a message may read and write."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL_RIGHTS", "Rights"]


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of one site: relations and views that it may read, relations that it may write.

    None is everything; `site` is the label of the site that they belong to, None for any.
    """

    site: str | None = None
    reads: frozenset[str] | None = None
    writes: frozenset[str] | None = None


ALL_RIGHTS = Rights()
