"""Streams: what a reader has a cursor for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from everview.engines.sqlite.parts import Held, Part


@dataclass(frozen=True, slots=True)
class Stream:
    """A relation's rows, or a view's liveness and derivations; `inputs` are the relations it tells of."""

    name: str
    parts: tuple[Part, ...]
    inputs: tuple[str, ...]

    @property
    def held(self) -> tuple[Held, ...]:
        """The parts whose rows have origins: one for each of the inputs, as with `wholes`."""
        return cast("tuple[Held, ...]", self.parts[: len(self.inputs)])

    @property
    def is_base(self) -> bool:
        """Whether it is a relation, held whole."""
        return self.inputs == (self.name,)

    @property
    def wholes(self) -> tuple[str, ...]:
        """What vectors are about: the relation itself, or each input as the view receives it."""
        return wholes_of(self.name, self.inputs)


def wholes_of(stream: str, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Return what vectors are about, for a stream over these relations."""
    return (stream,) if inputs == (stream,) else tuple(f"{stream}>{relation}" for relation in inputs)
