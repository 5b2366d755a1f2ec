"""Tombstones of sets are forgotten after a while, by writes like any other."""

import pytest
from tests.replication.sites import PROGRAM, World, talk

import everview as ev
from everview.engines.sqlite.rows import tombstones
from everview.site import Site

DAY = 86_400

SHORT = ev.Program.parse("CREATE TABLE r (a BIGINT NOT NULL, b TEXT) WITH (retention = '2 days')")


@pytest.fixture
def world():
    return World()


def dead(site, name="r"):
    """How many tombstones a site holds, also beside the rows of the plain table."""
    tables = site._store.engine.relations[name].tables
    sql = " UNION ALL ".join(f"SELECT cl FROM {table} WHERE NOT cl & 1" for table in tables)
    return len(site._store.writer.connection.execute(sql).fetchall())


def head(site):
    return site.status()["replication"]["head"]


def days(world, count, *sites):
    """Days pass, and on each of them these sites write something else."""
    for _ in range(count):
        world.seconds += DAY
        for site in sites:
            site.insert("g", [(1,)])


def deleted(site, *rows):
    site.insert("r", rows)
    site.delete("r", rows)


def in_order(*sites):
    """They agree, what they keep of digests is right, and there are no alarms."""
    talk(*sites)
    assert not any(site.status()["replication"]["alarms"] for site in sites)
    assert all(site.rows("r") == sites[0].rows("r") for site in sites)


def test_a_site_forgets_what_it_has_deleted_after_the_retention(world):
    a, b = world.sites(2)
    deleted(a, (1, "x"), (2, "x"))
    a.insert("r", [(3, "x")])
    b.insert("r", [(4, "x")])
    talk(a, b)
    days(world, 89, a, b)
    assert dead(a) == dead(b) == 2
    days(world, 3, a, b)
    assert (dead(a), dead(b)) == (0, 2)
    in_order(a, b)
    assert dead(b) == 0
    assert a.rows("r") == [(3, "x"), (4, "x")]


def test_where_nothing_is_due_nothing_is_written(world):
    a, b = world.sites(2)
    deleted(a, (1, "x"))
    talk(a, b)
    days(world, 80, a)
    before = head(a)
    with a.transaction():
        pass
    assert head(a) == before
    days(world, 20, a)
    talk(a, b)
    before = head(a)
    world.seconds += 100 * DAY
    with a.transaction():
        pass
    assert a.sync(b).sent_rows == 0
    assert head(a) == before


def test_what_others_deleted_is_forgotten_after_twice_that(world):
    a, b, c = world.sites(3)
    deleted(a, (1, "x"))
    b.insert("r", [(4, "x")])
    talk(a, b, c)
    days(world, 178, b, c)
    assert dead(b) == dead(c) == 1
    days(world, 4, b, c)
    assert (dead(b), dead(c)) == (0, 1)  # a is gone, and c writes nothing into r
    in_order(b, c)
    assert dead(c) == 0


def test_a_site_that_never_writes_a_relation_forgets_nothing_of_it(world):
    a, b = world.sites(2)
    deleted(a, (1, "x"))
    talk(a, b)
    days(world, 400, b)
    assert dead(b) == 1


def test_a_tombstone_is_as_old_as_it_is_here_whatever_other_clocks_say(world):
    old = world.site("old", skew=-1000 * DAY)
    b = world.site("b")
    deleted(old, (1, "x"))
    b.insert("r", [(4, "x")])
    days(world, 300, b)
    talk(old, b)
    days(world, 170, b)
    assert dead(b) == 1
    days(world, 12, b)
    assert dead(b) == 0


def test_a_store_that_rests_for_long_knows_when_it_was_written(world, tmp_path):
    a = world.site("a", tmp_path / "a.db")
    deleted(a, (1, "x"))
    world.seconds += DAY / 4
    deleted(a, (2, "x"))
    a.close()
    world.seconds += 95 * DAY
    a = world.site("a", tmp_path / "a.db")
    assert dead(a) == 2
    a.insert("g", [(1,)])
    assert dead(a) == 0
    a.close()


