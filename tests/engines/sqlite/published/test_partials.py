"""Aggregates over rows that only their owners write, at sites without these rows."""

import pytest
from tests.engines.sqlite.published.owners import PROGRAM, VIEWS, shown
from tests.engines.sqlite.published.worlds import Places, stored

from everview.errors import WireError

ALL = {"a": None, "b": None, "holder": {"votes", "meters"}, "v": VIEWS, "w": ("tally", "used")}


@pytest.fixture
def places(tmp_path):
    made = Places(tmp_path, PROGRAM, ALL)
    yield made
    made.close()


def entries(site, owner):
    """What a site shows of an owner, in every stream that it has."""
    found = {stream: stored(site._store, stream)[0] for stream in site._store.engine.partials}
    return {
        stream: [row[:-1] for row in rows if row[0] == owner and row[-2]] for stream, rows in found.items()
    }


@pytest.mark.parametrize("seed", range(6))
def test_of_every_owner_a_state_is_shown_that_it_had_once(tmp_path, seed):
    run(tmp_path, seed)


def run(folder, seed, steps=50):
    places = Places(folder, PROGRAM, ALL, seed=f"partials {seed}")
    chance, sites = places.chance, places.sites
    had = {(owner, stream): [[]] for owner in "ab" for stream in sites["a"]._store.engine.partials}

    def write():
        site = sites[chance.choice("ab")]
        with site.transaction():
            for _ in range(chance.choice([1, 1, 3])):
                name, row = "meters", (site.name, chance.randrange(3), chance.randrange(5))
                if chance.random() < 0.7:
                    name, row = "votes", (site.name, chance.choice(["pen", None]), chance.choice([1, 4]), 0.1)
                (site.insert if chance.random() < 0.6 else site.delete)(name, [row])

    def look():
        for owner in "ab":
            for site in [sites[owner], *sites.values()]:
                for stream, rows in entries(site, owner).items():
                    if site is sites[owner]:
                        had[owner, stream].append(rows)
                    assert rows in had[owner, stream]

    places.wander(steps, write, look, ["a", "b", "v"])
    assert shown(sites["v"]) == shown(sites["a"]) == shown(sites["b"])  # computed over all rows there
    assert shown(sites["w"], ALL["w"]) == shown(sites["a"], ALL["w"])
    places.close()


def test_one_sync_with_who_holds_all_rows_is_enough(places):
    a, b, holder, v = (places.sites[name] for name in ("a", "b", "holder", "v"))
    a.insert("votes", [("a", "pen", 3, 0.1), ("a", "pen", 3, 0.1), ("a", None, 5, 1e300)])
    b.insert("votes", [("b", "pen", 7, 0.2), ("b", None, -5, -1e300)])
    for site in (a, b):
        holder.sync(site)
    a.sync(holder)
    v.sync(holder)
    assert shown(v) == shown(a)
    partials = [site.status()["replication"]["partials"]["tally"] for site in (v, a, holder)]
    assert partials[0] == {"receives": True, "owners": ["a", "b"], "publishes": False, "contested": False}
    assert [one["publishes"] for one in partials] == [False, True, False]
    a.insert("notes", [("of no concern",)])
    assert v.sync(a).received_rows == 0
    assert "entries of 2 owners" in v.explain("tally")
    assert "This site tells others what its own rows come to" in a.explain("tally")


def test_a_text_that_is_no_sum_is_refused(places):
    v = places.sites["v"]
    rows = next(rows for rows in v._store.engine.partials.values() if rows.partials.texts)
    place, _ = rows.partials.texts[0]
    columns = [[None] for _ in rows.columns]
    rows.check(columns)
    columns[place] = ["none"]
    with pytest.raises(WireError, match="has a sum or sketch that is none"):
        rows.check(columns)
