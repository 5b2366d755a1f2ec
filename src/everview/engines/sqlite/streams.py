"""Streams: what a site reads from others, and what it can serve them."""

from __future__ import annotations

from dataclasses import dataclass

from everview.engines.sqlite.parts import Part


@dataclass(frozen=True, slots=True)
class Stream:
    """What a reader has one cursor for: a base relation, or a core of a view that travels.

    `shown` is the relation or view of the program that it belongs to, and `inputs` are the relations that
    its rows come from: one's own, for a relation.
    """

    name: str
    parts: tuple[Part, ...]
    inputs: tuple[str, ...]
    shown: str
