"""The kinds of worlds, by name."""

from typing import Final

from spec.replication.worlds.faults import Rewinds
from spec.replication.worlds.hosting import Folders, Losses, Nested, Pages, Partitions, Views
from spec.replication.worlds.rights import Publications, Refusals
from spec.replication.worlds.world import World

WORLDS: Final[dict[str, type[World]]] = {
    "relations": World,
    "pages": Pages,
    "folders": Folders,
    "partitions": Partitions,
    "views": Views,
    "losses": Losses,
    "nested": Nested,
    "rewinds": Rewinds,
    "refusals": Refusals,
    "publications": Publications,
}