def test_what_a_tombstone_has_beaten_goes_with_it(world):
    a, b = world.sites(2)
    a.insert("r", [(1, "x")])
    b.insert("r", [(1, "x")])  # length 1, too
    a.delete("r", [(1, "x")])
    b.delete("r", [(1, "x")])
    b.insert("r", [(1, "x")])
    b.delete("r", [(1, "x")])  # length 4 beats length 2
    talk(a, b)
    assert dead(a) == dead(b) == 2
    days(world, 92, b)
    assert dead(b) == 0
    assert b.rows("r") == []
    in_order(a, b)
    assert dead(a) == 0


def test_who_was_away_for_longer_gets_the_removal(world):
    a, b, c = world.sites(3)
    a.insert("r", [(1, "x"), (2, "x")])
    talk(a, b, c)
    a.delete("r", [(1, "x"), (2, "x")])
    talk(a, b)
    days(world, 100, a)
    talk(a, b)
    assert dead(a) == dead(b) == 0
    c.delete("r", [(2, "x")])
    c.insert("r", [(2, "x")])  # has not seen that it was deleted, nor that this was forgotten
    in_order(a, b, c)
    assert a.rows("r") == [(2, "x")]


def test_many_are_forgotten_in_batches(world, monkeypatch):
    monkeypatch.setattr(tombstones, "BATCH", 10)
    a, b = world.sites(2)
    deleted(a, *((n, "x") for n in range(25)))
    talk(a, b)
    days(world, 89, a)
    left = []
    world.seconds += 2 * DAY
    while dead(a):
        a.insert("g", [(1,)])
        left.append(dead(a))
    assert left == [15, 5, 0]
    in_order(a, b)


def test_a_sync_forgets_nothing_for_that_would_be_news_again(world):
    a, b = world.sites(2)
    deleted(a, (1, "x"))
    talk(a, b)
    world.seconds += 91 * DAY
    b.insert("r", [(2, "x")])
    assert a.sync(b).received_rows == 1
    assert dead(a) == 1
    report = a.sync(b)
    assert (report.sent_rows, report.received_rows) == (0, 0)


def test_a_set_says_how_long_it_remembers(tmp_path):
    world = World()
    a = world.site("a", tmp_path / "a.db", program=SHORT)
    deleted(a, (1, "x"))
    for expected in (1, 0):
        world.seconds += DAY
        assert dead(a) == 1
        a.insert("r", [(int(world.seconds), "y")])
        assert dead(a) == expected
    a.close()
    longer = ev.Program.parse(SHORT.text.replace("2 days", "3 days"))
    evolution = Site.migrate(tmp_path / "a.db", longer)
    assert evolution.kept == ("r",)
    with Site.open(tmp_path / "a.db") as site:
        assert site.program.relations["r"].retention == 3 * DAY * 1_000_000


def test_sites_agree_on_a_relation_and_not_on_how_long_it_remembers(world):
    a = world.site("a", program=SHORT)
    b = world.site("b", program=PROGRAM)
    a.insert("r", [(1, "x")])
    a.sync(b)
    assert b.rows("r") == [(1, "x")]


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("(a BIGINT PRIMARY KEY) WITH (retention = '2 days')", "only a set remembers"),
        ("(a BIGINT) WITH (retention = '2 days', semantics = 'bag')", "only a set remembers"),
        ("(a BIGINT) WITH (retention = '-2 days')", "is not negative"),
        ("(a BIGINT) WITH (retention = '2 years')", "depends on the date"),
        ("(a BIGINT) WITH (retention = 'long')", "not understood"),
    ],
)
def test_what_is_no_retention_is_refused(declared, problem):
    with pytest.raises(ev.ProgramError, match=problem):
        ev.Program.parse(f"CREATE TABLE r {declared}")
