"""Group: processors that share windows, as a frozen description."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from everview.algebra import checks
from everview.errors import DataError
from everview.streams.windows.coding import CANONICAL, Codec
from everview.streams.windows.values import Kind, Values, values_of

__all__ = ["Group"]


@dataclass(frozen=True, slots=True)
class Group:
    """A windowed CRDT: what its windows hold, and whose.

    `name` tells its rows from those of other groups. `of` is a lattice or a CRDT: `MergeMap(Max())`,
    `crdt.Counter`, `lambda source: crdt.Map(source, crdt.Counter(source))`. `members` take part from window 0
    on; others join later, with a window. A processor may await the last `keep` windows that it has closed;
    what is older is collected.
    """

    name: str
    of: Kind
    members: frozenset[str]
    keep: int = 10
    codec: Codec = CANONICAL
    values: Values = field(init=False, repr=False, compare=False)
    """How its states are handled."""

    def __init__(
        self, name: str, of: Kind, members: Iterable[str], *, keep: int = 10, codec: Codec = CANONICAL
    ) -> None:
        if isinstance(members, str):
            raise DataError(f"members is a set of names, not the str {members!r}", value=members)
        found = frozenset(checks.name(member, "a processor's name") for member in members)
        if not found:
            raise DataError("a group needs a processor to begin with", expected="a set of names")
        settled: dict[str, Any] = {
            "name": checks.name(name, "a group's name"),
            "of": of,
            "members": found,
            "keep": checks.positive(keep, "how many windows to keep"),
            "codec": codec,
            "values": values_of(of),
        }
        for attribute, value in settled.items():
            object.__setattr__(self, attribute, value)
