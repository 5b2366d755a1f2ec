"""Whatever rows of owners come and go, in any order: of each owner those of its greatest epoch are shown."""

import random
from collections import Counter

import pytest
from tests.engines.sqlite.published.worlds import stored

import everview as ev
from everview.engines.sqlite.rows.base import Arrived, name_gone
from everview.engines.sqlite.rows.dots import dot
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.store import Store
from everview.language.limits import COPIES, LONGEST

PROGRAM = ev.Program.parse("""
    CREATE TABLE votes (site TEXT NOT NULL, item TEXT) WITH (owner = 'site', semantics = 'bag');
    CREATE MATERIALIZED VIEW tally AS SELECT item, count(*) AS n FROM votes GROUP BY item;
    CREATE MATERIALIZED VIEW top WITH (authority = 'a') AS SELECT site, item, 1 AS n FROM votes;
""")
NAMES = {1: ("05", "a"), 2: ("03", "a"), 3: ("04", "b"), 4: ("09", "nobody")}
"""The sites that write: incarnations and names."""


def shown(rows, owner_of):
    """The rows that are shown, and their copies: what the tables keep up to date, computed anew."""
    found = Counter()
    for owner in {owner_of(row) for row in rows.values()}:
        marks = [
            (epoch, NAMES[at >> 40][0], at >> 40)
            for at, (*row, copies, epoch) in rows.items()
            if not copies and owner_of(row) == owner == NAMES[at >> 40][1] and epoch <= LONGEST
        ]
        for at, (*row, copies, epoch) in rows.items() if marks else ():
            if (epoch, at >> 40) == max(marks)[::2] and owner_of(row) == owner and copies <= COPIES:
                found[tuple(row)] += copies
    return +found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("view", ["tally", "top"])
def test_in_any_order(seed, view):
    chance, store = random.Random(seed), Store(":memory:", PROGRAM, "here", hosts={"tally", "top"})
    owned, connection = store.engine.owned, store.writer.connection
    (stored_rows,) = (rows for stream, rows in owned.items() if view in stream)
    owner_of = (lambda row: row[0]) if view == "tally" else (lambda row: "a")
    connection.executemany(
        f"INSERT INTO {SITES} VALUES (?, ?, ?, 1, 0)", [(n, *named) for n, named in NAMES.items()]
    )
    held, seen, told = {}, Counter(), Counter()
    for version in range(1, 25):
        if held and chance.random() < 0.4:
            gone = chance.sample(sorted(held), chance.randint(1, len(held)))
            name_gone(connection, gone)
            stored_rows.remove(connection, version)
            held = {at: row for at, row in held.items() if at not in gone}
        else:
            new = {}
            for _ in range(chance.choice([1, 2, 8])):
                site = chance.choice(list(NAMES))
                seen[site] += 1
                copies = chance.choice([0, 1, 1, 2, COPIES + 1])
                epoch = chance.choice([1, 1, 2, LONGEST + 1])
                ones = [1] * (len(stored_rows.table.columns) - 2)
                row = (chance.choice("ab"), chance.choice("xy"), *ones)
                new[dot(site, seen[site])] = (*row, copies, epoch)
            columns = list(zip(*new.values(), strict=True))
            stored_rows.merge(connection, Arrived(columns, list(new), version))
            held |= new
        if chance.random() < 0.5:
            stored_rows.net(connection)
        names = stored_rows._listed("w")
        for *row, weight in connection.execute(f"SELECT {names} FROM {stored_rows.delta}").fetchall():
            told[tuple(row)] += weight
        connection.execute(f"DELETE FROM {stored_rows.delta}")
        plain, beside = stored(store, stored_rows.stream)
        assert sorted([*plain, *beside]) == sorted(held.values())
        there = Counter()
        for *row, copies, _ in plain:
            there[tuple(row)] += copies
        assert +there == +told == shown(held, owner_of)
