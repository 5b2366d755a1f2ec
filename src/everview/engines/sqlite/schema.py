"""The tables of a store that belong to no relation and no view, as they are created."""

from everview.engines.sqlite.names import PAGES, STORE, TAGS
from everview.engines.sqlite.rows.ledger import LEDGER_DDL
from everview.engines.sqlite.rows.peers import PEERS_DDL
from everview.engines.sqlite.rows.refusals import REFUSED_DDL
from everview.engines.sqlite.rows.tombstones import MOMENTS_DDL

STORE_DDL = (
    (
        f"CREATE TABLE {STORE} (one INTEGER PRIMARY KEY, program TEXT NOT NULL, program_hash TEXT NOT NULL, "
        "site TEXT NOT NULL, incarnation TEXT NOT NULL, version INTEGER NOT NULL, clock INTEGER NOT NULL, "
        "shown INTEGER NOT NULL, failures INTEGER NOT NULL, file TEXT NOT NULL, layout TEXT NOT NULL)"
    ),
    f"CREATE TABLE {TAGS} (version INTEGER PRIMARY KEY, tag INTEGER NOT NULL)",
    f"CREATE TABLE {PAGES} (sender, number, request BLOB, message BLOB, PRIMARY KEY (sender, number))",
    *LEDGER_DDL,
    *PEERS_DDL,
    *REFUSED_DDL,
    *MOMENTS_DDL,
)
"""`everview_store` has one row: `version` and `clock` are of the last commit, `shown` is the last that a peer
may have seen, and `file` tells the file that this is from a copy of it.
"""
