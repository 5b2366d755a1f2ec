"""A commit that is under way, as the tables of relations see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everview.engines.sqlite.rows.ledger import Ledger


@dataclass(slots=True)
class Commit:
    """The number of the commit, and what it is written with; `grown` when it has changed some row."""

    version: int
    ledger: Ledger
    """What the store has seen of whom."""
    stamp: int = 0
    before: int = 0
    """The stamp of the commit before this one."""
    site: int = 0
    """The number of the store's own incarnation."""
    name: str = ""
    """What the site is called."""
    grown: bool = False
    value: str = ""
    """The partition that is being written, of a relation that has several."""
