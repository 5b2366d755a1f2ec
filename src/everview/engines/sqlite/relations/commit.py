"""A commit that is under way, as the tables of relations see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everview.engines.sqlite.rows.ledger import Ledger


@dataclass(slots=True)
class Commit:
    """The number of the commit, its stamp, and the floors; `grown` when some row grew in it."""

    version: int
    stamp: int = 0
    site: int = 1
    """The number of the site itself."""
    floors: Mapping[str, int] = field(default_factory=dict)
    """Relation → the greatest causal length ever collected: an unknown tuple starts above it."""
    apart: Mapping[str, int] = field(default_factory=dict)
    """Relation → what another group may have forgotten that came to this one: a known tuple goes above it."""
    name: str = ""
    """What the site is called: of rows that have owners, it tells anew only its own."""
    grown: bool = False
    ledger: Ledger | None = None
    """What the store has seen of whom, where relations are rows under dots."""
