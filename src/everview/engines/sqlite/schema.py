"""The tables of a store that belong to no relation and no view, as they are created."""

from everview.engines.sqlite.names import CONFLICTS, HOSTS, MEMBERSHIP, PAGES, SITES, STORE, TAGS

REPLICATION_DDL = (
    f"CREATE TABLE {CONFLICTS} (relation TEXT PRIMARY KEY)",
    f"CREATE TABLE {SITES} (number INTEGER PRIMARY KEY, incarnation TEXT NOT NULL, name TEXT NOT NULL)",
    f"CREATE TABLE {TAGS} (version INTEGER PRIMARY KEY, tag INTEGER NOT NULL)",
    f"CREATE TABLE {PAGES} (sender, number, request BLOB, message BLOB, PRIMARY KEY (sender, number))",
    f"CREATE TABLE {MEMBERSHIP} (one INTEGER PRIMARY KEY, state BLOB NOT NULL, revision INTEGER NOT NULL)",
    f"CREATE TABLE {HOSTS} (name TEXT PRIMARY KEY) WITHOUT ROWID",
)
"""What a store remembers of other sites. Site 0 and one more number are the store's own."""

STORE_DDL = (
    f"CREATE TABLE {STORE} (one INTEGER PRIMARY KEY, program TEXT NOT NULL, program_hash TEXT NOT NULL, "
    "site TEXT NOT NULL, incarnation TEXT NOT NULL, version INTEGER NOT NULL, tag INTEGER NOT NULL, "
    "clock INTEGER NOT NULL, shown INTEGER NOT NULL, failures INTEGER NOT NULL, file TEXT NOT NULL, "
    "layout TEXT NOT NULL)"
)
"""One row: `version`, `tag` and `clock` are of the last commit, `shown` is the last that a peer may have
seen, and `file` tells the file that this is from a copy of it.
"""
