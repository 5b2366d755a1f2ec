"""Programs: sites that run different ones exchange what both declare alike.

A relation that is wider on one side, by nullable columns at its end, goes from the narrower side to the
wider, with NULLs in these columns. It does not go the other way: a narrower site could neither keep the
values nor pass them on. What only one of two programs declares is to the other a stream that it does not
host.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from everview.errors import SyncError
from everview.language.evolution import Shape, definitions, shape_of
from everview.language.program import Program
from everview.planner.published import is_published, published_stream
from everview.replication.wire.messages import Message

__all__ = ["Programs", "Shapes", "shapes_of"]

Shapes = Mapping[str, Shape]

_KNOWN = 64
"""Of so many programs it is remembered what they declare; the others say it again."""


def shapes_of(program: Program) -> dict[str, Shape]:
    """Return what a program declares that others have to agree with, by stream."""
    found = {name: shape_of(one) for name, one in program.relations.items() if not one.local}
    if any(view.authority for view in program.views.values()):
        said = definitions(program)
        for name, view in program.views.items():
            if view.authority is not None:
                found[published_stream(name)] = Shape(said[name], ())
    return found


class Programs:
    """What other sites' programs declare, as far as they have said it."""

    def __init__(self, program: Program, word: bytes) -> None:
        self._ours, self._word = shapes_of(program), word
        self._known: dict[bytes, Shapes] = {}

    @property
    def ours(self) -> dict[str, Shape]:
        """What this program declares."""
        return self._ours

    def note(self, message: Message) -> bool:
        """Take note of what a message says of its program; whether that is known now."""
        if message.shapes is not None and message.program != self._word:
            _require_akin(message.shapes, self._ours)
            self._known.pop(message.program, None)
            self._known[message.program] = message.shapes
            if len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
        return message.program == self._word or message.program in self._known

    def wider(self, program: bytes) -> list[str]:
        """Return the relations that have more columns in another program."""
        theirs = self._known.get(program, {})
        common = sorted(name for name in self._ours.keys() & theirs.keys() if not is_published(name))
        return [name for name in common if not theirs[name].fits_into(self._ours[name])]

    def shared(self, program: bytes, streams: Collection[str], *, given: bool) -> set[str]:
        """Return which streams are given to a site with a program, or taken from it."""
        if program == self._word:
            return set(streams)
        theirs = self._known[program]
        return {name for name in streams if self._goes(name, theirs, given=given)}

    def _goes(self, name: str, theirs: Shapes, *, given: bool) -> bool:
        if name not in self._ours:  # it is named by what it says
            return True
        if name not in theirs:
            return False
        one, other = (self._ours[name], theirs[name]) if given else (theirs[name], self._ours[name])
        return one.fits_into(other)

    def declared(self, program: bytes, streams: Collection[str]) -> set[str]:
        """Return which streams a site with a program knows of, whatever it hosts."""
        return set(streams) if program == self._word else set(streams) & self._known[program].keys()

    def widened(self, program: bytes, stream: str, rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """Return the columns of rows as they are here: NULL in those that the sender does not declare."""
        ours = self._ours.get(stream)
        if program == self._word or ours is None:
            return list(rows)
        at, count = len(self._known[program][stream].columns), len(rows[0]) if rows else 0
        more = [[None] * count] * (len(ours.columns) - at)
        return [*rows[:at], *more, *rows[at:]]


def _require_akin(theirs: Shapes, ours: Shapes) -> None:
    common = {name for name in ours.keys() & theirs.keys() if not is_published(name)}
    for name in sorted(common):
        if not (theirs[name].fits_into(ours[name]) or ours[name].fits_into(theirs[name])):
            here, there = (
                f"{shape.terms} ({', '.join(f'{column} {kind}' for column, kind, _ in shape.columns)})"
                for shape in (ours[name], theirs[name])
            )
            raise SyncError(
                f"the peer runs another program, in which {name} is another relation: {there}, here {here}; "
                "sites share what both declare alike, or one of them with more nullable columns at its end"
            )
    if not common:
        raise SyncError("the peer runs another program, which has no relation in common with this site's")
