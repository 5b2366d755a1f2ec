"""Relations on SQLite: how each kind is stored, written, merged and valued; one file a kind.

| kind | table | a row is there when |
|---|---|---|
| set | row → causal length | it is odd |
| keyed | key → the row of the greatest stamp, or that it is deleted | it is not deleted |
| bag | row → weight, the sum of its entries (commit → weight) | it is above 0 |
| add-wins | row → live insertions, of its entries (insertion → causal length) | there is one |

Every row that travels carries the version of the commit that last grew it here, and the origin of that
growth: a site's number, and its commit. Number 0 is the site itself, whose commit is then the version.
"""

from everview.engines.sqlite.relations.base import StoredRelation
from everview.engines.sqlite.relations.making import stored_relation

__all__ = ["StoredRelation", "stored_relation"]
