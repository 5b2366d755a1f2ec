"""Stores that are copied or put back, and what of all four kinds is in them."""

import sqlite3


def copy_store(site, target):
    """A backup of a store that is in use, as SQLite makes it."""
    with sqlite3.connect(target) as copy:
        site._store.writer.connection.backup(copy)
    copy.close()


def put_back(folder):
    """The backup in place of the store, which is closed."""
    for rest in ("a.db-wal", "a.db-shm"):
        (folder / rest).unlink(missing_ok=True)
    (folder / "a.db").write_bytes((folder / "backup.db").read_bytes())


def write_some(site, number):
    site.insert("r", [(number, "x")])
    site.insert("g", [(number,), (number,)])
    site.insert("w", [(number,)])
    site.insert("k", [(number, site.name)])


def expected(*numbers):
    return {
        "r": [(n, "x") for n in numbers],
        "g": [(n,) for n in numbers for _ in range(2)],
        "w": [(n,) for n in numbers],
    }


def check(found, *numbers):
    assert {name: found[name] for name in ("r", "g", "w")} == expected(*numbers)
    assert [row[0] for row in found["k"]] == list(numbers)
