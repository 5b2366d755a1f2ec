"""A site as a world knows it: its store, and what the store has seen."""

from dataclasses import dataclass, field

from spec.replication.stores import Store
from spec.replication.transfers import Transfer
from spec.replication.worlds.history import Seen

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Site:
    """A site at one moment, and which writes its store has seen."""

    store: Store
    seen: Seen = field(default_factory=dict)
    torn: frozenset[int] = NOTHING
    """Transactions of which a part came over a site that hosts only that part."""
    life: int = 0
    """Which opening of a store this is; the history knows what each life wrote."""
    back: bool = False
    """Whether the store went back before this life and has not noticed."""


@dataclass(frozen=True)
class Reading:
    """A transfer under way between two sites."""

    reader: int
    sender: int
    transfer: Transfer
