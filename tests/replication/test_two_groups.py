"""Groups that were founded apart: who left, who must return, and deaths that come over."""

import pytest
from tests.replication.sites import World, assert_equal, talk

from everview.replication.wire import encode


@pytest.fixture
def world():
    return World()


def put_back(site, world, path, image):
    site.close()
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(image)
    return world.site(site.name, path)


def image_of(site, world, path):
    """Close a site's store, and open it again; return the site and what was in the file."""
    site.close()
    return world.site(site.name, path), path.read_bytes()


def test_who_has_just_left_does_not_free_who_must_return(world, tmp_path):
    """s and r have forgotten x, r is put back, and s meets a smaller group: x must stay dead."""
    c, d, s = world.site("c"), world.site("d"), world.site("s")
    c.insert("r", [(7, "seven")])
    talk(c, d)
    path = tmp_path / "r.db"
    r = world.site("r", path)
    r.insert("r", [(1, "x"), (2, "y")])
    talk(s, r)
    r, image = image_of(r, world, path)
    s.delete("r", [(1, "x")])
    talk(s, r, rounds=4)
    assert s.replica.collect() == r.replica.collect() == 1
    talk(s, r)
    r = put_back(r, world, path, image)
    overheard = c.replica.tell(None)
    s.replica.hear(overheard, encode(overheard), "")
    assert "r" not in s.replica._knowledge.state.joined
    s.sync(r)
    assert "r" in r.replica._knowledge.state.bound
    talk(c, d, s, r, rounds=6)
    assert assert_equal(c, d, s, r)["r"] == [(2, "y"), (7, "seven")]


def test_a_death_that_comes_over_does_not_outlive_a_row_that_had_seen_it(world):
    """Between the two stamps there is no room: x, whose clock is late, writes right after the deletion."""
    c, d, p, x, y = (world.site(name, skew=-10 if name == "x" else 0) for name in "cdpxy")
    c.insert("k", [(9, "nine")])
    talk(c, d)
    p.insert("k", [(1, "old")])
    talk(p, x, y)
    world.seconds += 1
    p.delete("k", [(1, "old")])
    y.sync(p)
    x.replica.take(list(p.replica.batch(0)))
    x.insert("k", [(1, "new")])
    for _ in range(2):
        y.sync(c)
        x.sync(c)
    talk(c, d, p, x, y)
    assert assert_equal(c, d, p, x, y)["k"] == [(1, "new"), (9, "nine")]


def test_the_same_backup_is_recognised_twice(world, tmp_path):
    path = tmp_path / "a.db"
    b = world.site("b")
    a, image = image_of(world.site("a", path), world, path)
    seen = {a.replica._knowledge.incarnation}
    for number in range(3):
        a.insert("r", [(number, "x")])
        talk(a, b)
        a = put_back(a, world, path, image)
        incarnation = a.replica._knowledge.incarnation
        assert incarnation not in seen
        seen.add(incarnation)
    talk(a, b)
    assert assert_equal(a, b)["r"] == [(0, "x"), (1, "x"), (2, "x")]


@pytest.mark.parametrize(("relation", "key"), [("r", "1, 'x'"), ("k", "1")])
def test_of_a_key_that_a_snapshot_brings_twice_the_greatest_value_is_kept(world, relation, key):
    """Pages are read one after the other: a row may live on the first and be dead on the third."""
    site = world.site("a")
    stored = site._store.engine.relations[relation]
    with site._store.writing() as connection:
        for value in (3, 7, 5):
            stored.keep(connection, f"SELECT {key}, {value}")
        assert connection.execute(f"SELECT value FROM {stored.kept}").fetchall() == [(7,)]


def test_a_stand_in_is_told_of_only_where_it_is_waited_for(world):
    """It is listed by who founds anew, and stays on the lists of those who have gone elsewhere since."""
    a, b = world.site("a"), world.site("b")
    talk(a, b)
    membership = a.replica._knowledge.membership
    listed = lambda: [member["name"] or member["incarnation"] for member in a.replica.status()["members"]]
    assert listed() == ["b"]
    membership.list_member("feed/1?", "r", "feed/1/other/1")
    assert listed() == ["b"]
    assert [member["name"] for member in a.replica.members()["members"]] == ["b"]
    membership.list_member("feed/1?", "r", a.replica._knowledge.state.joined["r"])
    assert sorted(listed()) == ["b", "feed/1?"]
