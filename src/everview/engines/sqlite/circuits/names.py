"""Names: fresh aliases and table names, and the ones that users see."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import count


@dataclass(slots=True)
class Names:
    """Hands out aliases (t1, t2, …) that no other part of a statement uses."""

    _aliases: count[int] = field(default_factory=lambda: count(1))

    def alias(self) -> str:
        """Return an alias that was not given out before."""
        return f"t{next(self._aliases)}"


def column(index: int) -> str:
    """Return the name of a row's column in internal tables."""
    return f"c{index}"


@cache
def columns(width: int) -> tuple[str, ...]:
    """Return the names of all columns of a row of this width."""
    return tuple(column(index) for index in range(width))


def internal(name: str) -> str:
    """Return the name of a table of ours; programs may not declare names that begin so."""
    return f"everview_{name}"


BY = "_by_"
"""In the name of an index that a circuit asks for, between its table and its columns."""


TEMP = "temp."
"""How the names of temporary tables begin."""


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
